import Foundation
import Metal

/// The compiled pipelines of one library, in one file of the cache folder: an MTLBinaryArchive.
///
/// One file per library keeps files small, and a corrupt file affects only its library. New pipelines are written after
/// a pause (`ArchiveWriter`) to a file with a unique name, which is then renamed: another process sees the old archive
/// or the new one, never a part. Guarded by the lock of the library's pipelines.
final class PipelineArchive {
    struct Report {
        var rebuilds: UInt64 = 0
        var failures: UInt64 = 0
        var writes: UInt64 = 0
        var notes: [String] = []
    }

    /// On a virtual machine's device, archives can crash the process. Such a device, unlike every Apple silicon device,
    /// does not support the Metal 3 family.
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

    /// Returns the archive from disk, or an empty one if there is none or it can't be read; nil if the device does not
    /// support archives.
    func archive() -> (any MTLBinaryArchive)? {
        if let opened { return opened }
        opened = load() ?? empty()
        return opened
    }

    /// Compiles a pipeline into the archive, from which it is then made. Returns false on failure.
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

    /// Records that a pipeline could not be added to the archive, but could be made without it.
    func noteRefusal() {
        if let refusal { fail(refusal) }
        refusal = nil
    }

    /// Writes the archive if pipelines were added since the last time.
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
