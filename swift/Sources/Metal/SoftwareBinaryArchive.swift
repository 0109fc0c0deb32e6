import MetalRuntime

/// A file that lists the functions for which pipelines were compiled. The compiled code is in the runtime's cache,
/// keyed by content. A digest protects the list.
final class SoftwareBinaryArchive: NSObject, MTLBinaryArchive, @unchecked Sendable {
    private static let magic = "Metal software archive 1"
    private let lock = NSLock()
    private var entries: Set<String> = []
    var label: String?
    var device: any MTLDevice { SoftwareDevice.shared }

    /// Creates an empty archive, or reads it from `url`.
    init(url: URL?) throws {
        super.init()
        if let url { entries = try Self.read(url) }
    }

    func addComputePipelineFunctions(descriptor: MTLComputePipelineDescriptor) throws {
        guard let function = descriptor.computeFunction as? SoftwareFunction, (try? function.compiled()) != nil else {
            throw MTLBinaryArchiveError(
                .compilationFailure, "The descriptor has no computeFunction that a pipeline can be made of.")
        }
        if !contains(function) { PipelineCompilations.add() }
        add(function)
    }

    func addFunction(descriptor: MTLFunctionDescriptor, library: any MTLLibrary) throws {
        guard let function = try library.makeFunction(descriptor: descriptor) as? SoftwareFunction else {
            throw MTLBinaryArchiveError(.unexpectedElement, "The library belongs to another device.")
        }
        add(function)
    }

    func serialize(to url: URL) throws {
        let list = lock.withLock { entries.sorted() }
        guard !list.isEmpty else {
            throw MTLBinaryArchiveError(
                .unexpectedElement, "The binary archive is empty: add a function before serialize(to:).")
        }
        let digest = Fingerprint(list).description
        let text = ([Self.magic, digest] + list).joined(separator: "\n")
        do {
            try Data(text.utf8).write(to: url, options: .atomic)
        } catch {
            throw MTLBinaryArchiveError(
                .internalError, "The binary archive could not be written to \(url.path): \(error.localizedDescription)")
        }
    }

    func contains(_ function: SoftwareFunction) -> Bool { lock.withLock { entries.contains(Self.entry(function)) } }

    private func add(_ function: SoftwareFunction) { lock.withLock { _ = entries.insert(Self.entry(function)) } }

    private static func entry(_ function: SoftwareFunction) -> String { "\(function.fingerprint) \(function.name)" }

    private static func read(_ url: URL) throws -> Set<String> {
        guard let data = try? Data(contentsOf: url) else {
            throw MTLBinaryArchiveError(.invalidFile, "No binary archive can be read at \(url.path).")
        }
        let lines = String(decoding: data, as: UTF8.self).components(separatedBy: "\n")
        guard lines.count > 2, lines[0] == magic, lines[1] == Fingerprint(Array(lines[2...])).description else {
            throw MTLBinaryArchiveError(
                .invalidFile,
                "The file at \(url.path) is not a binary archive of this device, or is damaged; delete it and "
                    + "serialize again."
            )
        }
        return Set(lines[2...])
    }
}
