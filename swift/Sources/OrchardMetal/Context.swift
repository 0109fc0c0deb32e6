import COrchard
import Foundation
import Metal

/// The options of orchard_open, with all defaults filled in.
struct ContextOptions {
    var storage = Storage.shared
    var exact = false
    var batchOperations = 40
    var timeout: TimeInterval = 600
    var batchBytes = 40_000_000
    var batchWork: UInt64 = 1 << 36
    var cacheLimit: UInt64?
    var memoryLimit: UInt64?
    var cacheFolder: String?
    var materializeSource: String?
    var label = "orchard"
}

/// An open device: all objects behind its handles, and the lock that guards them.
///
/// A thread that holds `lock` must neither wait for the device nor compile.
final class Context: HandleObject, @unchecked Sendable {
    override class var kind: HandleKind { .context }
    override var context: Context { self }

    let device: any MTLDevice
    let tickets = Tickets()
    let faults = Faults()
    let statistics = Statistics()
    let pool: BufferPool
    let stream: Stream
    let libraries: LibraryCache
    let archives = ArchiveWriter()
    let copyKernels = CopyKernels()
    let limits: DeviceLimits
    let materializeSource: String?
    let capabilities = Capabilities()
    let capture: Capture

    private let lock = NSLock()
    private let recovery = DispatchQueue(label: "orchard.recovery")
    private var isClosed = false
    private var notes: [String] = []
    private var storage: Storage
    private var timeout: TimeInterval

    init(
        _ options: ContextOptions,
        device: (any MTLDevice)? = MTLCreateSystemDefaultDevice()
            ?? (SoftwareDevice.isPresent ? nil : MTLCopyAllDevices().first)
    ) throws {
        guard let device else { throw OrchardError(ORCHARD_UNSUPPORTED, SoftwareDevice.reasonForNone()) }
        self.device = device
        limits = DeviceLimits(device)
        capture = Capture(device: device)
        storage = options.storage
        timeout = options.timeout
        materializeSource = options.materializeSource
        let memoryLimit = options.memoryLimit ?? max(device.recommendedMaxWorkingSetSize, 1 << 28)
        pool = BufferPool(
            device: device, exact: options.exact, cacheLimit: options.cacheLimit ?? memoryLimit / 4,
            memoryLimit: memoryLimit,
            tickets: tickets, faults: faults, statistics: statistics)
        stream = try Stream(
            device: device, label: options.label, batchOperations: options.batchOperations,
            batchBytes: options.batchBytes, batchWork: options.batchWork,
            tickets: tickets, faults: faults, statistics: statistics)
        libraries = LibraryCache(device: device, cacheFolder: options.cacheFolder)
        super.init()
        // Runs on a separate thread, since the device's threads must not block, and threads that encode must not wait
        // for the device.
        tickets.onDrop = { [weak self] in
            guard let self else { return }
            recovery.async { self.replaceQueue() }
        }
    }

    private func replaceQueue() {
        guard let last = lock.withLock({ stream.suspend() }) else { return }
        tickets.waitUntilEnded(through: last)
        lock.withLock { notes.append(stream.resume().note) }
    }

    /// Runs `body` with the lock, or throws if the context is closed.
    func locked<Result>(_ body: () throws -> Result) throws -> Result {
        try lock.withLock {
            guard !isClosed else { throw OrchardError(ORCHARD_CLOSED, "The context was closed.") }
            return try body()
        }
    }

    func countError() { lock.withLock { statistics.values.errors += 1 } }

    func note(_ text: String) { lock.withLock { notes.append(text) } }

    /// Records an event of a pipeline archive.
    func record(_ report: PipelineArchive.Report) {
        lock.withLock {
            notes += report.notes
            statistics.values.archive_rebuilds += report.rebuilds
            statistics.values.archive_failures += report.failures
            statistics.values.archive_writes += report.writes
        }
    }

    func currentNotes() -> [String] { lock.withLock { notes } }

    func clearNotes() { lock.withLock { notes = [] } }

    // MARK: Under the lock

    /// Replaces the default value by the context's storage.
    func resolve(_ storage: UInt32) throws -> Storage {
        guard storage != ORCHARD_STORAGE_DEFAULT.rawValue else { return self.storage }
        guard let known = Storage(rawValue: storage) else {
            throw OrchardError.invalid("Expected storage to be 0 (default), 1 (shared) or 2 (private), got \(storage).")
        }
        return known
    }

