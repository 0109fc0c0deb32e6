import MetalRuntime

/// A texture. Its pixels are stored row by row, level by level, slice by slice, in separate memory or in a buffer's
/// memory.
final class SoftwareTexture: NSObject, MTLTexture, @unchecked Sendable {
    let memory: DeviceMemory
    let layout: PixelLayout
    let textureType: MTLTextureType
    let pixelFormat: MTLPixelFormat
    let resourceOptions: MTLResourceOptions
    let hazardTrackingMode: MTLHazardTrackingMode
    let usage: MTLTextureUsage
    let allowGPUOptimizedContents: Bool
    let parent: (any MTLTexture)?
    let parentRelativeLevel: Int
    let parentRelativeSlice: Int
    let buffer: (any MTLBuffer)?
    let bufferOffset: Int
    let softwareHeap: SoftwareHeap?
    let heapOffset: Int
    /// The state that kernels read. Its address never changes, since dispatches point to it.
    let state: UnsafeMutablePointer<MrtTexture>
    private var labelText: UnsafeMutablePointer<CChar>?

    var label: String? {
        didSet {
            if buffer == nil && softwareHeap == nil { mrt_memory_set_label(memory.address, label) }
            free(labelText)
            labelText = label.flatMap { strdup($0) }
            state.pointee.label = UnsafePointer(labelText)
        }
    }

    /// Creates a texture in new memory, or in a part of a heap.
    init(
        _ descriptor: MTLTextureDescriptor, layout: PixelLayout, memory: DeviceMemory, heap: SoftwareHeap? = nil,
        heapOffset: Int = 0
    ) {
        self.memory = memory
        self.layout = layout
        textureType = descriptor.textureType
        pixelFormat = descriptor.pixelFormat
        hazardTrackingMode = descriptor.hazardTrackingMode == .untracked ? .untracked : .tracked
        resourceOptions = MTLResourceOptions(descriptor.cpuCacheMode, descriptor.storageMode, hazardTrackingMode)
        usage = descriptor.usage
        allowGPUOptimizedContents = descriptor.allowGPUOptimizedContents
        (parent, parentRelativeLevel, parentRelativeSlice) = (nil, 0, 0)
        (buffer, bufferOffset) = (nil, 0)
        (softwareHeap, self.heapOffset) = (heap, heapOffset)
        state = TextureShape(descriptor, layout).state(at: memory.address)
        super.init()
        ResourceTable.shared.add(self, gpuResourceID)
    }

    /// Creates a texture over the pixels in a buffer.
    init(_ descriptor: MTLTextureDescriptor, layout: PixelLayout, of buffer: SoftwareBuffer, offset: Int, rowBytes: Int)
    {
        memory = buffer.memory
        self.layout = layout
        textureType = descriptor.textureType
        pixelFormat = descriptor.pixelFormat
        hazardTrackingMode = buffer.hazardTrackingMode
        resourceOptions = buffer.resourceOptions
        usage = descriptor.usage
        allowGPUOptimizedContents = false
        (parent, parentRelativeLevel, parentRelativeSlice) = (nil, 0, 0)
        (self.buffer, bufferOffset) = (buffer, offset)
        (softwareHeap, heapOffset) = (nil, 0)
        state = TextureShape(descriptor, layout, rowBytes: rowBytes).state(at: memory.address + offset)
        super.init()
        ResourceTable.shared.add(self, gpuResourceID)
    }

    /// Creates a view of some levels and slices of another texture, in a format whose pixels have the same size.
    init(
        viewOf original: SoftwareTexture, layout: PixelLayout, format: MTLPixelFormat, type: MTLTextureType,
        levels: Range<Int>, slices: Range<Int>
    ) {
        memory = original.memory
        self.layout = layout
        textureType = type
        pixelFormat = format
        hazardTrackingMode = original.hazardTrackingMode
        resourceOptions = original.resourceOptions
        usage = original.usage
        allowGPUOptimizedContents = original.allowGPUOptimizedContents
        (parent, parentRelativeLevel, parentRelativeSlice) = (original, levels.lowerBound, slices.lowerBound)
        (buffer, bufferOffset) = (original.buffer, original.bufferOffset)
        (softwareHeap, heapOffset) = (original.softwareHeap, original.heapOffset)
        state = .allocate(capacity: 1)
        var view = original.state.pointee
        view.address += slices.lowerBound * Int(view.slice_bytes)
        view.array_length = UInt32(slices.count)
        view.level_count = UInt32(levels.count)
        view.label = nil
        view.set(layout)
        withUnsafeMutableBytes(of: &view.levels) { raw in
            let list = raw.bindMemory(to: MrtLevel.self)
            for level in 0..<levels.count { list[level] = list[levels.lowerBound + level] }
        }
        state.initialize(to: view)
        super.init()
        ResourceTable.shared.add(self, gpuResourceID)
    }

    deinit {
        ResourceTable.shared.remove(gpuResourceID)
        state.deallocate()
        free(labelText)
    }

