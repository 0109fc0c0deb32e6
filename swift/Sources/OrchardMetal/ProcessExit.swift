import Foundation

/// A process that exits while the device is running would free memory that the device's threads use. So at exit, every
/// open context gets some time to finish its committed work and to write its pipeline archives. Uncommitted work never
/// runs.
enum ProcessExit {
    static let timeout: TimeInterval = 2

    private struct Weak { weak var context: Context? }

    private static let lock = NSLock()
    nonisolated(unsafe) private static var contexts: [Weak] = []
    private static let registration: Void = { atexit { ProcessExit.drain() } }()

    static func watch(_ context: Context) {
        _ = registration
        lock.withLock {
            contexts.removeAll { $0.context == nil }
            contexts.append(Weak(context: context))
        }
    }

    private static func drain() {
        let deadline = Date(timeIntervalSinceNow: timeout)
        for context in lock.withLock({ contexts.compactMap(\.context) }) {
            _ = context.tickets.wait(for: context.stream.lastCommitted, until: deadline)
            context.archives.flush(until: deadline)
        }
    }
}
