import MetalRuntime

/// Copies between buffers and textures: regions, slices, levels and whole textures.
extension SoftwareBlitEncoder {
    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin
    ) {
        let selector = "copyFromTexture:…toTexture:…"
        guard encodes(selector), let source = known(sourceTexture, selector),
            let destination = known(destinationTexture, selector)
        else { return }
        let from = TexturePart(source, MTLRegion(origin: sourceOrigin, size: sourceSize), sourceLevel, sourceSlice)
        let to = TexturePart(
            destination, MTLRegion(origin: destinationOrigin, size: sourceSize), destinationLevel, destinationSlice)
        guard fits(from, selector), fits(to, selector), haveOneSize(from, to, selector) else { return }
        buffer.record(TextureCopyCommand(encoder: record, source: .texture(from), destination: .texture(to)))
    }

    func copy(from sourceTexture: any MTLTexture, to destinationTexture: any MTLTexture) {
        copy(
            from: sourceTexture, sourceSlice: 0, sourceLevel: 0, to: destinationTexture, destinationSlice: 0,
            destinationLevel: 0, sliceCount: min(sourceTexture.arrayLength, destinationTexture.arrayLength),
            levelCount: min(sourceTexture.mipmapLevelCount, destinationTexture.mipmapLevelCount))
    }

    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, to destinationTexture: any MTLTexture,
        destinationSlice: Int, destinationLevel: Int, sliceCount: Int, levelCount: Int
    ) {
        for slice in 0..<sliceCount {
            for level in 0..<levelCount {
                let size = MTLSizeMake(
                    max(1, sourceTexture.width >> (sourceLevel + level)),
                    max(1, sourceTexture.height >> (sourceLevel + level)),
                    max(1, sourceTexture.depth >> (sourceLevel + level)))
                copy(
                    from: sourceTexture, sourceSlice: sourceSlice + slice, sourceLevel: sourceLevel + level,
                    sourceOrigin: MTLOrigin(), sourceSize: size, to: destinationTexture,
                    destinationSlice: destinationSlice + slice, destinationLevel: destinationLevel + level,
                    destinationOrigin: MTLOrigin())
            }
        }
    }

    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int, sourceBytesPerRow: Int, sourceBytesPerImage: Int,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin
    ) {
        let selector = "copyFromBuffer:…toTexture:…"
        guard encodes(selector), let source = known(sourceBuffer, selector),
            let destination = known(destinationTexture, selector)
        else { return }
        let to = TexturePart(
            destination, MTLRegion(origin: destinationOrigin, size: sourceSize), destinationLevel, destinationSlice)
        let from = BufferPart(source, sourceOffset, sourceBytesPerRow, sourceBytesPerImage)
        guard fits(to, selector), fits(from, to, selector) else { return }
        buffer.record(TextureCopyCommand(encoder: record, source: .buffer(from), destination: .texture(to)))
    }

    func copy(
        from sourceBuffer: any MTLBuffer, sourceOffset: Int, sourceBytesPerRow: Int, sourceBytesPerImage: Int,
        sourceSize: MTLSize, to destinationTexture: any MTLTexture, destinationSlice: Int, destinationLevel: Int,
        destinationOrigin: MTLOrigin, options: MTLBlitOption
    ) {
        copy(
            from: sourceBuffer, sourceOffset: sourceOffset, sourceBytesPerRow: sourceBytesPerRow,
            sourceBytesPerImage: sourceBytesPerImage, sourceSize: sourceSize, to: destinationTexture,
            destinationSlice: destinationSlice, destinationLevel: destinationLevel,
            destinationOrigin: destinationOrigin)
    }

    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationBuffer: any MTLBuffer, destinationOffset: Int,
        destinationBytesPerRow: Int, destinationBytesPerImage: Int
    ) {
        let selector = "copyFromTexture:…toBuffer:…"
        guard encodes(selector), let source = known(sourceTexture, selector),
            let destination = known(destinationBuffer, selector)
        else { return }
        let from = TexturePart(source, MTLRegion(origin: sourceOrigin, size: sourceSize), sourceLevel, sourceSlice)
        let to = BufferPart(destination, destinationOffset, destinationBytesPerRow, destinationBytesPerImage)
        guard fits(from, selector), fits(to, from, selector) else { return }
        buffer.record(TextureCopyCommand(encoder: record, source: .texture(from), destination: .buffer(to)))
    }

    func copy(
        from sourceTexture: any MTLTexture, sourceSlice: Int, sourceLevel: Int, sourceOrigin: MTLOrigin,
        sourceSize: MTLSize, to destinationBuffer: any MTLBuffer, destinationOffset: Int,
        destinationBytesPerRow: Int, destinationBytesPerImage: Int, options: MTLBlitOption
    ) {
        copy(
            from: sourceTexture, sourceSlice: sourceSlice, sourceLevel: sourceLevel, sourceOrigin: sourceOrigin,
            sourceSize: sourceSize, to: destinationBuffer, destinationOffset: destinationOffset,
            destinationBytesPerRow: destinationBytesPerRow, destinationBytesPerImage: destinationBytesPerImage)
    }

    func generateMipmaps(for texture: any MTLTexture) {
        misuse(
            debugName, "generateMipmapsForTexture:",
            "\(SoftwareDevice.shared.name) filters no levels: write them with a kernel, or with replaceRegion.")
    }

    func optimizeContentsForGPUAccess(texture: any MTLTexture) {}
    func optimizeContentsForGPUAccess(texture: any MTLTexture, slice: Int, level: Int) {}
    func optimizeContentsForCPUAccess(texture: any MTLTexture) {}
    func optimizeContentsForCPUAccess(texture: any MTLTexture, slice: Int, level: Int) {}
    func synchronize(texture: any MTLTexture, slice: Int, level: Int) {}

    private func known(_ texture: any MTLTexture, _ selector: String) -> SoftwareTexture? {
        if let texture = texture as? SoftwareTexture { return texture }
        misuse(debugName, selector, "the texture is not one of this device (\(SoftwareDevice.shared.name)).")
        return nil
    }

    private func fits(_ part: TexturePart, _ selector: String) -> Bool {
        part.texture.contains(part.region, part.level, part.slice)
            || refuse(
                debugName, selector,
                "the region, level(\(part.level)) and slice(\(part.slice)) must lie inside the texture "
                    + "(\(part.texture))."
            )
    }

    private func haveOneSize(_ from: TexturePart, _ to: TexturePart, _ selector: String) -> Bool {
        from.texture.layout.pixelBytes == to.texture.layout.pixelBytes
            || refuse(
                debugName, selector,
                "formats \(from.texture.pixelFormat) and \(to.texture.pixelFormat) must have pixels of one size.")
    }

    private func fits(_ part: BufferPart, _ texture: TexturePart, _ selector: String) -> Bool {
        let size = texture.region.size
        let end =
            part.offset + (size.depth - 1) * part.bytesPerImage + (size.height - 1) * part.bytesPerRow
            + texture.rowBytes
        return part.offset >= 0 && end <= part.buffer.length
            || refuse(
                debugName, selector,
                "the copied rows end at byte \(end), which must be <= [buffer length](\(part.buffer.length)).")
    }
}

