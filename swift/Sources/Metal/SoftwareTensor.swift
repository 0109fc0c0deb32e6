import MetalRuntime

/// A tensor in newly allocated memory, or in the memory of a buffer. Kernels read its sizes and strides from `handle`.
final class SoftwareTensor: NSObject, MTLTensor, @unchecked Sendable {
    let memory: DeviceMemory
    let layout: TensorLayout
    let dimensions: MTLTensorExtents
    let strides: MTLTensorExtents?
    let usage: MTLTensorUsage
    let resourceOptions: MTLResourceOptions
    let softwareBuffer: SoftwareBuffer?
    let bufferOffset: Int
    /// The sizes and strides that the handle points to. Their address never changes, since argument buffers contain it.
    let state: UnsafeMutablePointer<MrtTensor>

    var label: String? {
        didSet { if softwareBuffer == nil { mrt_memory_set_label(memory.address, label) } }
    }

    init(_ descriptor: MTLTensorDescriptor, memory: DeviceMemory, of buffer: SoftwareBuffer? = nil, offset: Int = 0) {
        self.memory = memory
        let layout = TensorLayout(descriptor)
        self.layout = layout
        dimensions = descriptor.dimensions
        strides = buffer == nil ? nil : descriptor.strides
        usage = descriptor.usage
        resourceOptions = buffer?.resourceOptions ?? descriptor.resourceOptions
        softwareBuffer = buffer
        bufferOffset = offset
        state = .allocate(capacity: 1)
        var tensor = MrtTensor()
        tensor.address = memory.address + offset
        tensor.rank = UInt(layout.extents.count)
        withUnsafeMutableBytes(of: &tensor.extents) { all in layout.extents.withUnsafeBytes { all.copyMemory(from: $0) }
        }
        withUnsafeMutableBytes(of: &tensor.strides) { all in layout.strides.withUnsafeBytes { all.copyMemory(from: $0) }
        }
        state.initialize(to: tensor)
        super.init()
        ResourceTable.shared.add(self, gpuResourceID)
    }

    deinit {
        ResourceTable.shared.remove(gpuResourceID)
        state.deallocate()
    }

    var device: any MTLDevice { memory.device }
    var buffer: (any MTLBuffer)? { softwareBuffer }
    var dataType: MTLTensorDataType { layout.type }
    var gpuResourceID: MTLResourceID { MTLResourceID(implementation: UInt64(UInt(bitPattern: state))) }
    var cpuCacheMode: MTLCPUCacheMode { resourceOptions.cpuCacheMode }
    var storageMode: MTLStorageMode { resourceOptions.storageMode }
    var hazardTrackingMode: MTLHazardTrackingMode { resourceOptions.hazardTrackingMode }
    var heap: (any MTLHeap)? { softwareBuffer?.heap }
    var heapOffset: Int { softwareBuffer?.heapOffset ?? 0 }
    var allocatedSize: Int { softwareBuffer?.allocatedSize ?? roundUp(memory.length, SoftwareDevice.pageSize) }
    override var description: String {
        "<SoftwareTensor> label = \(label ?? "<none>"), \(dataType), dimensions = \(dimensions)"
    }

    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState {
        softwareBuffer?.setPurgeableState(state) ?? .nonVolatile
    }
    func makeAliasable() { softwareBuffer?.makeAliasable() }
    func isAliasable() -> Bool { softwareBuffer?.isAliasable() ?? false }

    // MARK: Elements

    func replace(
        sliceOrigin: MTLTensorExtents, sliceDimensions: MTLTensorExtents, withBytes bytes: UnsafeRawPointer,
        strides: MTLTensorExtents
    ) {
        let selector = "replaceSliceOrigin:sliceDimensions:withBytes:strides:"
        guard isOfHost(selector), holds(sliceOrigin, sliceDimensions, selector),
            isLayout(strides, of: sliceDimensions, selector)
        else { return }
        let source = TensorSlice(
            UnsafeMutableRawPointer(mutating: bytes), strides: strides.extents, size: dataType.size)
        TensorSlice.copy(sliceDimensions.extents, size: dataType.size, from: source, to: slice(sliceOrigin)) {
            $0.copyMemory(from: $1, byteCount: $2)
            mrt_memory_mark_written($0, $2)
        }
    }

    func getBytes(
        _ bytes: UnsafeMutableRawPointer, strides: MTLTensorExtents, sliceOrigin: MTLTensorExtents,
        sliceDimensions: MTLTensorExtents
    ) {
        let selector = "getBytes:strides:fromSliceOrigin:sliceDimensions:"
        guard isOfHost(selector), holds(sliceOrigin, sliceDimensions, selector),
            isLayout(strides, of: sliceDimensions, selector)
        else { return }
        let target = TensorSlice(bytes, strides: strides.extents, size: dataType.size)
        TensorSlice.copy(sliceDimensions.extents, size: dataType.size, from: slice(sliceOrigin), to: target) {
            mrt_memory_settle($1, $2)
            $0.copyMemory(from: $1, byteCount: $2)
        }
    }

