import COrchard
import Foundation
import Metal

/// Checks a request against the library, specializes the function, and makes the pipeline, from the archive on disk if
/// possible.
struct PipelineCompiler {
    let library: Library
    let request: PipelineRequest

    private var context: Context { library.owner }

    func compile() throws -> Pipeline {
        let descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = try function()
        descriptor.label = request.label ?? request.function
        try setMaxThreads(descriptor)
        if context.faults.take(.pipeline) != nil {
            throw OrchardError(ORCHARD_COMPILE_FAILED, "Injected failure of the pipeline.")
        }
        let archived = fromArchive(descriptor)
        let (state, reflection) = try archived ?? throughArchive(descriptor) ?? fresh(descriptor)
        if archived == nil, let archive = library.archive {
            archive.noteRefusal()
            context.archives.schedule(library)
        }
        try count(archived != nil)
        return Pipeline(library, request.function, state, arguments(reflection))
    }

    // MARK: The function

    private func function() throws -> any MTLFunction {
        guard let declared = library.constants(of: request.function) else { throw notFound }
        let values = MTLFunctionConstantValues()
        for constant in request.constants { try set(constant, in: values, declared) }
        let given = request.constants
        let missing = declared.filter { constant in
            constant.required
                && !given.contains { $0.name == constant.name || ($0.name == nil && $0.index == constant.index) }
        }
        guard missing.isEmpty else {
            let list = missing.map { "'\($0.name)' (index \($0.index))" }.joined(separator: ", ")
            throw constantError("needs function constant \(list), which has no value")
        }
        do {
            return try library.library.makeFunction(name: request.function, constantValues: values)
        } catch {
            throw OrchardError(
                ORCHARD_COMPILE_FAILED, "Kernel '\(request.function)' can't be specialized: \(error.reason)")
        }
    }

    /// A constant that only other functions of the library use is accepted, so that one set of constants serves all
    /// functions.
    private func set(_ constant: ConstantValue, in values: MTLFunctionConstantValues, _ declared: [MTLFunctionConstant])
        throws
    {
        func matches(_ other: MTLFunctionConstant) -> Bool {
            constant.name == nil ? other.index == constant.index : other.name == constant.name
        }
        guard let match = declared.first(where: matches) ?? library.allConstants.first(where: matches) else {
            let known = Set(library.allConstants.map { "'\($0.name)' (index \($0.index))" }).sorted().joined(
                separator: ", ")
            throw constantError(
                "was given function constant \(constant.description); the library has \(known.isEmpty ? "none" : known)"
            )
        }
        guard let type = MTLDataType(rawValue: UInt(constant.type)), type == match.type else {
            throw constantError(
                "expected function constant '\(match.name)' to be of type \(match.type.rawValue), got type "
                    + "\(constant.type)"
            )
        }
        constant.bytes.withUnsafeBytes { values.setConstantValue($0.baseAddress!, type: type, index: match.index) }
    }

    private var notFound: OrchardError {
        let names = library.library.functionNames.sorted().joined(separator: ", ")
        return OrchardError(
            ORCHARD_FUNCTION_NOT_FOUND,
            "There is no kernel '\(request.function)'; the library has \(names.isEmpty ? "none" : names).")
    }

    private func constantError(_ text: String) -> OrchardError {
        OrchardError(ORCHARD_CONSTANT_MISSING, "Kernel '\(request.function)' \(text).")
    }

    // MARK: The pipeline

    private func setMaxThreads(_ descriptor: MTLComputePipelineDescriptor) throws {
        let largest = context.device.maxThreadsPerThreadgroup.width
        guard request.maxThreads <= largest else {
            throw OrchardError.limit(
                "expected at most \(largest) threads per threadgroup (the device's limit), got \(request.maxThreads).")
        }
        descriptor.maxTotalThreadsPerThreadgroup = Int(request.maxThreads)
    }

    private typealias Made = (any MTLComputePipelineState, MTLComputePipelineReflection?)

    private func fromArchive(_ descriptor: MTLComputePipelineDescriptor) -> Made? {
        guard let archive = library.archive?.archive() else { return nil }
        descriptor.binaryArchives = [archive]
        return try? make(descriptor, [.bindingInfo, .bufferTypeInfo, .failOnBinaryArchiveMiss])
    }

    /// Compiles the pipeline into the archive and makes it from there. Returns nil if there is no archive, or if the
    /// archive rejects the kernel.
    private func throughArchive(_ descriptor: MTLComputePipelineDescriptor) -> Made? {
        guard library.archive?.add(descriptor) == true else { return nil }
        return fromArchive(descriptor)
    }

    private func fresh(_ descriptor: MTLComputePipelineDescriptor) throws -> Made {
        do {
            return try make(descriptor, [.bindingInfo, .bufferTypeInfo])
        } catch {
            throw OrchardError(
                ORCHARD_COMPILE_FAILED,
                "Kernel '\(request.function)' could not be made into a pipeline: \(error.reason)")
        }
    }

    private func make(_ descriptor: MTLComputePipelineDescriptor, _ options: MTLPipelineOption) throws -> Made {
        var reflection: MTLAutoreleasedComputePipelineReflection?
        let state = try context.device.makeComputePipelineState(
            descriptor: descriptor, options: options, reflection: &reflection)
        return (state, reflection)
    }

    /// Buffers, then threadgroup memory, each sorted by index, since Metal guarantees no order.
    private func arguments(_ reflection: MTLComputePipelineReflection?) -> [KernelArgument] {
        let all = (reflection?.bindings ?? []).compactMap(KernelArgument.init).sorted { $0.index < $1.index }
        return all.filter(\.isBuffer) + all.filter { !$0.isBuffer }
    }

    private func count(_ isHit: Bool) throws {
        let report = library.archive?.takeReport() ?? PipelineArchive.Report()
        try context.locked {
            context.statistics.values.pipelines_compiled += isHit ? 0 : 1
            context.statistics.values.archive_hits += isHit ? 1 : 0
        }
        context.record(report)
    }
}
