/// What an operation does with a range of an allocation's bytes. Made under the context's lock, in the order of the
/// operations.
struct Use {
    let allocation: Allocation
    let range: Range<Int>
    let reads: Bool
    let writes: Bool
    /// The command buffer that wrote to the allocation last before this operation; 0: none that is known.
    let writtenBy: UInt64

    /// What it does not write, it reads; `updates`: it does both.
    init(allocation: Allocation, range: Range<Int>, writes: Bool, updates: Bool = false) {
        self.allocation = allocation
        self.range = range
        self.writes = writes
        reads = updates || !writes
        writtenBy = allocation.lastWrite
    }

    func overlaps(_ other: Use) -> Bool { allocation === other.allocation && range.overlaps(other.range) }

    func covers(_ other: Use) -> Bool {
        range.lowerBound <= other.range.lowerBound && other.range.upperBound <= range.upperBound
    }
}

/// The accesses of one concurrent encoder that no barrier has ordered yet.
///
/// Two accesses need an order where their bytes overlap and at least one writes: read after write, write after read,
/// write after write. A barrier on a resource orders everything before it on that resource, so its accesses are then
/// forgotten.
struct Hazards {
    private var open: [ObjectIdentifier: [Use]] = [:]

    /// The allocations that need a barrier before an operation with these uses.
    func conflicts(with uses: [Use]) -> [Allocation] {
        var found: [Allocation] = []
        for use in uses where !found.contains(where: { $0 === use.allocation }) {
            let earlier = open[ObjectIdentifier(use.allocation)] ?? []
            if earlier.contains(where: { ($0.writes || use.writes) && $0.range.overlaps(use.range) }) {
                found.append(use.allocation)
            }
        }
        return found
    }

    mutating func order(_ allocations: [Allocation]) {
        for allocation in allocations { open[ObjectIdentifier(allocation)] = nil }
    }

    /// An access that an earlier one of the same kind covers adds nothing: weights that every dispatch reads are kept
    /// once.
    mutating func record(_ uses: [Use]) {
        for use in uses {
            let key = ObjectIdentifier(use.allocation)
            let isCovered = open[key]?.contains { $0.writes == use.writes && $0.covers(use) } ?? false
            if !isCovered { open[key, default: []].append(use) }
        }
    }

    mutating func forgetAll() { open.removeAll(keepingCapacity: true) }
}
