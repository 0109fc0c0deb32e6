import COrchard
import Foundation

/// Completion of the command buffers of a context, numbered 1, 2, 3, … in the order of their commits.
///
/// It has a lock of its own, the only one that a completion handler takes: the device's threads never wait for a thread
/// that encodes.
final class Tickets: @unchecked Sendable {
    /// The highest ticket below which all are complete, and the number of failed ones. Other languages poll this
    /// memory, perhaps after the context was closed, so that it is never freed.
    let counter: UnsafeMutablePointer<UInt64>

    private static let reasonsKept = 1024

    private let condition = NSCondition()
    private var completedEarly: Set<UInt64> = []
    private var failures: [UInt64: String] = [:]
    private var failedTickets: [UInt64] = []

    init() {
        counter = .allocate(capacity: 2)
        counter.initialize(repeating: 0, count: 2)
    }

    var completed: UInt64 { orchard_atomic_load(counter) }
    var failed: UInt64 { orchard_atomic_load(counter + 1) }

    func isComplete(_ ticket: UInt64) -> Bool { ticket <= completed }

    /// Handlers of one queue may run out of order: the counter moves on only over a gapless row.
    func complete(_ ticket: UInt64, failure: String?) {
        condition.withLock {
            if let failure { remember(failure, of: ticket) }
            completedEarly.insert(ticket)
            var row = completed
            while completedEarly.remove(row + 1) != nil { row += 1 }
            orchard_atomic_store(counter, row)
            condition.broadcast()
        }
    }

    func failure(of ticket: UInt64) -> OrchardError? {
        condition.withLock { failures[ticket] }.map {
            OrchardError(ORCHARD_DEVICE_FAILED, "Command buffer \(ticket) failed: \($0)")
        }
    }

    /// False where the time is over first.
    func wait(for ticket: UInt64, until deadline: Date) -> Bool {
        condition.withLock {
            while !isComplete(ticket) {
                if !condition.wait(until: deadline) { return isComplete(ticket) }
            }
            return true
        }
    }

    private func remember(_ failure: String, of ticket: UInt64) {
        orchard_atomic_store(counter + 1, failed + 1)
        failures[ticket] = failure
        failedTickets.append(ticket)
        if failedTickets.count > Self.reasonsKept { failures[failedTickets.removeFirst()] = nil }
    }
}
