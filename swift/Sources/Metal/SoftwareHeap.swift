import MetalRuntime

/// A range of memory in which buffers are placed: at the program's offsets (placement) or first fit (automatic).
final class SoftwareHeap: NSObject, MTLHeap, @unchecked Sendable {
    /// Offsets and sizes of buffers in a heap are rounded to multiples of this.
    static let alignment = 256

    let memory: DeviceMemory
    let size: Int
    let type: MTLHeapType
    let resourceOptions: MTLResourceOptions
    let hazardTrackingMode: MTLHazardTrackingMode
    private(set) var purgeableState = MTLPurgeableState.nonVolatile
    private let lock = NSLock()
    /// Allocated ranges of an automatic heap, in ascending order of offset. A placement heap keeps no list, since its
    /// ranges may overlap.
    private var taken: [(offset: Int, length: Int)] = []

    var label: String? {
        didSet { mrt_memory_set_label(memory.address, label) }
    }

    init?(_ descriptor: MTLHeapDescriptor, on device: SoftwareDevice) {
        let isPrivate = descriptor.storageMode == .private
        guard let memory = DeviceMemory(length: descriptor.size, label: nil, device: device, isPrivate: isPrivate)
        else {
            return nil
        }
        self.memory = memory
        size = descriptor.size
        type = descriptor.type
        hazardTrackingMode = descriptor.hazardTrackingMode == .tracked ? .tracked : .untracked
        resourceOptions = MTLResourceOptions(descriptor.cpuCacheMode, descriptor.storageMode, hazardTrackingMode)
    }

    var device: any MTLDevice { memory.device }
    var storageMode: MTLStorageMode { resourceOptions.storageMode }
    var cpuCacheMode: MTLCPUCacheMode { resourceOptions.cpuCacheMode }
    var currentAllocatedSize: Int { roundUp(size, SoftwareDevice.pageSize) }
    var allocatedSize: Int { currentAllocatedSize }
    var usedSize: Int { lock.withLock { taken.reduce(0) { $0 + $1.length } } }

    func maxAvailableSize(alignment: Int) -> Int {
        guard
            alignment > 0 && alignment & (alignment - 1) == 0
                || refuse(
                    "MTLDebugHeap", "maxAvailableSizeWithAlignment:", "alignment(\(alignment)) must be a power of two.")
        else { return 0 }
        return lock.withLock {
            gaps().map { $0.upperBound - roundUp($0.lowerBound, alignment) }.max().map { max($0, 0) } ?? 0
        }
    }