/// A region of one level of one slice.
struct TexturePart {
    let texture: SoftwareTexture
    let region: MTLRegion
    let level: Int
    let slice: Int

    init(_ texture: SoftwareTexture, _ region: MTLRegion, _ level: Int, _ slice: Int) {
        (self.texture, self.region, self.level, self.slice) = (texture, region, level, slice)
    }

    var rowBytes: Int { region.size.width * texture.layout.pixelBytes }
}

/// Rows of pixels in a buffer.
struct BufferPart {
    let buffer: SoftwareBuffer
    let offset: Int
    let bytesPerRow: Int
    let bytesPerImage: Int

    init(_ buffer: SoftwareBuffer, _ offset: Int, _ bytesPerRow: Int, _ bytesPerImage: Int) {
        (self.buffer, self.offset, self.bytesPerRow, self.bytesPerImage) = (buffer, offset, bytesPerRow, bytesPerImage)
    }
}

struct TextureCopyCommand: Command {
    enum Side {
        case buffer(BufferPart)
        case texture(TexturePart)

        var buffer: SoftwareBuffer? {
            if case .buffer(let part) = self { return part.buffer }
            return nil
        }

        var texture: TexturePart? {
            if case .texture(let part) = self { return part }
            return nil
        }

        /// Returns the addresses of the rows of a region of this size, in order.
        func rows(_ size: MTLSize) -> [UnsafeMutableRawPointer] {
            switch self {
            case .buffer(let part):
                return (0..<size.depth).flatMap { z in
                    (0..<size.height).map { y in
                        part.buffer.memory.address + part.offset + z * part.bytesPerImage + y * part.bytesPerRow
                    }
                }
            case .texture(let part):
                var rows: [UnsafeMutableRawPointer] = []
                part.texture.forEachRow(part.region, part.level, part.slice) { row, _, _ in rows.append(row) }
                return rows
            }
        }
    }

    let encoder: EncoderRecord?
    let source: Side
    let destination: Side

    var buffers: [SoftwareBuffer] { [source.buffer, destination.buffer].compactMap { $0 } }

    func run() -> CommandFailure? {
        guard let part = source.texture ?? destination.texture else { return nil }
        for (from, to) in zip(source.rows(part.region.size), destination.rows(part.region.size)) {
            to.copyMemory(from: from, byteCount: part.rowBytes)
            mrt_memory_mark_copied(to, from, part.rowBytes)
        }
        return nil
    }
}
