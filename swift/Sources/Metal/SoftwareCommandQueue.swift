/// Runs its command buffers one after the other, in the order in which they were enqueued, on a separate thread. Queues
/// wait for each other only through events.
final class SoftwareCommandQueue: NSObject, MTLCommandQueue, @unchecked Sendable {
    var label: String?
    /// Handlers are called on this queue: in order, and without blocking the command queue's thread.
    let handlers = DispatchQueue(label: "MTLCommandQueue.handlers")
    /// Used only on the queue's thread.
    var aftermath = Aftermath()
    private let pending = PendingBuffers()
    private let slots: Slots
    private let residency = ResidencySets()

    let softwareDevice: SoftwareDevice

    init(_ device: SoftwareDevice, maxCommandBufferCount: Int) {
        softwareDevice = device
        slots = Slots(count: maxCommandBufferCount)
        super.init()
        let pending = self.pending
        let thread = Thread { pending.run() }
        thread.stackSize = 16 << 20
        thread.name = "MTLCommandQueue"
        thread.start()
    }

    deinit { pending.close() }

    var device: any MTLDevice { softwareDevice }

    func makeCommandBuffer() -> (any MTLCommandBuffer)? { makeCommandBuffer(descriptor: MTLCommandBufferDescriptor()) }

    func makeCommandBufferWithUnretainedReferences() -> (any MTLCommandBuffer)? {
        let descriptor = MTLCommandBufferDescriptor()
        descriptor.retainedReferences = false
        return makeCommandBuffer(descriptor: descriptor)
    }

    /// Blocks while `maxCommandBufferCount` command buffers have not completed.
    func makeCommandBuffer(descriptor: MTLCommandBufferDescriptor) -> (any MTLCommandBuffer)? {
        SoftwareCommandBuffer(queue: self, descriptor: descriptor, slot: slots.take())
    }

    func enqueue(_ buffer: SoftwareCommandBuffer) { pending.append(buffer) }

    /// Notifies the scheduler that a command buffer was committed.
    func wake() { pending.wake() }

    func addResidencySet(_ residencySet: any MTLResidencySet) { residency.add(residencySet) }
    func addResidencySets(_ residencySets: [any MTLResidencySet]) { residencySets.forEach(residency.add) }
    func removeResidencySet(_ residencySet: any MTLResidencySet) { residency.remove(residencySet) }
    func removeResidencySets(_ residencySets: [any MTLResidencySet]) { residencySets.forEach(residency.remove) }
    func insertDebugCaptureBoundary() {}
}

/// The command buffers that wait to be scheduled. The thread references this object instead of the queue, so that it
/// ends when the queue is released.
private final class PendingBuffers: @unchecked Sendable {
    /// The number of command buffers that a GPU may have before the next one is issued.
    private static let mostUnderWay = 8
    /// The time for which the thread waits for a GPU before it looks for another command buffer to issue.
    private static let slice: UInt32 = 20  // microseconds

    private enum Step {
        case run(SoftwareCommandBuffer)
        case complete
        case end
    }

    private let condition = NSCondition()
    private var waiting: [SoftwareCommandBuffer] = []
    private var isClosed = false
    /// Command buffers that were executed and have not completed, in order. Used only on the queue's thread.
    private var underWay: [SoftwareCommandBuffer] = []

    func append(_ buffer: SoftwareCommandBuffer) {
        condition.withLock {
            waiting.append(buffer)
            condition.signal()
        }
    }

    func wake() { condition.withLock { condition.signal() } }

    func close() {
        condition.withLock {
            isClosed = true
            condition.signal()
        }
    }

    func run() {
        while autoreleasepool(invoking: runNext) {}
    }

    private func runNext() -> Bool {
        switch nextStep() {
        case .run(let buffer):
            completeFirst(leaving: buffer.isSeenByHost ? 0 : Self.mostUnderWay - 1)
            buffer.execute()
            underWay.append(buffer)
            completeEnded(within: 0)
        case .complete: completeEnded(within: Self.slice)
        case .end: return false
        }
        return true
    }

    private func completeFirst(leaving count: Int) {
        while underWay.count > count { completeEnded(within: .max) }
    }

    private func completeEnded(within microseconds: UInt32) {
        if underWay[0].complete(within: microseconds) { underWay.removeFirst() }
    }

    /// Blocks if there is nothing to do: a command buffer runs once it is committed. The queue ends when it was
    /// released.
    private func nextStep() -> Step {
        condition.withLock {
            while true {
                if let first = waiting.first, first.isCommitted { return .run(waiting.removeFirst()) }
                if !underWay.isEmpty { return .complete }
                if isClosed { return .end }
                condition.wait()
            }
        }
    }
}

/// The residency sets of a queue. Memory is always resident here; the sets are only counted, since a queue accepts a
/// limited number.
private final class ResidencySets: @unchecked Sendable {
    /// The maximum number of residency sets per command queue, from the Metal Feature Set Tables.
    private static let maxCount = 32

    private let lock = NSLock()
    private var sets: [any MTLResidencySet] = []

    func add(_ set: any MTLResidencySet) {
        let isTaken = lock.withLock {
            guard !sets.contains(where: { $0 === set }) else { return true }
            guard sets.count < Self.maxCount else { return false }
            sets.append(set)
            return true
        }
        if !isTaken {
            misuse(
                "MTLCommandQueue", "addResidencySet:", "a command queue takes at most \(Self.maxCount) residency sets")
        }
    }

    func remove(_ set: any MTLResidencySet) { lock.withLock { sets.removeAll { $0 === set } } }
}

/// A semaphore with `count` slots.
final class Slots: @unchecked Sendable {
    private let free: DispatchSemaphore

    init(count: Int) { free = DispatchSemaphore(value: count) }

    func take() -> Slot {
        free.wait()
        return Slot(free)
    }

    /// A slot, which is released once: by a call, or with the last reference.
    final class Slot: @unchecked Sendable {
        private var free: DispatchSemaphore?

        fileprivate init(_ free: DispatchSemaphore) { self.free = free }

        deinit { release() }

        func release() {
            free?.signal()
            free = nil
        }
    }
}
