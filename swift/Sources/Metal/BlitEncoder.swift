public struct MTLBlitOption: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var depthFromDepthStencil: MTLBlitOption { MTLBlitOption(rawValue: 1) }
    public static var stencilFromDepthStencil: MTLBlitOption { MTLBlitOption(rawValue: 2) }
    public static var rowLinearPVRTC: MTLBlitOption { MTLBlitOption(rawValue: 4) }
}

public protocol MTLBlitCommandEncoder: MTLCommandEncoder {
    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin)
    func copy(from sourceTexture: any MTLTexture, to destinationTexture: any MTLTexture)
    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, to destinationTexture: any MTLTexture,
        destinationSlice: Int, destinationLevel: Int, sliceCount: Int, levelCount: Int)
    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int, sourceBytesPerRow: Int, sourceBytesPerImage: Int,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin)
    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int, sourceBytesPerRow: Int, sourceBytesPerImage: Int,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin, options: MTLBlitOption)
    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationBuffer: any MTLBuffer, destinationOffset: Int,
        destinationBytesPerRow: Int, destinationBytesPerImage: Int)
    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationBuffer: any MTLBuffer, destinationOffset: Int,
        destinationBytesPerRow: Int, destinationBytesPerImage: Int, options: MTLBlitOption)
    func generateMipmaps(for texture: any MTLTexture)
    func optimizeContentsForGPUAccess(texture: any MTLTexture)
    func optimizeContentsForGPUAccess(texture: any MTLTexture, slice: Int, level: Int)
    func optimizeContentsForCPUAccess(texture: any MTLTexture)
    func optimizeContentsForCPUAccess(texture: any MTLTexture, slice: Int, level: Int)
    func synchronize(texture: any MTLTexture, slice: Int, level: Int)
    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int,
        to destinationBuffer: any MTLBuffer, destinationOffset: Int, size: Int)
    func copy(
        from sourceTensor: any MTLTensor, sourceOrigin: MTLTensorExtents, sourceDimensions: MTLTensorExtents,
        to destinationTensor: any MTLTensor, destinationOrigin: MTLTensorExtents,
        destinationDimensions: MTLTensorExtents)
    func fill(buffer: any MTLBuffer, range: Range<Int>, value: UInt8)
    func synchronize(resource: any MTLResource)
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
    func resolveCounters(
        _ sampleBuffer: any MTLCounterSampleBuffer, range: Range<Int>, destinationBuffer: any MTLBuffer,
        destinationOffset: Int)
    func updateFence(_ fence: any MTLFence)
    func waitForFence(_ fence: any MTLFence)
}
