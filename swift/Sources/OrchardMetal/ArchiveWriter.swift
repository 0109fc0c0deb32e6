import Foundation

/// Writes the pipeline archives of a context when no pipeline was made for a while, when it closes, and when the
/// process ends. A program makes many pipelines in a row, and an archive file can only be written as a whole.
final class ArchiveWriter: @unchecked Sendable {
    /// Seconds without a new pipeline before archives are written.
    var pause: TimeInterval = 2

    private let queue = DispatchQueue(label: "orchard.archives")
    private let condition = NSCondition()
    private var waiting: [Library] = []
    private var additions = 0
    private var isPausing = false

    /// Schedules writing the archive of this library, to which a pipeline was added.
    func schedule(_ library: Library) {
        condition.withLock {
            if !waiting.contains(where: { $0 === library }) { waiting.append(library) }
            additions += 1
            guard !isPausing else { return }
            isPausing = true
            queue.async { self.flushAfterPause() }
        }
    }

    /// Writes now. With a deadline, it waits until then for an archive that another thread compiles into.
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
