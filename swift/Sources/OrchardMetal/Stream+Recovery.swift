import COrchard

/// Replaces a queue that accepts no more work. After a GPU failure, a driver may reject all later command buffers of
/// the queue that caused it. A reset of the GPU also drops the command buffers that the GPU had, even if another
/// process caused it.
///
/// The stream is suspended as soon as a command buffer is dropped: operations are accepted and kept, but none is
/// submitted to the old queue. Once every command buffer of the old queue has ended, a new queue gets the batches that
/// `RepeatPlan` selects, then the operations that were kept. Until then, no ticket from the dropped one on is complete.
/// So the CPU does not read or write memory that a repeated operation will use, and its buffers are not reused. Nothing
/// else needs to be ordered: the dylib encodes no events, and operations of other queues share no buffers.
extension Stream {
    struct Recovery {
        var reason = ""
        var repeated = 0
        var lost = 0

        /// A message for the user, once for each queue.
        var note: String {
            "The device dropped \(repeated + lost) command buffers for a failure that was not theirs: \(reason). "
                + "A new queue runs \(repeated) of them again; \(lost) can't be run again and failed."
        }
    }

    /// Returns the last ticket of the old queue, which must end before `resume`; nil if no recovery is needed.
    func suspend() -> UInt64? {
        guard !isSuspended, tickets.hasDropped else { return nil }
        isSuspended = true
        _ = writer.take()  // the open batch will be encoded again
        return lastSubmitted
    }

    /// Continues with a new queue. Every command buffer of the old one must have ended.
    func resume() -> Recovery {
        commit()  // the stream is suspended, so nothing is encoded
        forgetDone()  // the remaining batches have not ended, or come after a dropped one
        let submitted = lastSubmitted
        let entries = underWay.map { batch in
            RepeatPlan.Entry(
                batch: batch,
                outcome: tickets.outcome(of: batch.ticket) ?? .dropped(mayHaveRun: false, "it was not begun"))
        }
        let verdicts = RepeatPlan.verdicts(entries) { [tickets] in tickets.failure(of: $0) != nil }
        tickets.countReplacedQueue()
        let replaced = Result(catching: makeWriter)
        if let fresh = try? replaced.get() { writer = fresh }
        var recovery = Recovery()
        for (entry, verdict) in zip(entries, verdicts) {
            let isRepeated = entry.batch.ticket <= submitted
            switch verdict {
            case .stands: continue
            case .again:
                encodeAgain(entry.batch, replaced)
                if isRepeated { recovery.repeated += 1 }
            case .lost(let reason):
                tickets.end(entry.batch.ticket, .failed(reason))
                if isRepeated { recovery.lost += 1 }
            }
            if case .dropped(_, let reason) = entry.outcome, recovery.reason.isEmpty { recovery.reason = reason }
        }
        for group in groups { writer.pushGroup(group) }
        statistics.values.queues_replaced += 1
        statistics.values.command_buffers_repeated += UInt64(recovery.repeated)
        isSuspended = false
        return recovery
    }

    private func encodeAgain(_ batch: Batch, _ queue: Result<CommandWriter, any Error>) {
        if batch.ticket <= lastSubmitted { batch.repeats += 1 }
        tickets.reopen(batch.ticket)
        do {
            _ = try queue.get()
            for operation in batch.operations { try writer.encodeAgain(operation) }
            submit(batch)
        } catch {
            _ = writer.take()
            tickets.end(batch.ticket, .failed((error as? OrchardError)?.message ?? error.reason))
        }
    }
}
