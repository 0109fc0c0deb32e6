import Foundation
import Metal

/// How a command buffer ended.
enum Outcome {
    case completed
    case failed(String)
    /// It ended for a failure that was not its own. Where it may have run in part, its writes may be there in part.
    case dropped(mayHaveRun: Bool, String)

    init(_ commandBuffer: any MTLCommandBuffer) {
        guard commandBuffer.status == .error else {
            self = .completed
            return
        }
        self = commandBuffer.error.map(Outcome.init(error:)) ?? .failed("no reason is given")
    }

    /// "Ignored (for causing prior/excessive GPU errors)" is what a queue answers that takes no more work: nothing of
    /// it ran. "Discarded (victim of GPU error/recovery)" is what becomes of work that the GPU had, or was about to
    /// get, when it was restarted: it has the code of any internal error, so that its name has to tell.
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