    /// The slice of the tensor that begins at a position.
    func slice(_ origin: MTLTensorExtents) -> TensorSlice {
        let offset = zip(origin.extents, layout.strides).reduce(0) { $0 + $1.0 * $1.1 } * dataType.size
        return TensorSlice(memory.address + bufferOffset + offset, strides: layout.strides, size: dataType.size)
    }

    /// Returns whether a slice is within the tensor.
    func holds(
        _ origin: MTLTensorExtents, _ extents: MTLTensorExtents, _ selector: String, for debugName: String = debugName
    ) -> Bool {
        let rank = layout.extents.count
        guard
            origin.rank == rank && extents.rank == rank
                || refuse(
                    debugName, selector,
                    "sliceOrigin \(origin) and sliceDimensions \(extents) must have the tensor's rank(\(rank)).")
        else { return false }
        return (0..<rank).allSatisfy {
            let (start, count, whole) = (origin.extents[$0], extents.extents[$0], layout.extents[$0])
            return start >= 0 && count > 0 && start <= whole && count <= whole - start
        }
            || refuse(
                debugName, selector,
                "the slice at \(origin) of \(extents) must lie inside of the tensor's dimensions \(dimensions).")
    }

    /// Returns whether strides in the host's memory give each element separate bytes.
    private func isLayout(_ strides: MTLTensorExtents, of extents: MTLTensorExtents, _ selector: String) -> Bool {
        strides.rank == extents.rank && strides.extents.allSatisfy { $0 > 0 }
            && (1..<max(strides.rank, 1)).allSatisfy {
                strides.extents[$0] >= strides.extents[$0 - 1] * extents.extents[$0 - 1]
            }
            || refuse(
                Self.debugName, selector,
                """
                each of strides \(strides) must be at least the one before times its dimension, of \
                sliceDimensions \(extents).
                """)
    }

    private func isOfHost(_ selector: String) -> Bool {
        storageMode != .private
            || refuse(
                Self.debugName, selector,
                """
                the host cannot access a tensor with MTLStorageModePrivate; copy it to or from a shared one with a \
                blit encoder.
                """)
    }

    private static let debugName = "MTLDebugTensor"
}

extension SoftwareDevice {
    func makeTensor(descriptor: MTLTensorDescriptor) throws -> any MTLTensor {
        try checkTensor(descriptor, hasBuffer: false)
        let size = TensorLayout(descriptor).byteCount!
        guard !takeFault("allocate"), let memory = DeviceMemory(length: size, label: nil, device: self) else {
            throw MTLTensorError(.internalError, "there is no memory for a tensor of \(size) bytes.")
        }
        return SoftwareTensor(descriptor, memory: memory)
    }

    func tensorSizeAndAlign(descriptor: MTLTensorDescriptor) -> MTLSizeAndAlign {
        guard TensorLayout.problem(of: descriptor, hasBuffer: descriptor.strides != nil) == nil else {
            return MTLSizeAndAlign()
        }
        return MTLSizeAndAlign(size: TensorLayout(descriptor).byteCount!, align: Self.tensorAlignment)
    }

    /// The strictest alignment, which tensors for machine learning require; it satisfies every other usage.
    static let tensorAlignment = 64

    func checkTensor(_ descriptor: MTLTensorDescriptor, hasBuffer: Bool) throws {
        guard gpu == nil else {
            throw MTLTensorError(.internalError, "\(name) has no tensors here: use the software device.")
        }
        if let problem = TensorLayout.problem(of: descriptor, hasBuffer: hasBuffer) {
            throw MTLTensorError(.invalidDescriptor, problem)
        }
    }
}

extension SoftwareBuffer {
    func makeTensor(descriptor: MTLTensorDescriptor, offset: Int) throws -> any MTLTensor {
        try memory.device.checkTensor(descriptor, hasBuffer: true)
        let size = TensorLayout(descriptor).byteCount!, unit = descriptor.dataType.size
        guard offset >= 0 && offset % unit == 0 else {
            throw MTLTensorError(.invalidDescriptor, "offset(\(offset)) must be a multiple of \(unit).")
        }
        guard offset <= length && size <= length - offset else {
            throw MTLTensorError(
                .invalidDescriptor,
                "the tensor's \(size) bytes from offset(\(offset)) must lie inside the buffer's length(\(length)).")
        }
        return SoftwareTensor(descriptor, memory: memory, of: self, offset: offset)
    }
}

/// Resources by their number in argument buffers and argument tables.
final class ResourceTable: @unchecked Sendable {
    static let shared = ResourceTable()

    private struct Entry {
        weak var resource: AnyObject?
    }

    private let entries = Guarded<[UInt64: Entry]>([:])

    func add(_ resource: AnyObject, _ number: MTLResourceID) {
        entries.withLock { $0[number.implementation] = Entry(resource: resource) }
    }

    func remove(_ number: MTLResourceID) { entries.withLock { _ = $0.removeValue(forKey: number.implementation) } }

    func resource(_ number: UInt64) -> AnyObject? { entries.withLock { $0[number]?.resource } }
}
