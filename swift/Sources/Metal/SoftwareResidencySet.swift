/// Memory is always resident here. The set follows Apple's rule that additions and removals take effect at `commit()`.
final class SoftwareResidencySet: NSObject, MTLResidencySet, @unchecked Sendable {
    let label: String?
    private let lock = NSLock()
    private var listed: [any MTLAllocation] = []
    private var committed: [any MTLAllocation] = []

    init(label: String?) { self.label = label }

    /// The allocations that the last `commit()` made resident.
    var resident: [any MTLAllocation] { lock.withLock { committed } }
    var device: any MTLDevice { SoftwareDevice.shared }
    var allocatedSize: UInt64 { lock.withLock { committed.reduce(0) { $0 + UInt64($1.allocatedSize) } } }
    var allAllocations: [any MTLAllocation] { lock.withLock { listed } }
    var allocationCount: Int { lock.withLock { listed.count } }

    func requestResidency() {}
    func endResidency() {}
    func commit() { lock.withLock { committed = listed } }

    func addAllocation(_ allocation: any MTLAllocation) {
        lock.withLock { if !listed.contains(where: { $0 === allocation }) { listed.append(allocation) } }
    }

    func addAllocations(_ allocations: [any MTLAllocation]) { allocations.forEach(addAllocation) }

    func removeAllocation(_ allocation: any MTLAllocation) {
        lock.withLock { listed.removeAll { $0 === allocation } }
    }

    func removeAllocations(_ allocations: [any MTLAllocation]) { allocations.forEach(removeAllocation) }

    func removeAllAllocations() { lock.withLock { listed = [] } }

    func containsAllocation(_ anAllocation: any MTLAllocation) -> Bool {
        lock.withLock { listed.contains { $0 === anAllocation } }
    }
}
