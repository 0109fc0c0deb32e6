/// Decides which batches run again after a command buffer was dropped: that one, and those behind it.
///
/// A repeated batch must compute the results of a first run. So its operands must be unchanged, and no later operation
/// may have read memory without its results:
///
/// - A batch that failed is an error, and is not repeated. A batch that reads memory last written by a failed batch is
///   an error too, since those bytes are missing.
/// - A batch that never ran is always repeated. Batches are repeated in order, on one queue, so that they see each
///   other's results as they would have.
/// - A batch that may have run partially is repeated if it does not write any byte that it reads in the same or a later
///   operation: then a second run writes the same results from the same operands. `x += 1` can't be repeated, since it
///   is unknown which elements have already changed.
/// - A batch that reads bytes that a later batch wrote can't be repeated if the later batch has run, or may have.
/// - A batch that completed behind a dropped one keeps its results. It must not have used bytes of the dropped batch;
///   if it did, the dropped batch is an error, and the missing effect on those bytes is not repaired.
///
/// A batch that may have run partially is assumed to have begun with complete operands: a queue that orders its command
/// buffers by shared bytes starts none before those that it depends on have ended.
struct RepeatPlan {
    struct Entry {
        let batch: Batch
        let outcome: Outcome
    }

    enum Verdict: Equatable {
        /// It completed, or one of its dispatches caused the failure.
        case stands
        case again
        /// It can't be run again.
        case lost(String)
    }

    /// A batch that is dropped after this many repeats is given up: the device accepts no work from it.
    static let mostRepeats = 2

    /// In the order of the entries. `hasFailed` must answer for complete tickets.
    static func verdicts(_ entries: [Entry], hasFailed: (UInt64) -> Bool) -> [Verdict] {
        var lost: Set<UInt64> = []
        return entries.enumerated().map { index, entry in
            guard case .dropped(let mayHaveRun, let reason) = entry.outcome else {
                if case .failed = entry.outcome { lost.insert(entry.batch.ticket) }
                return .stands
            }
            let cause =
                missingOperand(of: entry.batch) { lost.contains($0) || hasFailed($0) }
                ?? overtaker(of: entry.batch, among: entries[(index + 1)...])
                ?? (mayHaveRun && changesWhatItRead(entry.batch)
                    ? "it may have run in part, and changes bytes that it reads" : nil)
                ?? (entry.batch.repeats >= mostRepeats ? "it was run \(mostRepeats + 1) times" : nil)
            guard let cause else { return .again }
            lost.insert(entry.batch.ticket)
            return .lost("\(reason), and it can't be run again: \(cause)")
        }
    }

    private static func missingOperand(of batch: Batch, _ isLost: (UInt64) -> Bool) -> String? {
        let uses = batch.operations.lazy.flatMap(\.uses)
        return uses.first { $0.reads && $0.writtenBy != batch.ticket && isLost($0.writtenBy) }
            .map { "it reads what command buffer \($0.writtenBy) did not write" }
    }

    private static func overtaker(of batch: Batch, among later: ArraySlice<Entry>) -> String? {
        for entry in later {
            let isCompleted: Bool
            switch entry.outcome {
            case .completed: isCompleted = true
            case .failed, .dropped(mayHaveRun: true, _): isCompleted = false
            case .dropped(mayHaveRun: false, _): continue
            }
            let its = Dictionary(grouping: entry.batch.operations.lazy.flatMap(\.uses)) {
                ObjectIdentifier($0.allocation)
            }
            let collides = batch.operations.lazy.flatMap(\.uses).contains { use in
                (its[ObjectIdentifier(use.allocation)] ?? []).contains {
                    $0.overlaps(use) && (use.reads && $0.writes || isCompleted && use.writes)
                }
            }
            if collides { return "command buffer \(entry.batch.ticket), which comes later, used its memory before it" }
        }
        return nil
    }

    private static func changesWhatItRead(_ batch: Batch) -> Bool {
        var reads: [ObjectIdentifier: [Use]] = [:]
        for operation in batch.operations {
            for use in operation.uses where use.reads {
                reads[ObjectIdentifier(use.allocation), default: []].append(use)
            }
            for use in operation.uses where use.writes {
                if (reads[ObjectIdentifier(use.allocation)] ?? []).contains(where: use.overlaps) { return true }
            }
        }
        return false
    }
}