    var device: any MTLDevice { SoftwareDevice.shared }
    var heap: (any MTLHeap)? { softwareHeap }
    var storageMode: MTLStorageMode { resourceOptions.storageMode }
    var cpuCacheMode: MTLCPUCacheMode { resourceOptions.cpuCacheMode }
    var allocatedSize: Int { roundUp(memory.length, SoftwareDevice.pageSize) }
    var width: Int { Int(level(0).width) }
    var height: Int { Int(level(0).height) }
    var depth: Int { Int(level(0).depth) }
    var mipmapLevelCount: Int { Int(state.pointee.level_count) }
    var arrayLength: Int { sliceCount / textureType.faces }
    /// Each face of a cube is a slice.
    var sliceCount: Int { Int(state.pointee.array_length) }
    var sampleCount: Int { 1 }
    var bufferBytesPerRow: Int { buffer == nil ? 0 : Int(level(0).row_bytes) }
    var rootResource: (any MTLResource)? { parent ?? buffer }
    var isShareable: Bool { false }
    var isFramebufferOnly: Bool { false }
    var compressionType: MTLTextureCompressionType { .lossless }
    var swizzle: MTLTextureSwizzleChannels { MTLTextureSwizzleChannels() }
    var gpuResourceID: MTLResourceID { MTLResourceID(implementation: UInt64(UInt(bitPattern: state))) }
    override var description: String {
        "<SoftwareTexture> label = \(label ?? "<none>"), \(pixelFormat), \(width) x \(height) x \(depth)"
    }

    func level(_ index: Int) -> MrtLevel {
        withUnsafeBytes(of: &state.pointee.levels) { $0.bindMemory(to: MrtLevel.self)[index] }
    }

    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState { .nonVolatile }
    func makeAliasable() { if softwareHeap != nil { memory.giveBack() } }
    func isAliasable() -> Bool { false }

    // MARK: Pixels

    func getBytes(
        _ pixelBytes: UnsafeMutableRawPointer, bytesPerRow: Int, bytesPerImage: Int, from region: MTLRegion,
        mipmapLevel level: Int, slice: Int
    ) {
        guard accepts(region, level, slice, "getBytes:bytesPerRow:bytesPerImage:fromRegion:mipmapLevel:slice:") else {
            return
        }
        let bytes = region.size.width * layout.pixelBytes
        forEachRow(region, level, slice) { row, y, z in
            (pixelBytes + z * bytesPerImage + y * bytesPerRow).copyMemory(from: row, byteCount: bytes)
        }
    }

    func getBytes(
        _ pixelBytes: UnsafeMutableRawPointer, bytesPerRow: Int, from region: MTLRegion, mipmapLevel level: Int
    ) {
        getBytes(
            pixelBytes, bytesPerRow: bytesPerRow, bytesPerImage: bytesPerRow * region.size.height, from: region,
            mipmapLevel: level, slice: 0)
    }

    func replace(
        region: MTLRegion, mipmapLevel level: Int, slice: Int, withBytes pixelBytes: UnsafeRawPointer, bytesPerRow: Int,
        bytesPerImage: Int
    ) {
        guard accepts(region, level, slice, "replaceRegion:mipmapLevel:slice:withBytes:bytesPerRow:bytesPerImage:")
        else { return }
        let bytes = region.size.width * layout.pixelBytes
        forEachRow(region, level, slice) { row, y, z in
            row.copyMemory(from: pixelBytes + z * bytesPerImage + y * bytesPerRow, byteCount: bytes)
            mrt_memory_mark_written(row, bytes)
        }
    }

    func replace(
        region: MTLRegion, mipmapLevel level: Int, withBytes pixelBytes: UnsafeRawPointer, bytesPerRow: Int
    ) {
        replace(
            region: region, mipmapLevel: level, slice: 0, withBytes: pixelBytes, bytesPerRow: bytesPerRow,
            bytesPerImage: bytesPerRow * region.size.height)
    }

    /// Calls `body` with the address of the first pixel of each row of a region, and the row's position in the region.
    func forEachRow(
        _ region: MTLRegion, _ level: Int, _ slice: Int, _ body: (UnsafeMutableRawPointer, Int, Int) -> Void
    ) {
        let image = self.level(level)
        let start =
            state.pointee.address + slice * Int(state.pointee.slice_bytes) + Int(image.offset)
            + region.origin.x * layout.pixelBytes
        for z in 0..<region.size.depth {
            for y in 0..<region.size.height {
                body(
                    start + (region.origin.z + z) * Int(image.image_bytes) + (region.origin.y + y)
                        * Int(image.row_bytes),
                    y, z)
            }
        }
    }

    func contains(_ region: MTLRegion, _ level: Int, _ slice: Int) -> Bool {
        guard (0..<mipmapLevelCount).contains(level), (0..<sliceCount).contains(slice) else { return false }
        let image = self.level(level), origin = region.origin, size = region.size
        let axes = [
            (origin.x, size.width, image.width), (origin.y, size.height, image.height),
            (origin.z, size.depth, image.depth),
        ]
        return axes.allSatisfy { $0 >= 0 && $1 >= 0 && $0 + $1 <= Int($2) }
    }

