import MetalRuntime

/// The fate of the next command buffers of a queue after one has failed. A GPU that was reset may have dropped them
/// half way, and a driver may accept no more work from the queue that caused the failure. The setting `after_fault`
/// selects the behavior.
///
/// Used only on the queue's thread.
struct Aftermath {
    enum Verdict {
        case runs
        /// No command of this or any later command buffer of the queue runs.
        case ignored
        /// The first half of its commands runs, rounded up: a single command runs completely.
        case discarded
    }

    private var next = Verdict.runs

    /// Returns the verdict on the command buffer that begins now.
    mutating func verdict() -> Verdict {
        defer { if next == .discarded { next = .runs } }
        return next
    }

    mutating func commandBufferFailed() {
        switch takeMessage(mrt_setting_get("after_fault")) {
        case "ignore": next = .ignored
        case "discard": next = .discarded
        default: break
        }
    }
}
