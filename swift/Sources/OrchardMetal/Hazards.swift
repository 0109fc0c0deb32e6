/// An operation's access to a range of an allocation's bytes. Created under the context's lock, in the order of the
/// operations.
struct Use {
    let allocation: Allocation
    let range: Range<Int>
    let reads: Bool
    let writes: Bool
    /// The command buffer that last wrote to the allocation before this operation; 0 if unknown.
    let writtenBy: UInt64

    /// If `writes` is false, the access reads; if `updates` is true, it reads and writes.
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

/// The accesses of one concurrent encoder since the last barrier that covers them.
///
/// Two accesses must be ordered if their bytes overlap and at least one of them writes: read after write, write after
/// read, write after write. A barrier on a resource orders all earlier accesses to it, which are then removed.
struct Hazards {
    private var open: [ObjectIdentifier: [Use]] = [:]

    /// Returns the allocations that need a barrier before an operation with these uses.
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

    /// An access is not added if an earlier one of the same kind covers it: weights that every dispatch reads are
    /// recorded once.
    mutating func record(_ uses: [Use]) {
        for use in uses {
            let key = ObjectIdentifier(use.allocation)
            let isCovered = open[key]?.contains { $0.writes == use.writes && $0.covers(use) } ?? false
            if !isCovered { open[key, default: []].append(use) }
        }
    }

    mutating func forgetAll() { open.removeAll(keepingCapacity: true) }
}
