import MetalRuntime

final class SoftwareLibrary: NSObject, MTLLibrary, @unchecked Sendable {
    let handle: OpaquePointer
    /// What was compiled, with what options: the key of its functions in a binary archive.
    let fingerprint: Fingerprint
    /// The compiler's warnings, which only the completion handler of `makeLibrary` is given.
    let warnings: String?
    let functionNames: [String]
    let type = MTLLibraryType.executable
    let installName: String? = nil
    var label: String?

    init(source: String, options: MTLCompileOptions) throws {
        guard !takeFault("library") else {
            throw MTLLibraryError(.internal, "Injected failure: the library was not made.")
        }
        guard options.libraryType == .executable && options.libraries?.isEmpty ?? true else {
            throw MTLLibraryError(
                .unsupported,
                "\(SoftwareDevice.shared.name) has no dynamic libraries: compile one source with libraryType "
                    + ".executable."
            )
        }
        let macros = options.macroTexts
        var message: UnsafeMutablePointer<CChar>?
        let library = withMacros(macros) { list in
            var settings = mrt_compile_options(
                language_version: UInt32(options.languageVersion.rawValue),
                math_mode: UInt32(options.mathMode.rawValue),
                math_functions: UInt32(options.mathFloatingPointFunctions.rawValue), macros: list.baseAddress,
                macro_count: list.count, max_threads: UInt32(clamping: options.maxTotalThreadsPerThreadgroup))
            return mrt_library_create(source, &settings, &message)
        }
        let text = takeMessage(message)
        guard let library else { throw MTLLibraryError(.compileFailure, text ?? "The compiler gave no message.") }
        handle = library
        warnings = text
        functionNames = (0..<mrt_library_function_count(library)).map {
            String(cString: mrt_library_function_name(library, $0))
        }
        fingerprint = Fingerprint(
            [
                source,
                "\(options.languageVersion.rawValue) \(options.mathMode.rawValue) "
                    + "\(options.mathFloatingPointFunctions.rawValue)",
                "\(options.maxTotalThreadsPerThreadgroup)",
            ] + macros.flatMap { [$0.name, $0.value] })
    }

    deinit { mrt_library_release(handle) }

    var device: any MTLDevice { SoftwareDevice.shared }
    override var description: String { "<SoftwareLibrary> label = \(label ?? "<none>"), functions = \(functionNames)" }

    func makeFunction(name functionName: String) -> (any MTLFunction)? {
        guard functionNames.contains(functionName) else { return nil }
        return SoftwareFunction(unspecialized: functionName, library: self)
    }

    func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction {
        guard functionNames.contains(name) else { throw notFound(name) }
        return try SoftwareFunction(name, library: self, constants: constantValues)
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
        guard functionNames.contains(name) else { throw notFound(name) }
        return try SoftwareFunction(
            name, library: self, constants: constants, specializedName: descriptor.specializedName)
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

/// Where the forms with a completion handler do their work, away from the caller's thread.
let compilations = DispatchQueue(label: "MTLCompiler", attributes: .concurrent)

extension MTLCompileOptions {
    /// Macros as text in the order of their names, so that equal options have equal fingerprints.
    fileprivate var macroTexts: [(name: String, value: String)] {
        (preprocessorMacros ?? [:]).sorted { $0.key < $1.key }.map { name, value in
            (name, (value as? NSNumber)?.stringValue ?? value.description)
        }
    }
}

private func withMacros<Result>(
    _ macros: [(name: String, value: String)], _ body: (UnsafeBufferPointer<mrt_macro>) -> Result
) -> Result {
    let texts = macros.map { (strdup($0.name), strdup($0.value)) }
    defer {
        texts.forEach {
            free($0.0); free($0.1)
        }
    }
    return texts.map { mrt_macro(name: $0.0, value: $0.1) }.withUnsafeBufferPointer(body)
}
