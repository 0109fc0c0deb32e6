import MetalRuntime

final class SoftwarePipeline: NSObject, MTLComputePipelineState, @unchecked Sendable {
    let function: SoftwareFunction
    let handle: OpaquePointer
    let bindings: [SoftwareBinding]
    /// The indices of the buffers that the kernel uses.
    let usedBuffers: [Int]
    /// The indices of its threadgroup arguments.
    let usedThreadgroupArguments: [Int]
    let hasTextures: Bool
    let hasSamplers: Bool
    let label: String?
    let maxTotalThreadsPerThreadgroup: Int
    let staticThreadgroupMemoryLength: Int
    let wantsWholeSIMDGroups: Bool
    let supportIndirectCommandBuffers: Bool
    let shaderValidation: MTLShaderValidation
    let threadExecutionWidth = Int(MRT_SIMD_WIDTH)
    /// Set by a Metal 4 compiler. If it is nil, any size is allowed.
    var requiredThreadsPerThreadgroup: MTLSize?

    init(_ descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption) throws {
        let given = try Self.function(of: descriptor)
        let function = try given.linked(to: descriptor.preloadedLibraries)
        let handle = try function.compiled()
        guard !takeFault("pipeline") else {
            throw MTLLibraryError(.internal, "Injected failure: the pipeline was not made.")
        }
        try Self.lookUp(function, descriptor.binaryArchives, options)
        let info = mrt_function_info_get(handle).pointee
        staticThreadgroupMemoryLength = Int(info.static_threadgroup_bytes)
        try Self.checkMemory(staticThreadgroupMemoryLength)
        try Self.compile(handle, for: function.library.device)
        self.function = function
        self.handle = handle
        label = descriptor.label
        bindings = UnsafeBufferPointer(start: info.arguments, count: info.argument_count).map(SoftwareBinding.init)
        usedBuffers = bindings.filter { $0.isUsed && $0.type == .buffer }.map(\.index)
        usedThreadgroupArguments = bindings.filter { $0.type == .threadgroupMemory }.map(\.index)
        hasTextures = bindings.contains { $0.type == .texture }
        hasSamplers = bindings.contains { $0.type == .sampler }
        let limit = descriptor.maxTotalThreadsPerThreadgroup
        maxTotalThreadsPerThreadgroup = min(Int(info.max_total_threads), limit > 0 ? limit : .max)
        wantsWholeSIMDGroups = descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth
        supportIndirectCommandBuffers = descriptor.supportIndirectCommandBuffers
        shaderValidation = descriptor.shaderValidation
    }

    private static let selector = "newComputePipelineStateWithDescriptor:options:reflection:error:"

    /// Returns the descriptor's function, which must be one of this device.
    private static func function(of descriptor: MTLComputePipelineDescriptor) throws -> SoftwareFunction {
        guard let computeFunction = descriptor.computeFunction else {
            misuse("MTLDebugDevice", selector, "computeFunction must not be nil.")
            throw MTLLibraryError(.functionNotFound, "The pipeline descriptor has no computeFunction.")
        }
        guard let given = computeFunction as? SoftwareFunction else {
            misuse(
                "MTLDebugDevice", selector,
                "computeFunction is not a function of this device (\(SoftwareDevice.shared.name)).")
            throw MTLLibraryError(.unsupported, "The function belongs to another device.")
        }
        guard descriptor.maxTotalThreadsPerThreadgroup <= SoftwareDevice.maxThreadsPerThreadgroup else {
            misuse(
                "MTLDebugDevice", selector,
                "maxTotalThreadsPerThreadgroup(\(descriptor.maxTotalThreadsPerThreadgroup)) must be <= 1024.")
            throw MTLLibraryError(.unsupported, "maxTotalThreadsPerThreadgroup is over the device's limit of 1024.")
        }
        return given
    }

    private static func checkMemory(_ length: Int) throws {
        guard length <= SoftwareDevice.maxThreadgroupMemoryLength else {
            throw MTLLibraryError(
                .compileFailure,
                """
                Threadgroup memory size (\(length)) exceeds the maximum threadgroup memory \
                allowed \
                (\(SoftwareDevice.maxThreadgroupMemoryLength)).
                """)
        }
    }

    var softwareDevice: SoftwareDevice { function.library.device }
    var device: any MTLDevice { softwareDevice }
    var gpuResourceID: MTLResourceID { MTLResourceID(implementation: UInt64(UInt(bitPattern: handle))) }
    override var description: String { "<SoftwarePipeline> label = \(label ?? "<none>"), function = \(function.name)" }

    /// This device does not support function pointers; `supportsFunctionPointers` is false.
    func functionHandle(function: any MTLFunction) -> (any MTLFunctionHandle)? { nil }

    func makeComputePipelineStateWithAdditionalBinaryFunctions(functions: [any MTLFunction]) throws
        -> any MTLComputePipelineState
    {
        throw MTLLibraryError(
            .unsupported, "\(softwareDevice.name) has no function pointers, so no functions can be added.")
    }

    func reflection(_ options: MTLPipelineOption) -> MTLComputePipelineReflection? {
        options.isDisjoint(with: [.bindingInfo, .bufferTypeInfo]) ? nil : MTLComputePipelineReflection(bindings)
    }

    /// Compiles code for a GPU now, so that an error is reported here instead of by a command buffer.
    private static func compile(_ function: OpaquePointer, for device: SoftwareDevice) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard let gpu = device.gpu else {
            guard setting("gpu_compile") == 1, !mrt_gpu_compile(function, &message) else { return }
            return note("gpu_compile: \(takeMessage(message) ?? "the compiler gave no message")")
        }
        guard !mrt_gpu_prepare(gpu, function, &message) else { return }
        throw MTLLibraryError(.compileFailure, takeMessage(message) ?? "The compiler gave no message.")
    }

    private static func lookUp(
        _ function: SoftwareFunction, _ archives: [any MTLBinaryArchive]?, _ options: MTLPipelineOption
    ) throws {
        let isKnown = (archives ?? []).contains { ($0 as? SoftwareBinaryArchive)?.contains(function) ?? false }
        guard !isKnown else { return }
        guard options.contains(.failOnBinaryArchiveMiss) else { return PipelineCompilations.add() }
        throw MTLBinaryArchiveError(
            .compilationFailure, "No binary archive of the descriptor holds function \(function.name).")
    }
}
