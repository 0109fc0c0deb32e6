final class SoftwareBlitEncoder: SoftwareEncoder, MTLBlitCommandEncoder, @unchecked Sendable {
    /// On macOS, the offsets and sizes of copies and fills must be multiples of this.
    private static let granularity = 4

    init(buffer: SoftwareCommandBuffer) { super.init(buffer: buffer, debugName: "MTLDebugBlitCommandEncoder") }

    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int, to destinationBuffer: any MTLBuffer,
        destinationOffset: Int,
        size: Int
    ) {
        let selector = "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"
        guard encodes(selector), let source = known(sourceBuffer, selector),
            let destination = known(destinationBuffer, selector),
            isAligned(
                selector, ("sourceOffset", sourceOffset), ("destinationOffset", destinationOffset), ("size", size)),
            fits(selector, "sourceOffset", sourceOffset, size, "sourceBuffer", source),
            fits(selector, "destinationOffset", destinationOffset, size, "destinationBuffer", destination)
        else { return }
        let from = source.memory.address + sourceOffset, to = destination.memory.address + destinationOffset
        guard
            from + size <= to || to + size <= from
                || refuse(
                    debugName, selector,
                    "source [\(sourceOffset), \(sourceOffset + size)) and destination [\(destinationOffset), "
                        + "\(destinationOffset + size)) overlap."
                )
        else { return }
        buffer.record(
            CopyCommand(
                encoder: record, source: reference(source), sourceOffset: sourceOffset,
                destination: reference(destination),
                destinationOffset: destinationOffset, size: size))
    }

    func fill(buffer target: any MTLBuffer, range: Range<Int>, value: UInt8) {
        let selector = "fillBuffer:range:value:"
        guard encodes(selector), let target = known(target, selector),
            isAligned(selector, ("range.location", range.lowerBound), ("range.length", range.count)),
            fits(selector, "range.location", range.lowerBound, range.count, "buffer", target)
        else { return }
        buffer.record(FillCommand(encoder: record, buffer: reference(target), range: range, value: value))
    }

    func synchronize(resource: any MTLResource) {
        let selector = "synchronizeResource:"
        guard encodes(selector), let target: any MTLResource = resource as? SoftwareTexture ?? known(resource, selector)
        else { return }
        guard target.storageMode != .managed else { return }
        misuse(
            debugName, selector,
            "synchronizeResource is for resources with MTLStorageModeManaged; this one is \(target.storageMode).")
    }

    private func reference(_ target: SoftwareBuffer) -> BufferReference {
        BufferReference(target, retained: buffer.retainedReferences)
    }

    private func isAligned(_ selector: String, _ values: (name: String, value: Int)...) -> Bool {
        values.allSatisfy { name, value in
            value % Self.granularity == 0
                || refuse(debugName, selector, "\(name)(\(value)) must be a multiple of \(Self.granularity).")
        }
    }

    private func fits(
        _ selector: String, _ name: String, _ offset: Int, _ size: Int, _ bufferName: String, _ target: SoftwareBuffer
    ) -> Bool {
        let length = target.length
        return (size > 0 || refuse(debugName, selector, "size(\(size)) must be > 0."))
            && (offset >= 0 && offset <= length && size <= length - offset
                || refuse(
                    debugName, selector,
                    """
                    (\(name)(\(offset)) + size(\(size)))(\(offset &+ size)) must be <= [\(bufferName) \
                    length](\(length)).
                    """))
    }
}
