import MetalRuntime

/// Determines which dispatches of an encoder the device may run concurrently: dispatches of the same epoch, except for
/// memory that they list as ordered.
struct HazardScope {
    struct Order {
        let epoch: UInt64
        let ordered: [UnsafeRawPointer]
    }

    private var epoch = mrt_epoch_next()
    private var ordered: Set<UnsafeRawPointer> = []
    private var touched: Set<UnsafeRawPointer> = []

    /// Returns the order of the next dispatch. In a serial encoder, each dispatch follows the previous one.
    mutating func next(touching memory: [UnsafeRawPointer], isConcurrent: Bool) -> Order {
        if !isConcurrent { orderAll() }
        touched.formUnion(memory)
        return Order(epoch: epoch, ordered: Array(ordered))
    }

    mutating func orderAll() {
        epoch = mrt_epoch_next()
        ordered = []
        touched = []
    }

    /// Records a barrier over some memory. If it covers all memory that was touched, it equals a full barrier.
    mutating func order(_ memory: [UnsafeRawPointer]) {
        ordered.formUnion(memory)
        if touched.isSubset(of: ordered) { orderAll() }
    }
}
