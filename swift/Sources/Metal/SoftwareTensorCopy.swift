import MetalRuntime

/// Copies a slice of a tensor to a slice of another tensor, with the same dimensions and type.
struct TensorCopyCommand: Command {
    let encoder: EncoderRecord?
    let source: SoftwareTensor
    let sourceOrigin: MTLTensorExtents
    let destination: SoftwareTensor
    let destinationOrigin: MTLTensorExtents
    let dimensions: MTLTensorExtents

    var buffers: [SoftwareBuffer] { [source.softwareBuffer, destination.softwareBuffer].compactMap { $0 } }

    func run() -> CommandFailure? {
        let from = source.slice(sourceOrigin), to = destination.slice(destinationOrigin)
        TensorSlice.copy(dimensions.extents, size: source.dataType.size, from: from, to: to) {
            $0.copyMemory(from: $1, byteCount: $2)
            mrt_memory_mark_copied($0, $1, $2)
        }
        return nil
    }
}

extension SoftwareBlitEncoder {
    func copy(
        from sourceTensor: any MTLTensor, sourceOrigin: MTLTensorExtents, sourceDimensions: MTLTensorExtents,
        to destinationTensor: any MTLTensor, destinationOrigin: MTLTensorExtents,
        destinationDimensions: MTLTensorExtents
    ) {
        let selector = "copyFromTensor:sourceOrigin:sourceDimensions:toTensor:destinationOrigin:destinationDimensions:"
        guard encodes(selector) else { return }
        guard let source = sourceTensor as? SoftwareTensor, let destination = destinationTensor as? SoftwareTensor
        else { return misuse(debugName, selector, "a tensor is not one of this device (\(device.name)).") }
        guard source.holds(sourceOrigin, sourceDimensions, selector, for: debugName),
            destination.holds(destinationOrigin, destinationDimensions, selector, for: debugName),
            sourceDimensions == destinationDimensions
                || refuse(
                    debugName, selector,
                    """
                    sourceDimensions \(sourceDimensions) and destinationDimensions \(destinationDimensions) must be \
                    equal.
                    """),
            source.dataType == destination.dataType
                || refuse(
                    debugName, selector,
                    "the tensors' types (\(source.dataType), \(destination.dataType)) must be equal.")
        else { return }
        buffer.record(
            TensorCopyCommand(
                encoder: record, source: source, sourceOrigin: sourceOrigin, destination: destination,
                destinationOrigin: destinationOrigin, dimensions: sourceDimensions))
    }
}
