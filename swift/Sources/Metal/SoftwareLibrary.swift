import MetalRuntime

final class SoftwareLibrary: NSObject, MTLLibrary, @unchecked Sendable {
    private let softwareDevice: SoftwareDevice
    private let parts: [LibraryPart]
    let functionNames: [String]
    let type: MTLLibraryType
    let installName: String?
    /// The part of the library that a dynamic library keeps.
    let recipe: LibraryRecipe?
    let libraries: [SoftwareDynamicLibrary]
    var label: String?

    convenience init(source: String, options: MTLCompileOptions, on device: SoftwareDevice) throws {
        try self.init(sources: [source], options: options, on: device)
    }

    /// Compiles the files of a library. A function of one may call those of another.
    init(sources: [String], options: MTLCompileOptions, on device: SoftwareDevice) throws {
        softwareDevice = device
        guard !takeFault("library") else {
            throw MTLLibraryError(.internal, "Injected failure: the library was not made.")
        }
        let libraries = try SoftwareDynamicLibrary.known(options.libraries ?? [])
        let installName = options.libraryType == .dynamic ? options.installName : nil
        if options.libraryType == .dynamic, installName?.isEmpty ?? true {
            throw MTLLibraryError(
                .compileFailure, "makeLibrary: a library of type .dynamic needs installName in its MTLCompileOptions.")
        }
        parts = try sources.enumerated().map { index, source in
            try LibraryPart(
                source: source, otherFiles: LibraryPart.others(sources, than: index), options: options,
                libraries: libraries, on: device)
        }
        (type, self.installName, self.libraries) = (options.libraryType, installName, libraries)
        recipe = installName.map { LibraryRecipe(sources[0], $0, options, libraries) }
        functionNames = type == .dynamic ? [] : parts.flatMap(\.functionNames)
        let repeated = Dictionary(grouping: functionNames) { $0 }.filter { $0.value.count > 1 }.keys.sorted()
        guard repeated.isEmpty else {
            throw MTLLibraryError(.compileFailure, "More than one file has a function named \(repeated).")
        }
    }

    /// The compiler's warnings, which only the completion handler of `makeLibrary` receives.
    var warnings: String? {
        let texts = parts.compactMap(\.warnings)
        return texts.isEmpty ? nil : texts.joined(separator: "\n")
    }

    private func part(of function: String) -> LibraryPart? { parts.first { $0.functionNames.contains(function) } }

    var device: any MTLDevice { softwareDevice }
    override var description: String { "<SoftwareLibrary> label = \(label ?? "<none>"), functions = \(functionNames)" }

    func makeFunction(name functionName: String) -> (any MTLFunction)? {
        part(of: functionName).map { SoftwareFunction(unspecialized: functionName, library: $0) }
    }

    func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction {
        guard let part = part(of: name) else { throw notFound(name) }
        return try SoftwareFunction(name, library: part, constants: constantValues)
    }

    func makeFunction(
        name: String, constantValues: MTLFunctionConstantValues,
        completionHandler: @escaping @Sendable ((any MTLFunction)?, (any Error)?) -> Void
    ) {
        let result = Result { try makeFunction(name: name, constantValues: constantValues) }
        answer(result, completionHandler)
    }

    func makeFunction(descriptor: MTLFunctionDescriptor) throws -> any MTLFunction {
        guard let name = descriptor.name else {
            throw MTLLibraryError(.functionNotFound, "The function descriptor has no name.")
        }
        guard let constants = descriptor.constantValues else {
            guard let function = makeFunction(name: name) else { throw notFound(name) }
            return function
        }
        guard let part = part(of: name) else { throw notFound(name) }
        return try SoftwareFunction(
            name, library: part, constants: constants, specializedName: descriptor.specializedName)
    }

    func makeFunction(
        descriptor: MTLFunctionDescriptor,
        completionHandler: @escaping @Sendable ((any MTLFunction)?, (any Error)?) -> Void
    ) {
        let result = Result { try makeFunction(descriptor: descriptor) }
        answer(result, completionHandler)
    }

    private func notFound(_ name: String) -> MTLLibraryError {
        MTLLibraryError(
            .functionNotFound, "Function \(name) was not found in the library; it has \(functionNames.sorted()).")
    }

    private func answer(
        _ result: Result<any MTLFunction, any Error>,
        _ handler: @escaping @Sendable ((any MTLFunction)?, (any Error)?) -> Void
    ) {
        compilations.async {
            switch result {
            case .success(let function): handler(function, nil)
            case .failure(let error): handler(nil, error)
            }
        }
    }
}

/// The queue on which methods with a completion handler compile.
let compilations = DispatchQueue(label: "MTLCompiler", attributes: .concurrent)
