import COrchard
import Foundation
import Metal

/// The operations of one command buffer.
final class Batch {
    let ticket: UInt64
    fileprivate(set) var operations: [Operation]
    fileprivate(set) var bytes = 0
    fileprivate(set) var work: UInt64 = 0
    /// The number of times that it was encoded again.
    var repeats = 0

    init(ticket: UInt64, operations: [Operation] = []) {
        self.ticket = ticket
        self.operations = operations
    }
}

/// The operations of a context in order, divided into batches: one command buffer each, on one queue. Guarded by the
/// context's lock.
///
/// Nothing here waits or allocates: the memory of an operation is allocated beforehand.
final class Stream {
    var batchOperations: Int
    var batchBytes: Int
    var batchWork: UInt64

    /// Encodes for the current queue.
    var writer: CommandWriter
    /// The last ticket that was submitted to a queue.
    var lastSubmitted: UInt64 = 0
    /// Set while the queue is being replaced: operations are only kept (Stream+Recovery.swift).
    var isSuspended = false
    /// Committed batches that may not be complete, in order.
    private(set) var underWay: [Batch] = []
    /// The batch to which the next operation belongs.
    private(set) var open = Batch(ticket: 1)

    let tickets: Tickets
    let statistics: Statistics
    let makeWriter: () throws -> CommandWriter
    private let faults: Faults
    private(set) var groups: [String] = []

    init(
        device: any MTLDevice, label: String, batchOperations: Int, batchBytes: Int, batchWork: UInt64,
        tickets: Tickets, faults: Faults, statistics: Statistics
    ) throws {
        makeWriter = { try CommandWriter(device: device, label: label, statistics: statistics) }
        writer = try makeWriter()
        self.batchOperations = batchOperations
        self.batchBytes = batchBytes
        self.batchWork = batchWork
        self.tickets = tickets
        self.faults = faults
        self.statistics = statistics
    }

    /// The ticket of the next operation's command buffer.
    var openTicket: UInt64 { open.ticket }
    var hasOpenWork: Bool { !open.operations.isEmpty }
    var lastCommitted: UInt64 { open.ticket - 1 }

    func compute(_ uses: [Use], work: UInt64, _ encode: @escaping (any MTLComputeCommandEncoder) -> Void) throws
        -> UInt64
    {
        let ticket = try add(Operation(uses: uses, encode: .compute(encode), work: work, groups: groups))
        statistics.values.dispatches += 1
        return ticket
    }

    func blit(_ uses: [Use], _ encode: @escaping (any MTLBlitCommandEncoder) -> Void) throws -> UInt64 {
        let work = uses.reduce(0) { $0 + UInt64($1.range.count) }
        return try add(Operation(uses: uses, encode: .blit(encode), work: work, groups: groups))
    }

    func commit() {
        guard hasOpenWork else { return }
        forgetDone()
        let batch = open
        open = Batch(ticket: batch.ticket + 1)
        underWay.append(batch)
        statistics.values.command_buffers += 1
        statistics.values.largest_work = max(statistics.values.largest_work, batch.work)
        if !isSuspended { submit(batch) }
    }

    /// Commits the commands that the writer has encoded for a batch.
    func submit(_ batch: Batch) {
        let ticket = batch.ticket
        lastSubmitted = max(lastSubmitted, ticket)
        guard let commandBuffer = writer.take() else { return tickets.end(ticket, .completed) }
        if let code = faults.take(.commandBuffer) {
            return tickets.end(ticket, Outcome(error: Self.injected(code)))
        }
        commandBuffer.addCompletedHandler { [tickets] in tickets.end(ticket, Outcome($0)) }
        commandBuffer.commit()
    }

    /// Releases the operations of complete batches, and the memory that they reference.
    func forgetDone() {
        let completed = tickets.completed
        underWay.removeFirst(underWay.prefix { $0.ticket <= completed }.count)
    }

    /// Releases all operations, complete or not: from now on nothing runs again.
    func forgetAll() { underWay = [] }

    // MARK: Labels

    func pushGroup(_ label: String) {
        groups.append(label)
        writer.pushGroup(label)
    }

    func popGroup() throws {
        guard groups.popLast() != nil else { throw OrchardError.invalid("No label is pushed.") }
        writer.popGroup()
    }

    // MARK: Parts

    /// An operation with more work than the limit of a batch gets a separate batch.
    private func add(_ operation: Operation) throws -> UInt64 {
        if hasOpenWork, operation.work > batchWork - min(open.work, batchWork) { commit() }
        if !isSuspended { try writer.encode(operation) }
        let ticket = open.ticket
        open.operations.append(operation)
        open.work += operation.work
        for use in operation.uses {
            use.allocation.lastUse = ticket
            if use.writes { use.allocation.lastWrite = ticket }
            open.bytes += use.range.count
        }
        if open.operations.count >= batchOperations || open.bytes >= batchBytes || open.work >= batchWork { commit() }
        return ticket
    }

    private static func injected(_ code: Int32) -> NSError {
        let code = code == 0 ? Int(MTLCommandBufferError.Code.internal.rawValue) : Int(code)
        return NSError(
            domain: MTLCommandBufferErrorDomain, code: code,
            userInfo: [NSLocalizedDescriptionKey: "Injected failure of the command buffer"])
    }
}
