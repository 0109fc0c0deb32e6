import MetalRuntime

extension SoftwareDevice {
    func makeTexture(descriptor: MTLTextureDescriptor) -> (any MTLTexture)? {
        guard let layout = accepted(descriptor, "newTextureWithDescriptor:"), !takeFault("allocate") else { return nil }
        let size = TextureShape(descriptor, layout).size
        return DeviceMemory(length: size, label: nil).map {
            SoftwareTexture(descriptor, layout: layout, memory: $0)
        }
    }

    func makeSamplerState(descriptor: MTLSamplerDescriptor) -> (any MTLSamplerState)? { SoftwareSampler(descriptor) }

    func heapTextureSizeAndAlign(descriptor desc: MTLTextureDescriptor) -> MTLSizeAndAlign {
        guard let layout = desc.pixelFormat.layout else { return MTLSizeAndAlign() }
        let size = roundUp(TextureShape(desc, layout).size, SoftwareHeap.alignment)
        return MTLSizeAndAlign(size: size, align: SoftwareHeap.alignment)
    }

    func minimumLinearTextureAlignment(for format: MTLPixelFormat) -> Int { 16 }
    func minimumTextureBufferAlignment(for format: MTLPixelFormat) -> Int { 16 }

    var readWriteTextureSupport: MTLReadWriteTextureTier { .tier2 }

    /// Returns the pixel layout of a texture; reports a misuse and returns nil if this device does not support it.
    func accepted(_ descriptor: MTLTextureDescriptor, _ selector: String) -> PixelLayout? {
        guard gpu == nil else {
            misuse("MTLTextureDescriptorInternal", selector, "\(name) has no textures here: use the software device.")
            return nil
        }
        guard let layout = descriptor.pixelFormat.layout else {
            misuse(
                "MTLTextureDescriptorInternal", selector,
                "\(name) has no textures of the format \(descriptor.pixelFormat): use components of 8, 16 or 32 bits.")
            return nil
        }
        let sizes = [descriptor.width, descriptor.height, descriptor.depth, descriptor.arrayLength]
        let isArray = [.type1DArray, .type2DArray, .typeCubeArray].contains(descriptor.textureType)
        let isMultisample = [.type2DMultisample, .type2DMultisampleArray].contains(descriptor.textureType)
        let rules: [(holds: Bool, otherwise: String)] = [
            (
                !isMultisample && descriptor.sampleCount == 1,
                "only a render pass writes textures of several samples a pixel, and \(name) has none."
            ),
            (
                descriptor.textureType.faces == 1 || descriptor.width == descriptor.height,
                "a cube's width(\(sizes[0])) must be its height(\(sizes[1]))."
            ),
            (sizes.allSatisfy { $0 > 0 }, "width, height, depth and arrayLength must be at least 1, not \(sizes)."),
            (sizes.allSatisfy { $0 <= 16384 }, "sizes \(sizes) must be at most 16384."),
            (isArray || descriptor.arrayLength == 1, "arrayLength(\(sizes[3])) is for arrays."),
            (descriptor.textureType == .type3D || descriptor.depth == 1, "depth(\(sizes[2])) is for 3D textures."),
            (
                (1...levelCount(of: sizes.prefix(3).max()!)).contains(descriptor.mipmapLevelCount),
                "mipmapLevelCount(\(descriptor.mipmapLevelCount)) is more than there are sizes down to 1."
            ),
            (
                descriptor.storageMode != .memoryless,
                "MTLStorageModeMemoryless is for what is rendered to, which \(name) does not."
            ),
        ]
        for rule in rules where !rule.holds {
            misuse("MTLTextureDescriptorInternal", selector, rule.otherwise)
            return nil
        }
        return layout
    }
}

extension SoftwareBuffer {
    func makeTexture(descriptor: MTLTextureDescriptor, offset: Int, bytesPerRow: Int) -> (any MTLTexture)? {
        let selector = "newTextureWithDescriptor:offset:bytesPerRow:"
        guard let layout = memory.device.accepted(descriptor, selector) else { return nil }
        let rows = descriptor.height, needed = (rows - 1) * bytesPerRow + descriptor.width * layout.pixelBytes
        guard
            offset >= 0 && offset % 16 == 0 && offset + needed <= length
                && bytesPerRow >= descriptor.width * layout.pixelBytes && descriptor.mipmapLevelCount == 1
                && [.type1D, .type2D, .typeTextureBuffer].contains(descriptor.textureType)
                || refuse(
                    "MTLDebugBuffer", selector,
                    """
                    \(rows) rows of \(bytesPerRow) bytes from offset(\(offset)), a multiple of 16, must lie inside the \
                    buffer's length(\(length)), and be one level of a 1D or 2D texture.
                    """)
        else { return nil }
        return SoftwareTexture(descriptor, layout: layout, of: self, offset: offset, rowBytes: bytesPerRow)
    }
}
