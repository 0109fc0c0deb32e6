import MetalRuntime

/// Which dispatches of an encoder the device may run at the same time: those with one epoch, but for the memory that
/// they list as ordered.
struct HazardScope {
    struct Order {
        let epoch: UInt64
        let ordered: [UnsafeRawPointer]
    }

    private var epoch = mrt_epoch_next()
    private var ordered: Set<UnsafeRawPointer> = []
    private var touched: Set<UnsafeRawPointer> = []

    /// The order of the next dispatch. Those of a serial encoder follow each other.
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

    /// A barrier over some memory. Over all that was touched it is as good as a full one.
    mutating func order(_ memory: [UnsafeRawPointer]) {
        ordered.formUnion(memory)
        if touched.isSubset(of: ordered) { orderAll() }
    }
}