    /// If memory is short and the open command buffer still uses released buffers, commits it so that it can finish.
    func allocate(_ length: UInt64, _ storage: Storage, label: String?) throws -> Allocation {
        stream.forgetDone()
        do {
            return try pool.allocate(length, storage, label: label)
        } catch {
            if pool.hasWaiting { stream.commit() }
            throw error
        }
    }

    /// Returns false for the ticket of the open command buffer.
    func isCommitted(_ ticket: UInt64) throws -> Bool {
        if ticket <= stream.lastCommitted { return true }
        guard ticket == stream.openTicket, stream.hasOpenWork else {
            let last = stream.hasOpenWork ? stream.openTicket : stream.lastCommitted
            throw OrchardError.invalid("Ticket \(ticket) was never issued; the last one is \(last).")
        }
        return false
    }

    // MARK: Waiting

    var deadline: Date { Date(timeIntervalSinceNow: lock.withLock { timeout }) }

    /// Commits the ticket if it is open, waits for it, and throws if it failed.
    func wait(for ticket: UInt64, until deadline: Date) throws {
        try locked {
            if try !isCommitted(ticket) { stream.commit() }
        }
        guard tickets.wait(for: ticket, until: deadline) else {
            let running = SoftwareDevice.runningKernels()
            throw OrchardError(
                ORCHARD_TIMEOUT,
                "Command buffer \(ticket) was not complete in time; \(tickets.completed) are"
                    + (running.isEmpty ? "." : ", and \(running) is running.")
                    + " Wait longer, or look for a loop in its kernels that does not end.")
        }
        lock.withLock { stream.forgetDone() }
        if let failure = tickets.failure(of: ticket) { throw failure }
    }

    // MARK: Settings

    func configure(_ name: String, _ value: String) throws {
        guard let setting = Self.settings[name] else { return try configureDevice(name, value) }
        guard try locked({ setting.apply(self, value) }) else {
            throw OrchardError.invalid("Expected \(name) to be \(setting.expected), got '\(value)'.")
        }
    }

    private struct Setting {
        let expected: String
        let apply: (Context, String) -> Bool
    }

    private static func number(_ expected: String, from least: UInt64, _ set: @escaping (Context, UInt64) -> Void)
        -> Setting
    {
        Setting(expected: expected) { context, text in
            guard let value = UInt64(text), value >= least, value <= Int.max else { return false }
            set(context, value)
            return true
        }
    }

    private static let settings: [String: Setting] = [
        "storage": Setting(expected: "shared or private") { context, text in
            guard let storage = [Storage.shared, .private].first(where: { $0.name == text }) else { return false }
            context.storage = storage
            return true
        },
        "cache_limit": number("a number of bytes", from: 0) { $0.pool.cacheLimit = $1 },
        "memory_limit": number("a number of bytes", from: 1) { $0.pool.memoryLimit = $1 },
        "batch_bytes": number("a number of bytes, at least 1", from: 1) { $0.stream.batchBytes = Int($1) },
        "batch_work": number("a number, at least 1", from: 1) { $0.stream.batchWork = $1 },
        "batch_operations": number("a number, at least 1", from: 1) { $0.stream.batchOperations = Int($1) },
        "timeout_ms": number("a number of milliseconds", from: 0) { $0.timeout = TimeInterval($1) / 1000 },
    ]

    private func configureDevice(_ name: String, _ value: String) throws {
        guard SoftwareDevice.isPresent else {
            let known = Self.settings.keys.sorted().joined(separator: ", ")
            throw OrchardError(
                ORCHARD_UNSUPPORTED, "\(device.name) has no setting '\(name)'; expected one of \(known).")
        }
        try SoftwareDevice.configure(name, value)
    }

    // MARK: Closing

    /// Returns whether everything completed in time. A second call has no effect.
    func close() -> Bool {
        let deadline = self.deadline
        lock.withLock {
            isClosed = true
            stream.commit()
        }
        archives.flush(until: deadline)
        let complete = tickets.wait(for: stream.lastCommitted, until: deadline)
        copyKernels.removeAll()
        lock.withLock {
            stream.forgetAll()
            pool.collect()
            pool.trim(to: 0)
        }
        return complete
    }
}
