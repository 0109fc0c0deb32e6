public protocol MTLBlitCommandEncoder: MTLCommandEncoder {
    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int,
        to destinationBuffer: any MTLBuffer, destinationOffset: Int, size: Int)
    func fill(buffer: any MTLBuffer, range: Range<Int>, value: UInt8)
    func synchronize(resource: any MTLResource)
    func updateFence(_ fence: any MTLFence)
    func waitForFence(_ fence: any MTLFence)
}
