import Foundation
import Metal

/// The outcome of a command buffer.
enum Outcome {
    case completed
    case failed(String)
    /// It ended because of another command buffer's failure. If it may have run partially, some of its writes may have
    /// happened.
    case dropped(mayHaveRun: Bool, String)

    init(_ commandBuffer: any MTLCommandBuffer) {
        guard commandBuffer.status == .error else {
            self = .completed
            return
        }
        self = commandBuffer.error.map(Outcome.init(error:)) ?? .failed("no reason is given")
    }

    /// "Ignored (for causing prior/excessive GPU errors)" comes from a queue that accepts no more work: nothing of the
    /// command buffer ran. "Discarded (victim of GPU error/recovery)" means that the GPU was reset while it ran the
    /// work, or before it. All internal errors have the same code, so the name is compared.
    init(error: any Error) {
        let code = error as NSError
        if code.domain == MTLCommandBufferErrorDomain,
            code.code == Int(MTLCommandBufferError.Code.accessRevoked.rawValue)
        {
            self = .dropped(mayHaveRun: false, error.reason)
        } else if code.localizedDescription.contains("InnocentVictim") {
            self = .dropped(mayHaveRun: true, error.reason)
        } else {
            self = .failed(error.reason)
        }
    }

    var isDropped: Bool {
        if case .dropped = self { return true }
        return false
    }
}
