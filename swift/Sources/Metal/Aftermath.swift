import MetalRuntime

/// What the next command buffers of a queue meet after one that failed. A GPU that was restarted may have dropped them
/// half way, and a driver may take no more from a queue that it blames: the setting `after_fault` chooses.
///
/// Used on the queue's thread alone.
struct Aftermath {
    enum Verdict {
        case runs
        /// None of its commands runs, nor does anything that the queue gets later.
        case ignored
        /// The first half of its commands runs, the odd one included: of a single command, all of it.
        case discarded
    }

    private var next = Verdict.runs

    /// Of the command buffer that begins now.
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