    func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)? {
        let selector = "newBufferWithLength:options:"
        guard
            type == .automatic
                || refuse(
                    "MTLDebugHeap", selector,
                    "a placement heap needs an offset: use newBufferWithLength:options:offset:")
        else { return nil }
        guard accepts(length: length, options: options, selector), !takeFault("allocate") else { return nil }
        let rounded = roundUp(length, Self.alignment)
        guard let offset = take(rounded) else { return nil }
        let part = DeviceMemory(inside: memory, offset: offset, length: rounded) { [weak self] in
            self?.release(offset: offset)
        }
        return buffer(part, length: length, options: options, offset: offset)
    }

    func makeBuffer(length: Int, options: MTLResourceOptions, offset: Int) -> (any MTLBuffer)? {
        let selector = "newBufferWithLength:options:offset:"
        guard
            type == .placement
                || refuse(
                    "MTLDebugHeap", selector, "an automatic heap chooses the offset: use newBufferWithLength:options:")
        else { return nil }
        guard accepts(length: length, options: options, selector) else { return nil }
        let rounded = roundUp(length, Self.alignment)
        guard
            offset >= 0 && offset % Self.alignment == 0
                || refuse(
                    "MTLDebugHeap", selector,
                    "offset(\(offset)) must be a multiple of \(Self.alignment), the alignment that "
                        + "heapBufferSizeAndAlign gives."
                )
        else { return nil }
        guard
            offset + rounded <= size
                || refuse(
                    "MTLDebugHeap", selector,
                    "(offset(\(offset)) + size(\(rounded)))(\(offset + rounded)) must be <= [heap size](\(size)).")
        else { return nil }
        guard !takeFault("allocate") else { return nil }
        return buffer(
            DeviceMemory(inside: memory, offset: offset, length: rounded) {}, length: length, options: options,
            offset: offset)
    }

    func makeTexture(descriptor: MTLTextureDescriptor) -> (any MTLTexture)? {
        let selector = "newTextureWithDescriptor:"
        guard
            type == .automatic
                || refuse(
                    "MTLDebugHeap", selector, "a placement heap needs an offset: use newTextureWithDescriptor:offset:")
        else { return nil }
        guard let layout = memory.device.accepted(descriptor, selector), !takeFault("allocate") else {
            return nil
        }
        let rounded = roundUp(TextureShape(descriptor, layout).size, Self.alignment)
        guard let offset = take(rounded) else { return nil }
        let part = DeviceMemory(inside: memory, offset: offset, length: rounded) { [weak self] in
            self?.release(offset: offset)
        }
        return texture(descriptor, layout, part, offset)
    }

    func makeTexture(descriptor: MTLTextureDescriptor, offset: Int) -> (any MTLTexture)? {
        let selector = "newTextureWithDescriptor:offset:"
        guard let layout = memory.device.accepted(descriptor, selector), !takeFault("allocate") else {
            return nil
        }
        let rounded = roundUp(TextureShape(descriptor, layout).size, Self.alignment)
        guard
            type == .placement && offset >= 0 && offset % Self.alignment == 0 && offset + rounded <= size
                || refuse(
                    "MTLDebugHeap", selector,
                    "offset(\(offset)), a multiple of \(Self.alignment), and the texture's \(rounded) bytes must lie "
                        + "inside a placement heap of \(size) bytes.")
        else { return nil }
        return texture(
            descriptor, layout, DeviceMemory(inside: memory, offset: offset, length: rounded) {}, offset)
    }

    private func texture(
        _ descriptor: MTLTextureDescriptor, _ layout: PixelLayout, _ part: DeviceMemory, _ offset: Int
    ) -> SoftwareTexture {
        let inherited = descriptor.copy() as! MTLTextureDescriptor
        inherited.storageMode = storageMode
        inherited.cpuCacheMode = cpuCacheMode
        return SoftwareTexture(inherited, layout: layout, memory: part, heap: self, heapOffset: offset)
    }

    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState {
        let old = purgeableState
        if state != .keepCurrent { purgeableState = state }
        if state == .empty { memory.forget() }
        return old
    }

    /// Frees a range of an automatic heap: its buffer was released, or was made aliasable.
    private func release(offset: Int) {
        lock.withLock {
            guard let position = taken.firstIndex(where: { $0.offset == offset }) else { return }
            let gone = taken.remove(at: position)
            if memory.device.gpu == nil { mrt_memory_mark_fresh(memory.address + gone.offset, gone.length) }
        }
    }

    private func buffer(_ part: DeviceMemory, length: Int, options: MTLResourceOptions, offset: Int) -> SoftwareBuffer {
        let inherited = MTLResourceOptions(cpuCacheMode, storageMode, options.hazardTrackingMode)
        return SoftwareBuffer(memory: part, length: length, options: inherited, heap: self, heapOffset: offset)
    }

    private func accepts(length: Int, options: MTLResourceOptions, _ selector: String) -> Bool {
        (length > 0 || refuse("MTLDebugHeap", selector, "Cannot create buffer of zero length."))
            && (options.storageMode == storageMode
                || refuse(
                    "MTLDebugHeap", selector,
                    """
                    the buffer's storage mode (\(options.storageMode)) must be the heap's (\(storageMode)).
                    """))
            && (options.cpuCacheMode == cpuCacheMode
                || refuse(
                    "MTLDebugHeap", selector,
                    """
                    the buffer's CPU cache mode (\(options.cpuCacheMode)) must be the heap's (\(cpuCacheMode)).
                    """))
            && (options.hazardTrackingMode != .tracked || hazardTrackingMode == .tracked
                || refuse("MTLDebugHeap", selector, "a tracked buffer needs a heap with MTLHazardTrackingModeTracked."))
    }

    private func take(_ length: Int) -> Int? {
        lock.withLock {
            guard let gap = gaps().first(where: { $0.count >= length }) else { return nil }
            let position = taken.firstIndex { $0.offset > gap.lowerBound } ?? taken.count
            taken.insert((gap.lowerBound, length), at: position)
            return gap.lowerBound
        }
    }

    private func gaps() -> [Range<Int>] {
        var result: [Range<Int>] = []
        var start = 0
        for stretch in taken {
            if stretch.offset > start { result.append(start..<stretch.offset) }
            start = stretch.offset + stretch.length
        }
        return start < size ? result + [start..<size] : result
    }
}
