/// An encoder of Metal 4, for dispatches and copies. Only barriers order its commands.
final class Metal4Encoder: NSObject, MTL4ComputeCommandEncoder {
    var label: String?
    private(set) var isOpen = true
    private let buffer: Metal4Buffer
    private var pipeline: (any MTLComputePipelineState)?
    private var table: SoftwareArgumentTable?
    private var threadgroupLengths: [Int: Int] = [:]
    private var groups: [String] = []
    private var used: MTLStages = []

    init(_ buffer: Metal4Buffer) { self.buffer = buffer }

    deinit {
        guard isOpen else { return }
        misuse(Self.debugName, "dealloc", "Command encoder released without endEncoding")
    }

    var commandBuffer: (any MTL4CommandBuffer)? { buffer }

    func stages() -> MTLStages { used }

    func setComputePipelineState(_ state: any MTLComputePipelineState) {
        guard encodes("setComputePipelineState:") else { return }
        pipeline = state
    }

    func setArgumentTable(_ argumentTable: (any MTL4ArgumentTable)?) {
        guard encodes("setArgumentTable:") else { return }
        table = argumentTable as? SoftwareArgumentTable
    }

    func setThreadgroupMemoryLength(_ length: Int, index: Int) {
        guard encodes("setThreadgroupMemoryLength:atIndex:") else { return }
        threadgroupLengths[index] = length
    }

    // MARK: Dispatching

    func dispatchThreads(threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
        dispatch(.threads(threadsPerGrid), threadsPerThreadgroup, "dispatchThreads:threadsPerThreadgroup:")
    }

    func dispatchThreadgroups(threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize) {
        dispatch(
            .threadgroups(threadgroupsPerGrid), threadsPerThreadgroup, "dispatchThreadgroups:threadsPerThreadgroup:")
    }

    func dispatchThreadgroups(indirectBuffer: MTLGPUAddress, threadsPerThreadgroup: MTLSize) {
        dispatch(
            .indirect(indirectBuffer), threadsPerThreadgroup,
            "dispatchThreadgroupsWithIndirectBuffer:threadsPerThreadgroup:")
    }

    private func dispatch(_ grid: Metal4Dispatch.Grid, _ threadsPerThreadgroup: MTLSize, _ selector: String) {
        guard encodes(selector) else { return }
        used.insert(.dispatch)
        buffer.record(
            .dispatch(
                Metal4Dispatch(
                    label: path, pipeline: pipeline, arguments: table?.contents ?? .init(),
                    threadgroupLengths: threadgroupLengths, grid: grid,
                    threadsPerThreadgroup: threadsPerThreadgroup)))
    }

    // MARK: Copying

    func copy(
        sourceBuffer: any MTLBuffer, sourceOffset: Int, destinationBuffer: any MTLBuffer, destinationOffset: Int,
        size: Int
    ) {
        blit("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", sourceBuffer, destinationBuffer) {
            $0.copy(
                from: sourceBuffer, sourceOffset: sourceOffset, to: destinationBuffer,
                destinationOffset: destinationOffset, size: size)
        }
    }

    func copy(
        sourceTensor: any MTLTensor, sourceOrigin: MTLTensorExtents, sourceDimensions: MTLTensorExtents,
        destinationTensor: any MTLTensor, destinationOrigin: MTLTensorExtents,
        destinationDimensions: MTLTensorExtents
    ) {
        let selector = "copyFromTensor:sourceOrigin:sourceDimensions:toTensor:destinationOrigin:destinationDimensions:"
        blit(selector, sourceTensor, destinationTensor) {
            $0.copy(
                from: sourceTensor, sourceOrigin: sourceOrigin, sourceDimensions: sourceDimensions,
                to: destinationTensor, destinationOrigin: destinationOrigin,
                destinationDimensions: destinationDimensions)
        }
    }

    func copy(sourceTexture: any MTLTexture, destinationTexture: any MTLTexture) {
        blit("copyFromTexture:toTexture:", sourceTexture, destinationTexture) {
            $0.copy(from: sourceTexture, to: destinationTexture)
        }
    }

    func fill(buffer target: any MTLBuffer, range: Range<Int>, value: UInt8) {
        blit("fillBuffer:range:value:", target) { $0.fill(buffer: target, range: range, value: value) }
    }

    func generateMipmaps(texture: any MTLTexture) {
        blit("generateMipmapsForTexture:", texture) { $0.generateMipmaps(for: texture) }
    }

    private func blit(
        _ selector: String, _ resources: any MTLResource..., encode: @escaping (any MTLBlitCommandEncoder) -> Void
    ) {
        guard encodes(selector) else { return }
        used.insert(.blit)
        buffer.record(.blit(label: path, resources, encode))
    }

    // MARK: Order

    func barrier(
        afterQueueStages: MTLStages, beforeStages: MTLStages, visibilityOptions: MTL4VisibilityOptions
    ) {
        order("barrierAfterQueueStages:beforeStages:visibilityOptions:")
    }

    func barrier(
        afterStages: MTLStages, beforeQueueStages: MTLStages, visibilityOptions: MTL4VisibilityOptions
    ) {
        order("barrierAfterStages:beforeQueueStages:visibilityOptions:")
    }

    func barrier(
        afterEncoderStages: MTLStages, beforeEncoderStages: MTLStages, visibilityOptions: MTL4VisibilityOptions
    ) {
        let selector = "barrierAfterEncoderStages:beforeEncoderStages:visibilityOptions:"
        let own: MTLStages = [.dispatch, .blit, .accelerationStructure]
        guard
            own.isSuperset(of: afterEncoderStages.union(beforeEncoderStages)) || afterEncoderStages == .all
                || refuse(
                    Self.debugName, selector,
                    "the stages of a compute encoder are MTLStageDispatch, MTLStageBlit and "
                        + "MTLStageAccelerationStructure.")
        else { return }
        order(selector)
    }

    func updateFence(_ fence: any MTLFence, afterEncoderStages: MTLStages) {
        order("updateFence:afterEncoderStages:")
    }

    func waitForFence(_ fence: any MTLFence, beforeEncoderStages: MTLStages) {
        order("waitForFence:beforeEncoderStages:")
    }

    private func order(_ selector: String) {
        guard encodes(selector) else { return }
        buffer.record(.barrier)
    }

    // MARK: The encoder

    func insertDebugSignpost(_ string: String) { _ = encodes("insertDebugSignpost:") }

    func pushDebugGroup(_ string: String) {
        guard encodes("pushDebugGroup:") else { return }
        groups.append(string)
    }

    func popDebugGroup() {
        guard encodes("popDebugGroup"),
            !groups.isEmpty
                || refuse(Self.debugName, "popDebugGroup", "popDebugGroup called without a matching pushDebugGroup.")
        else { return }
        groups.removeLast()
    }

    func endEncoding() {
        guard isOpen || refuse(Self.debugName, "endEncoding", "endEncoding has already been called.") else { return }
        if !groups.isEmpty {
            misuse(Self.debugName, "endEncoding", "debug groups \(groups) were pushed and not popped.")
        }
        isOpen = false
    }

    private var path: String? {
        let parts = buffer.path + [label].compactMap { $0 } + groups
        return parts.isEmpty ? nil : parts.joined(separator: "/")
    }

    private func encodes(_ selector: String) -> Bool {
        isOpen
            || refuse(
                Self.debugName, selector, "encoding after endEncoding: this encoder has ended; make a new one.")
    }

    static let debugName = "MTL4DebugComputeCommandEncoder"
}
