import COrchard
import Foundation
import Metal

enum Storage: UInt32 {
    case shared = 1
    case `private` = 2

    var options: MTLResourceOptions { self == .shared ? .storageModeShared : .storageModePrivate }
    var name: String { self == .shared ? "shared" : "private" }
}

/// Memory of the device, and the command buffers that used it last.
final class Allocation: @unchecked Sendable {
    let buffer: any MTLBuffer
    let bytes: Int
    let storage: Storage
    var lastUse: UInt64 = 0
    var lastWrite: UInt64 = 0
    fileprivate var freedAt: UInt64 = 0

    init(_ buffer: any MTLBuffer, bytes: Int, storage: Storage) {
        self.buffer = buffer
        self.bytes = bytes
        self.storage = storage
    }
}

enum SizeClass {
    static let page = 16384
    static let smallest = 256

    /// Sizes are powers of two up to a page. Above that, they are whole pages, in steps of an eighth of the next lower
    /// power of two, so at most an eighth is wasted, and each doubling has eight size classes.
    static func bytes(for length: Int) -> Int {
        if length <= smallest { return smallest }
        let power = 1 << (Int.bitWidth - 1 - (length - 1).leadingZeroBitCount)
        let step = length <= page ? 2 * power : max(page, power / 8)
        let (sum, overflow) = length.addingReportingOverflow(step - 1)
        return overflow ? length : sum / step * step
    }
}

/// Buffers of the device that are kept for reuse. Guarded by the context's lock.
///
/// A released buffer is free once the last command buffer that uses it is complete. Until then it is in `waiting`, and
/// counts as live.
final class BufferPool {
    private struct Key: Hashable {
        let bytes: Int
        let storage: Storage
    }

    var cacheLimit: UInt64 { didSet { statistics.values.cache_limit = cacheLimit; trim(to: cacheLimit) } }
    var memoryLimit: UInt64 { didSet { statistics.values.memory_limit = memoryLimit } }

    private let device: any MTLDevice
    private let exact: Bool
    private let isSoftware: Bool
    private let tickets: Tickets
    private let faults: Faults
    private let statistics: Statistics
    private var cache: [Key: [Allocation]] = [:]
    private var waiting: [Allocation] = []
    private var waitingBytes: UInt64 = 0
    /// The last complete command buffer when `waiting` was last searched: all buffers in it were used later.
    private var collectedTo: UInt64 = 0
    private var clock: UInt64 = 0

    init(
        device: any MTLDevice, exact: Bool, cacheLimit: UInt64, memoryLimit: UInt64,
        tickets: Tickets, faults: Faults, statistics: Statistics
    ) {
        self.device = device
        self.exact = exact
        isSoftware = SoftwareDevice.isPresent(as: device)
        self.cacheLimit = cacheLimit
        self.memoryLimit = memoryLimit
        self.tickets = tickets
        self.faults = faults
        self.statistics = statistics
        statistics.values.cache_limit = cacheLimit
        statistics.values.memory_limit = memoryLimit
    }

    var hasWaiting: Bool { !waiting.isEmpty }

    func allocate(_ length: UInt64, _ storage: Storage, label: String?) throws -> Allocation {
        guard length >= 1 else {
            throw OrchardError.invalid("Expected the length of a buffer to be at least 1 byte, got 0.")
        }
        let most = device.maxBufferLength  // read once: the software device looks up a setting
        guard length <= most else {
            let message =
                "Expected the length of a buffer to be at most \(most) bytes (the device's limit), got \(length)."
            throw OrchardError(ORCHARD_OUT_OF_MEMORY, message)  // another backend may have free memory
        }
        collect()
        let bytes = exact ? Int(length) : min(SizeClass.bytes(for: Int(length)), most)
        if faults.take(.allocate) != nil { throw outOfMemory(bytes, "the device has no more (injected)") }
        let allocation = try reuse(Key(bytes: bytes, storage: storage)) ?? make(bytes, storage)
        if !exact, isSoftware { SoftwareDevice.reuse(allocation.buffer, length: length) }
        allocation.buffer.label = label
        allocation.lastWrite = 0
        statistics.values.live_bytes += UInt64(bytes)
        statistics.values.live_buffers += 1
        statistics.values.peak_bytes = max(statistics.values.peak_bytes, statistics.values.live_bytes)
        return allocation
    }

