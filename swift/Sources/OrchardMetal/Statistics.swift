import COrchard

/// All counters, in the layout of the struct that the caller receives. Guarded by the context's lock.
final class Statistics {
    var values = orchard_statistics()

    func countCopy(_ kind: WritableKeyPath<orchard_statistics, UInt64>, bytes: UInt64) {
        values[keyPath: kind] += 1
        values.copied_bytes += bytes
    }
}
