import MetalRuntime

final class SoftwareFunction: NSObject, MTLFunction, @unchecked Sendable {
    let library: LibraryPart
    let name: String
    let functionConstantsDictionary: [String: MTLFunctionConstant]
    let fingerprint: Fingerprint
    private let lock = NSLock()
    /// Nil until a pipeline needs the function. Its name and constants are known without compiling it.
    private var handle: OpaquePointer?
    private let sourceName: String
    private let values: [MTLFunctionConstantValues.Entry]
    let functionType = MTLFunctionType.kernel
    let patchType = MTLPatchType.none
    let patchControlPointCount = -1
    let options: MTLFunctionOptions = []
    var label: String?

    /// The function in the library, without constants.
    init(unspecialized name: String, library: LibraryPart) {
        self.library = library
        self.name = name
        sourceName = name
        values = []
        functionConstantsDictionary = library.constants(of: name)
        fingerprint = Fingerprint([library.fingerprint.description, name])
    }

    init(
        _ name: String, library: LibraryPart, constants: MTLFunctionConstantValues, specializedName: String? = nil
    ) throws {
        let values = constants.sortedValues
        self.values = values
        sourceName = name
        handle = try makeRuntimeFunction(name, library, values)
        self.library = library
        self.name = specializedName ?? name
        functionConstantsDictionary = library.constants(of: name)
        fingerprint = Fingerprint([library.fingerprint.description, name] + values.map { "\($0.key) \($0.value)" })
    }

    deinit { if let handle { mrt_function_release(handle) } }

    var device: any MTLDevice { library.device }
    override var description: String { "<SoftwareFunction> name = \(name), type = MTLFunctionTypeKernel" }

    /// Returns the function with the preloaded libraries of a pipeline.
    func linked(to preloaded: [any MTLDynamicLibrary]) throws -> SoftwareFunction {
        let libraries = try SoftwareDynamicLibrary.known(preloaded)
        return libraries.isEmpty ? self : try SoftwareFunction(self, in: library.linked(to: libraries))
    }

    private init(_ other: SoftwareFunction, in library: LibraryPart) throws {
        self.library = library
        (name, sourceName, values) = (other.name, other.sourceName, other.values)
        functionConstantsDictionary = other.functionConstantsDictionary
        fingerprint = Fingerprint([library.fingerprint.description, other.fingerprint.description])
        if !values.isEmpty { handle = try makeRuntimeFunction(sourceName, library, values) }
    }

    /// Returns the runtime's compiled function. Throws if it needs constants and was made without them.
    func compiled() throws -> OpaquePointer {
        try lock.withLock {
            if let handle { return handle }
            let missing = functionConstantsDictionary.values.filter(\.required).map(\.name).sorted()
            guard missing.isEmpty else {
                throw MTLLibraryError(
                    .compileFailure,
                    """
                    Function \(name) needs the function constants \(missing); make it with \
                    makeFunction(name:constantValues:).
                    """)
            }
            let made = try makeRuntimeFunction(name, library, [])
            handle = made
            return made
        }
    }
}

private func makeRuntimeFunction(
    _ name: String, _ library: LibraryPart, _ values: [MTLFunctionConstantValues.Entry]
) throws -> OpaquePointer {
    var message: UnsafeMutablePointer<CChar>?
    let function = withRuntimeValues(values) {
        mrt_function_create(library.handle, name, $0.baseAddress, $0.count, &message)
    }
    let text = takeMessage(message)
    guard let function else {
        throw MTLLibraryError(.compileFailure, text ?? "Function \(name) could not be specialized.")
    }
    return function
}

extension LibraryPart {
    fileprivate func constants(of function: String) -> [String: MTLFunctionConstant] {
        var count = 0
        let first = mrt_library_function_constants(handle, function, &count)
        let constants = UnsafeBufferPointer(start: first, count: count).map {
            MTLFunctionConstant(
                name: String(cString: $0.name), type: MTLDataType(rawValue: UInt($0.type)) ?? .none,
                index: Int($0.index),
                required: $0.required)
        }
        return Dictionary(constants.map { ($0.name, $0) }) { first, _ in first }
    }
}

extension MTLFunctionConstantValues {
    fileprivate typealias Entry = (key: Key, value: Value)

    fileprivate var sortedValues: [Entry] { values.sorted { "\($0.key)" < "\($1.key)" } }
}

private func withRuntimeValues<Result>(
    _ values: [MTLFunctionConstantValues.Entry], _ body: (UnsafeBufferPointer<mrt_constant_value>) -> Result
) -> Result {
    var names: [UnsafeMutablePointer<CChar>?] = []
    defer { names.forEach { free($0) } }
    let constants = values.map { key, value in
        var constant = mrt_constant_value()
        constant.type = UInt32(value.type.rawValue)
        withUnsafeMutableBytes(of: &constant.value) { $0.copyBytes(from: value.bytes) }
        switch key {
        case .index(let index): constant.index = UInt32(index)
        case .name(let name):
            names.append(strdup(name))
            constant.name = UnsafePointer(names.last!)
        }
        return constant
    }
    return constants.withUnsafeBufferPointer(body)
}
