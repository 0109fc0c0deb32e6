/// What becomes of the batches that stand behind a dropped command buffer, that one included: which of them are run
/// again.
///
/// A batch that is run again computes what it would have computed the first time. For that, all that it reads must be
/// what it was then, and nothing that came after it may have seen memory without its results:
///
/// - A batch that failed is an error, and is not repeated. What reads memory that a failed batch was the last to write
///   is an error too: it would compute with bytes that are not there.
/// - A batch that never ran is repeated, whatever it does. Batches are repeated in their order, on one queue, so that
///   they see each other's results as they would have.
/// - A batch that may have run in part is repeated where no byte that it reads is written by itself, at that operation
///   or later: what it wrote in the first run, it writes again from the same operands. `x += 1` can't be repeated: how
///   many elements are changed already is unknown.
/// - Neither can a batch be repeated that reads bytes which a later batch wrote, if that one has run or may have.
/// - A batch that completed behind a dropped one keeps its results. It must not have used the dropped one's bytes:
///   else the dropped one is an error, and what it would have done to them is not done late.
///
/// A batch that may have run in part is taken for one that began with its operands complete: a queue that orders its
/// command buffers by the bytes that they share starts none before those have ended that it waits for.
struct RepeatPlan {
    struct Entry {
        let batch: Batch
        let outcome: Outcome
    }

    enum Verdict: Equatable {
        /// It completed, or failed by itself.
        case stands
        case again
        /// It can't be run again.
        case lost(String)
    }

    /// A batch that was dropped as often again is given up: the device takes none of its work.
    static let mostRepeats = 2

    /// In the order of the entries. `hasFailed` answers for tickets that are complete.
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
