import Foundation
import Metal

/// The compiled pipelines of one library, in one file of the cache folder: MTLBinaryArchive.
///
/// One file for each library keeps files small, and a corrupt file costs only its library. New pipelines are written
/// after a pause (`ArchiveWriter`) to a file with a unique name, which is then renamed: another process sees the old
/// archive or the new one, never part of one. Guarded by the lock of the library's pipelines.
final class PipelineArchive {
    struct Report {
        var rebuilds: UInt64 = 0
        var failures: UInt64 = 0
        var writes: UInt64 = 0
        var notes: [String] = []
    }

    /// With archives, a virtual machine's device can end the process. Unlike every Apple Silicon device, it has no
    /// Metal 3 family.
    static func isSupported(on device: any MTLDevice) -> Bool { device.supportsFamily(.metal3) }

    let url: URL
    private let device: any MTLDevice
    private var opened: (any MTLBinaryArchive)?
    private var isDirty = false
    private var refusal: (any Error)?
    private(set) var report = Report()

    init(device: any MTLDevice, folder: String, identity: String) {
        self.device = device
        url = URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(
            "pipelines-\(identity).metalarchive")
    }

    /// Returns the archive on disk; an empty one if there is none, or if it can't be read. Nil if the device can't make
    /// archives.
    func archive() -> (any MTLBinaryArchive)? {
        if let opened { return opened }
        opened = load() ?? empty()
        return opened
    }

    /// Compiles a pipeline into the archive, from which it is then made. Returns false if that failed.
    func add(_ descriptor: MTLComputePipelineDescriptor) -> Bool {
        guard let archive = archive() else { return false }
        do {
            try archive.addComputePipelineFunctions(descriptor: descriptor)
            isDirty = true
            return true
        } catch {
            refusal = error
            return false
        }
    }

    /// Notes that a pipeline could not be added to the archive but could be made without it.
    func noteRefusal() {
        if let refusal { fail(refusal) }
        refusal = nil
    }

    /// Writes the pipelines that were added since the last time.
    func write() {
        guard isDirty, let opened else { return }
        isDirty = false
        do {
            try write(opened)
            report.writes += 1
        } catch {
            fail(error)
        }
    }

    private func fail(_ error: any Error) {
        report.failures += 1
        report.notes.append("The pipeline cache \(url.path) was not written: \(error.reason).")
    }

    func takeReport() -> Report {
        defer { report = Report() }
        return report
    }

    private func load() -> (any MTLBinaryArchive)? {
        guard FileManager.default.fileExists(atPath: url.path) else { return nil }
        let descriptor = MTLBinaryArchiveDescriptor()
        descriptor.url = url
        do {
            return try device.makeBinaryArchive(descriptor: descriptor)
        } catch {
            report.rebuilds += 1
            report.notes.append("The pipeline cache \(url.path) could not be read and is built anew: \(error.reason).")
            try? FileManager.default.removeItem(at: url)
            return nil
        }
    }

    private func empty() -> (any MTLBinaryArchive)? {
        try? device.makeBinaryArchive(descriptor: MTLBinaryArchiveDescriptor())
    }

    private func write(_ archive: any MTLBinaryArchive) throws {
        let folder = url.deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let fresh = folder.appendingPathComponent(
            ".\(url.lastPathComponent).\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)")
        do {
            try archive.serialize(to: fresh)
            guard rename(fresh.path, url.path) == 0 else { throw NSError(domain: NSPOSIXErrorDomain, code: Int(errno)) }
        } catch {
            try? FileManager.default.removeItem(at: fresh)
            throw error
        }
    }
}