    func release(_ allocation: Allocation) {
        waitingBytes += UInt64(allocation.bytes)
        if allocation.lastUse <= tickets.completed {
            store(allocation)
            trim(to: cacheLimit)
        } else {
            waiting.append(allocation)
        }
        collect()
    }

    /// Moves buffers that the device no longer uses to the cache.
    func collect() {
        let completed = tickets.completed
        guard completed != collectedTo else { return }
        collectedTo = completed
        guard waiting.contains(where: { $0.lastUse <= completed }) else { return }
        let done = waiting.filter { $0.lastUse <= completed }
        waiting.removeAll { $0.lastUse <= completed }
        for allocation in done { store(allocation) }
        trim(to: cacheLimit)
    }

    /// Frees the buffers that have been unused for the longest time.
    func trim(to limit: UInt64) {
        guard statistics.values.cached_bytes > limit else { return }
        let oldestFirst = cache.flatMap { key, list in list.map { (key: key, allocation: $0) } }
            .sorted { $0.allocation.freedAt < $1.allocation.freedAt }
        for entry in oldestFirst where statistics.values.cached_bytes > limit {
            cache[entry.key]!.removeFirst()
            if cache[entry.key]!.isEmpty { cache[entry.key] = nil }
            uncache(entry.allocation)
        }
    }

    // MARK: Parts

    private func reuse(_ key: Key) -> Allocation? {
        guard let allocation = cache[key]?.popLast() else { return nil }
        if cache[key]!.isEmpty { cache[key] = nil }
        uncache(allocation)
        statistics.values.pool_hits += 1
        return allocation
    }

    private func make(_ bytes: Int, _ storage: Storage) throws -> Allocation {
        let used = statistics.values.live_bytes + UInt64(bytes)
        guard used <= memoryLimit else { throw outOfMemory(bytes, "the limit is \(memoryLimit)") }
        trim(to: memoryLimit - used)
        let options = storage.options
        var buffer = device.makeBuffer(length: bytes, options: options)
        if buffer == nil {
            trim(to: 0)
            buffer = device.makeBuffer(length: bytes, options: options)
        }
        guard let buffer else { throw outOfMemory(bytes, "the device has no more") }
        statistics.values.allocations += 1
        return Allocation(buffer, bytes: bytes, storage: storage)
    }

    private func store(_ allocation: Allocation) {
        let bytes = UInt64(allocation.bytes)
        statistics.values.live_bytes -= bytes
        statistics.values.live_buffers -= 1
        waitingBytes -= bytes
        guard !exact, bytes <= cacheLimit else { return }
        clock += 1
        allocation.freedAt = clock
        cache[Key(bytes: allocation.bytes, storage: allocation.storage), default: []].append(allocation)
        statistics.values.cached_bytes += bytes
        statistics.values.cached_buffers += 1
    }

    private func uncache(_ allocation: Allocation) {
        statistics.values.cached_bytes -= UInt64(allocation.bytes)
        statistics.values.cached_buffers -= 1
    }

    private func outOfMemory(_ bytes: Int, _ cause: String) -> OrchardError {
        let inFlight =
            waitingBytes == 0 ? "" : ", of which \(waitingBytes) are released but still used by commands in flight"
        return OrchardError(
            ORCHARD_OUT_OF_MEMORY,
            "\(bytes) bytes can't be allocated: \(statistics.values.live_bytes) are live\(inFlight), "
                + "\(statistics.values.cached_bytes) cached, and \(cause). Release buffers, or raise memory_limit.")
    }
}
