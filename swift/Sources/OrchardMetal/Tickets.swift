import COrchard
import Foundation

/// The completion of a context's command buffers, which are numbered 1, 2, 3, … in the order of their commits.
///
/// It has a separate lock, the only one that completion handlers use, so that the device's threads never wait for a
/// thread that is encoding.
final class Tickets: @unchecked Sendable {
    /// Three counters: the highest ticket up to which all are complete, the number of failed tickets, and the number of
    /// queues that were replaced because they accepted no more work. Other languages poll this memory, possibly after
    /// the context was closed, so it is never freed.
    let counter: UnsafeMutablePointer<UInt64>

    /// Called outside the lock when a command buffer was dropped. Set once, before the first one is committed.
    var onDrop: () -> Void = {}

    private static let reasonsKept = 1024

    private let condition = NSCondition()
    /// Outcomes of tickets that have ended but are not complete, because earlier ones are running or were dropped.
    private var ended: [UInt64: Outcome] = [:]
    private var failures: [UInt64: String] = [:]
    private var failedTickets: [UInt64] = []

    init() {
        counter = .allocate(capacity: 3)
        counter.initialize(repeating: 0, count: 3)
    }

    var completed: UInt64 { orchard_atomic_load(counter) }
    var failed: UInt64 { orchard_atomic_load(counter + 1) }

    func isComplete(_ ticket: UInt64) -> Bool { ticket <= completed }

    /// Handlers of one queue may run out of order, so the counter advances only without gaps. It stops at a dropped
    /// ticket until that is run again or given up, so that neither it nor a later ticket counts as complete.
    func end(_ ticket: UInt64, _ outcome: Outcome) {
        condition.withLock {
            if case .failed(let reason) = outcome { remember(reason, of: ticket) }
            ended[ticket] = outcome
            var row = completed
            while let next = ended[row + 1], !next.isDropped {
                row += 1
                ended[row] = nil
            }
            orchard_atomic_store(counter, row)
            condition.broadcast()
        }
        if outcome.isDropped { onDrop() }
    }

    // MARK: Dropped ones

    var hasDropped: Bool { condition.withLock { ended.values.contains(where: \.isDropped) } }

    /// Returns nil if the ticket is complete, or has not ended.
    func outcome(of ticket: UInt64) -> Outcome? { condition.withLock { ended[ticket] } }

    /// Marks a ticket that runs again as not ended.
    func reopen(_ ticket: UInt64) { condition.withLock { ended[ticket] = nil } }

    func countReplacedQueue() { orchard_atomic_store(counter + 2, orchard_atomic_load(counter + 2) + 1) }

    /// Waits until every ticket up to this one has ended in some way.
    func waitUntilEnded(through last: UInt64) {
        condition.withLock {
            while true {
                let row = completed
                if row >= last || (row + 1...last).allSatisfy({ ended[$0] != nil }) { return }
                condition.wait()
            }
        }
    }

    // MARK: Waiting

    func failure(of ticket: UInt64) -> OrchardError? {
        condition.withLock { failures[ticket] }.map {
            OrchardError(ORCHARD_DEVICE_FAILED, "Command buffer \(ticket) failed: \($0)")
        }
    }

    /// Returns false if the deadline passes first.
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
