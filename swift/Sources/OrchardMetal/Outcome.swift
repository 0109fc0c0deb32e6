import Foundation
import Metal

/// How a command buffer ended.
enum Outcome {
    case completed
    case failed(String)
    /// It ended because of another command buffer's failure. If it may have run in part, it may have made some of its
    /// writes.
    case dropped(mayHaveRun: Bool, String)

    init(_ commandBuffer: any MTLCommandBuffer) {
        guard commandBuffer.status == .error else {
            self = .completed
            return
        }
        self = commandBuffer.error.map(Outcome.init(error:)) ?? .failed("no reason is given")
    }

    /// "Ignored (for causing prior/excessive GPU errors)" is the answer of a queue that accepts no more work: nothing
    /// of it ran. "Discarded (victim of GPU error/recovery)" is the result of work that the GPU had, or was about to
    /// get, when it was restarted. Its code is that of any internal error, so the name decides.
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