    private func accepts(_ region: MTLRegion, _ level: Int, _ slice: Int, _ selector: String) -> Bool {
        (storageMode != .private
            || refuse(
                "MTLDebugTexture", selector,
                "the CPU cannot use a texture with MTLStorageModePrivate; copy it with a blit encoder"))
            && (contains(region, level, slice)
                || refuse(
                    "MTLDebugTexture", selector,
                    "the region, level(\(level)) and slice(\(slice)) must lie inside the texture (\(self))."))
    }

    // MARK: Views

    func makeTextureView(pixelFormat: MTLPixelFormat) -> (any MTLTexture)? {
        makeTextureView(
            pixelFormat: pixelFormat, textureType: textureType, levels: 0..<mipmapLevelCount, slices: 0..<sliceCount)
    }

    func makeTextureView(
        pixelFormat: MTLPixelFormat, textureType: MTLTextureType, levels levelRange: Range<Int>,
        slices sliceRange: Range<Int>
    ) -> (any MTLTexture)? {
        let selector = "newTextureViewWithPixelFormat:textureType:levels:slices:"
        guard let layout = pixelFormat.layout, layout.pixelBytes == self.layout.pixelBytes else {
            misuse("MTLDebugTexture", selector, "\(pixelFormat) is not of the size of \(self.pixelFormat).")
            return nil
        }
        guard
            (0...mipmapLevelCount).contains(levelRange.upperBound) && !levelRange.isEmpty && !sliceRange.isEmpty
                && (0...sliceCount).contains(sliceRange.upperBound) && sliceRange.count % textureType.faces == 0
                || refuse("MTLDebugTexture", selector, "levels \(levelRange) and slices \(sliceRange) must be its own.")
        else { return nil }
        return SoftwareTexture(
            viewOf: self, layout: layout, format: pixelFormat, type: textureType, levels: levelRange,
            slices: sliceRange)
    }

    func makeTextureView(
        pixelFormat: MTLPixelFormat, textureType: MTLTextureType, levels levelRange: Range<Int>,
        slices sliceRange: Range<Int>, swizzle: MTLTextureSwizzleChannels
    ) -> (any MTLTexture)? {
        let components = [swizzle.red, swizzle.green, swizzle.blue, swizzle.alpha]
        guard
            components == [.red, .green, .blue, .alpha]
                || refuse(
                    "MTLDebugTexture", "newTextureViewWithPixelFormat:textureType:levels:slices:swizzle:",
                    "\(SoftwareDevice.shared.name) has no views that exchange components.")
        else { return nil }
        return makeTextureView(
            pixelFormat: pixelFormat, textureType: textureType, levels: levelRange, slices: sliceRange)
    }
}

/// The sizes of a texture and the offsets of its levels.
struct TextureShape {
    private let descriptor: MTLTextureDescriptor
    private let layout: PixelLayout
    private let firstRow: Int?

    init(_ descriptor: MTLTextureDescriptor, _ layout: PixelLayout, rowBytes: Int? = nil) {
        self.descriptor = descriptor
        self.layout = layout
        firstRow = rowBytes
    }

    private func levels() -> (list: [MrtLevel], bytes: Int) {
        var offset = 0
        let list = (0..<descriptor.mipmapLevelCount).map { level in
            let width = max(1, descriptor.width >> level), height = max(1, descriptor.height >> level)
            let depth = max(1, descriptor.depth >> level)
            let row = firstRow ?? width * layout.pixelBytes
            defer { offset += row * height * depth }
            return MrtLevel(
                offset: UInt(offset), row_bytes: UInt(row), image_bytes: UInt(row * height),
                width: UInt32(width), height: UInt32(height), depth: UInt32(depth))
        }
        return (list, offset)
    }

    /// The size of all slices in bytes.
    var size: Int { levels().bytes * sliceCount }

    private var sliceCount: Int { descriptor.arrayLength * descriptor.textureType.faces }

    func state(at address: UnsafeMutableRawPointer) -> UnsafeMutablePointer<MrtTexture> {
        let state = UnsafeMutablePointer<MrtTexture>.allocate(capacity: 1)
        let (list, bytes) = levels()
        var texture = MrtTexture()
        texture.address = address
        texture.slice_bytes = UInt(bytes)
        texture.array_length = UInt32(sliceCount)
        texture.level_count = UInt32(list.count)
        texture.sample_count = 1
        texture.set(layout)
        withUnsafeMutableBytes(of: &texture.levels) { raw in
            let levels = raw.bindMemory(to: MrtLevel.self)
            for (index, level) in list.enumerated() { levels[index] = level }
        }
        state.initialize(to: texture)
        return state
    }
}

extension MTLTextureType {
    /// The slices per array element: six for a cube.
    var faces: Int { self == .typeCube || self == .typeCubeArray ? 6 : 1 }
}

extension MrtTexture {
    fileprivate mutating func set(_ layout: PixelLayout) {
        kind = layout.kind
        component_bytes = UInt32(layout.componentBytes)
        channels = UInt32(layout.channels)
        flags = layout.flags
    }
}
