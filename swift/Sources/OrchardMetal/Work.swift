/// A rough estimate of how long a dispatch takes, in operations of a GPU. The system aborts a command buffer that runs
/// for several seconds, and the work of other programs has to wait for it.
enum Work {
    /// The number of threadgroups that keep every core of the smallest GPU busy: an M1 has 7 or 8 cores.
    static let cores: UInt64 = 8

    /// The minimum number of operations per thread.
    static let leastOfAThread: UInt64 = 32

    /// For an unknown kernel, each thread is assumed to read its share of the bound bytes, and to run a loop as long as
    /// the side of a square grid, rounded to a power of two, as in a matrix product with one thread per element.
    static func estimate(given: UInt64, threads: UInt64, groups: UInt64, bytes: UInt64) -> UInt64 {
        let loop = UInt64(1) << ((UInt64.bitWidth - threads.leadingZeroBitCount) / 2)
        let operations = given > 0 ? given : max(bytes, product(threads, max(leastOfAThread, loop)))
        return groups < cores ? product(operations, cores) / max(groups, 1) : operations
    }

    /// Returns the product, or the largest number on overflow.
    static func product(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let (product, overflow) = one.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}
