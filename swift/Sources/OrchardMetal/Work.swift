/// How long a dispatch takes, roughly, in operations of a GPU: a system ends a command buffer that runs for some
/// seconds, and nobody else's work comes in between.
enum Work {
    /// Threadgroups that it takes to keep every core of the smallest GPU busy: an M1 has 7 or 8.
    static let cores: UInt64 = 8

    /// Operations of a thread at the least.
    static let leastOfAThread: UInt64 = 32

    /// Of an unknown kernel, each thread is taken to read its share of what is bound, and to have a loop as long as the
    /// side of a square grid, to a power of two: as it is in a product of matrices with a thread for each element.
    static func estimate(given: UInt64, threads: UInt64, groups: UInt64, bytes: UInt64) -> UInt64 {
        let loop = UInt64(1) << ((UInt64.bitWidth - threads.leadingZeroBitCount) / 2)
        let operations = given > 0 ? given : max(bytes, product([threads, max(leastOfAThread, loop)]))
        return groups < cores ? product([operations, cores]) / max(groups, 1) : operations
    }

    /// The largest number where it would be larger.
    static func product(_ factors: [UInt64]) -> UInt64 {
        factors.reduce(1) { product, factor in
            let (next, overflow) = product.multipliedReportingOverflow(by: factor)
            return overflow ? .max : next
        }
    }
}
