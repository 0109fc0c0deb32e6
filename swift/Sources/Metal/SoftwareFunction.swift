import MetalRuntime

final class SoftwareFunction: NSObject, MTLFunction, @unchecked Sendable {
    let library: SoftwareLibrary
    /// Nil where the function needs constants and was made without: then it tells what it needs, and makes no pipeline.
    let handle: OpaquePointer?
    let name: String
    let functionConstantsDictionary: [String: MTLFunctionConstant]
    let fingerprint: Fingerprint
    let functionType = MTLFunctionType.kernel
    let patchType = MTLPatchType.none
    let patchControlPointCount = -1
    let options: MTLFunctionOptions = []
    var label: String?

    /// As the library has it, nil where the library lacks it.
    init?(unspecialized name: String, library: SoftwareLibrary) {
        guard let info = mrt_library_function_info(library.handle, name)?.pointee else { return nil }
        self.library = library
        self.name = name
        functionConstantsDictionary = constantsByName(info)
        fingerprint = Fingerprint([library.fingerprint.description, name])
        let needsConstants = functionConstantsDictionary.values.contains { $0.required }
        handle = needsConstants ? nil : mrt_function_create(library.handle, name, nil, 0, nil)
    }

    init(
        _ name: String, library: SoftwareLibrary, constants: MTLFunctionConstantValues, specializedName: String? = nil
    ) throws {
        let values = constants.sortedValues
        var message: UnsafeMutablePointer<CChar>?
        let function = withRuntimeValues(values) { mrt_function_create(library.handle, name, $0.baseAddress, $0.count, &message) }
        let text = takeMessage(message)
        guard let function else {
            throw MTLLibraryError(.compileFailure, text ?? "Function \(name) could not be specialised.")
        }
        handle = function
        self.library = library
        self.name = specializedName ?? name
        functionConstantsDictionary = mrt_library_function_info(library.handle, name).map { constantsByName($0.pointee) } ?? [:]
        fingerprint = Fingerprint([library.fingerprint.description, name] + values.map { "\($0.key) \($0.value)" })
    }

    deinit { if let handle { mrt_function_release(handle) } }

    var device: any MTLDevice { SoftwareDevice.shared }
    override var description: String { "<SoftwareFunction> name = \(name), type = MTLFunctionTypeKernel" }

    var missingConstants: [String] { functionConstantsDictionary.values.filter(\.required).map(\.name).sorted() }
}

private func constantsByName(_ info: mrt_function_info) -> [String: MTLFunctionConstant] {
    let constants = UnsafeBufferPointer(start: info.constants, count: info.constant_count).map {
        MTLFunctionConstant(
            name: String(cString: $0.name), type: MTLDataType(rawValue: UInt($0.type)) ?? .none, index: Int($0.index),
            required: $0.required)
    }
    return Dictionary(constants.map { ($0.name, $0) }) { first, _ in first }
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
