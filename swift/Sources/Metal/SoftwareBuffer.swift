import MetalRuntime

final class SoftwareBuffer: NSObject, MTLBuffer, @unchecked Sendable {
    let memory: DeviceMemory
    let length: Int
    let resourceOptions: MTLResourceOptions
    let hazardTrackingMode: MTLHazardTrackingMode
    let softwareHeap: SoftwareHeap?
    let heapOffset: Int
    private var aliasable = false
    private(set) var purgeableState = MTLPurgeableState.nonVolatile

    var label: String? {
        // For the checker. A part of a heap shares the heap's allocation, which keeps its label.
        didSet { if softwareHeap == nil, memory.device.gpu == nil { mrt_memory_set_label(memory.address, label) } }
    }

    init(
        memory: DeviceMemory, length: Int, options: MTLResourceOptions, heap: SoftwareHeap? = nil, heapOffset: Int = 0
    ) {
        self.memory = memory
        self.length = length
        self.softwareHeap = heap
        self.heapOffset = heapOffset
        hazardTrackingMode =
            options.hazardTrackingMode == .default
            ? heap?.hazardTrackingMode ?? .tracked : options.hazardTrackingMode
        resourceOptions = MTLResourceOptions(options.cpuCacheMode, options.storageMode, hazardTrackingMode)
    }

    var device: any MTLDevice { memory.device }
    var heap: (any MTLHeap)? { softwareHeap }
    var storageMode: MTLStorageMode { resourceOptions.storageMode }
    var cpuCacheMode: MTLCPUCacheMode { resourceOptions.cpuCacheMode }
    var allocatedSize: Int { softwareHeap == nil ? roundUp(length, SoftwareDevice.pageSize) : memory.length }
    var gpuAddress: UInt64 { UInt64(UInt(bitPattern: memory.address)) }
    override var description: String {
        "<SoftwareBuffer> label = \(label ?? "<none>"), length = \(length), \(storageMode)"
    }

    func contents() -> UnsafeMutableRawPointer {
        guard
            storageMode != .private
                || refuse(
                    "MTLDebugBuffer", "contents",
                    """
                    contents of a buffer with MTLStorageModePrivate must not be used; \
                    copy it to a shared buffer with a blit encoder
                    """)
        else { return Self.unmapped }
        return memory.address
    }

    /// The result of `contents()` for private memory if a misuse handler lets the call continue: any access faults.
    private static let unmapped = UnsafeMutableRawPointer(bitPattern: 16)!

    func didModifyRange(_ range: Range<Int>) {
        let selector = "didModifyRange:"
        guard
            storageMode == .managed
                || refuse(
                    "MTLDebugBuffer", selector,
                    """
                    didModifyRange is for buffers with MTLStorageModeManaged; this one is \(storageMode)
                    """)
        else { return }
        guard
            range.lowerBound >= 0 && range.upperBound <= length
                || refuse(
                    "MTLDebugBuffer", selector,
                    """
                    (range.location(\(range.lowerBound)) + range.length(\(range.count)))(\(range.upperBound)) must be \
                    <= [buffer length](\(length)).
                    """)
        else { return }
        mrt_memory_mark_written(memory.address + range.lowerBound, range.count)
    }

    func addDebugMarker(_ marker: String, range: Range<Int>) {
        guard range.upperBound > length else { return }
        misuse(
            "MTLDebugBuffer", "addDebugMarker:range:", "range \(range) must lie inside the buffer's length(\(length)).")
    }

    func removeAllDebugMarkers() {}

    func setPurgeableState(_ state: MTLPurgeableState) -> MTLPurgeableState {
        guard
            softwareHeap == nil
                || refuse(
                    "MTLDebugBuffer", "setPurgeableState:",
                    """
                    a resource of a heap has no purgeable state of its own; set the heap's
                    """)
        else { return .nonVolatile }
        let old = purgeableState
        if state != .keepCurrent { purgeableState = state }
        if state == .empty { memory.forget() }
        return old
    }

    func makeAliasable() {
        guard softwareHeap != nil else { return }
        aliasable = true
        memory.giveBack()
    }

    func isAliasable() -> Bool { aliasable }

    /// The purgeable state at commit. A part of a heap has its heap's state.
    var isPurged: Bool {
        let state = softwareHeap?.purgeableState ?? purgeableState
        return state == .volatile || state == .empty
    }
}

func roundUp(_ value: Int, _ multiple: Int) -> Int { (value + multiple - 1) / multiple * multiple }
