import Foundation

/// Writes a context's pipeline archives when no pipeline has been made for a while, when the context closes, and when
/// the process exits. A program often makes many pipelines in a row, and an archive file can only be written as a
/// whole.
final class ArchiveWriter: @unchecked Sendable {
    /// Seconds without a new pipeline before archives are written.
    var pause: TimeInterval = 2

    private let queue = DispatchQueue(label: "orchard.archives")
    private let condition = NSCondition()
    private var waiting: [Library] = []
    private var additions = 0
    private var isPausing = false

    /// Schedules a write of the archive of this library, to which a pipeline was added.
    func schedule(_ library: Library) {
        condition.withLock {
            if !waiting.contains(where: { $0 === library }) { waiting.append(library) }
            additions += 1
            guard !isPausing else { return }
            isPausing = true
            queue.async { self.flushAfterPause() }
        }
    }

    /// Writes immediately. With a deadline, waits until then for an archive into which another thread is compiling.
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
                while condition.wait(until: end) {}  // never signaled: waits until the end of the pause
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
