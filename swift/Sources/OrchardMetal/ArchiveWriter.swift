import Foundation

/// Writes the pipeline archives of a context once no pipeline was made for a while, when it closes, and when the
/// process ends: a program makes many pipelines in a row, and each archive is one file, which can only be written
/// whole.
final class ArchiveWriter: @unchecked Sendable {
    /// Without a new pipeline, in seconds.
    var pause: TimeInterval = 2

    private let queue = DispatchQueue(label: "orchard.archives")
    private let condition = NSCondition()
    private var waiting: [Library] = []
    private var additions = 0
    private var isPausing = false

    /// A pipeline was added to the archive of this library.
    func schedule(_ library: Library) {
        condition.withLock {
            if !waiting.contains(where: { $0 === library }) { waiting.append(library) }
            additions += 1
            guard !isPausing else { return }
            isPausing = true
            queue.async { self.flushAfterPause() }
        }
    }

    /// Writes now. Until a deadline, where there is one, an archive is waited for that somebody compiles into.
    func flush(until deadline: Date? = nil) {
        let due = condition.withLock {
            defer { waiting = [] }
            return waiting
        }
        for library in due { library.writeArchive(until: deadline) }
    }

    private func flushAfterPause() {
        condition.withLock {
            var seen: Int
            repeat {
                seen = additions
                let end = Date(timeIntervalSinceNow: pause)
                while condition.wait(until: end) {}  // nobody signals
            } while additions != seen
            isPausing = false
        }
        flush()
    }
}

extension Library {
    fileprivate func writeArchive(until deadline: Date?) {
        guard let archive else { return }
        let report = pipelines.locked(until: deadline) {
            archive.write()
            return archive.takeReport()
        }
        if let report { owner.record(report) }
    }
}
