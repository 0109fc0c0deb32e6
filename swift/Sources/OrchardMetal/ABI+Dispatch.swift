import COrchard
import Foundation

@_cdecl("orchard_dispatch_encode")
public func abiDispatch(
    _ dispatch: UnsafePointer<orchard_dispatch>?, _ blockLength: UInt64, _ ticket: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    let block = Result { try Block<orchard_dispatch>(dispatch, blockLength, "dispatch") }
    return entry((try? block.get())?.header.pipeline ?? 0) {
        let request = try DispatchRequest(block.get())
        let encoded = try request.pipeline.context.encode(request)
        ticket?.pointee = encoded
    }
}

@_cdecl("orchard_dispatches_encode")
public func abiDispatches(
    _ list: UnsafeRawPointer?, _ length: UInt64, _ outcome: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry {
        let outcome = try required(outcome, "outcome")
        for at in 0..<3 { outcome[at] = 0 }
        let list = try DispatchList(list, length)
        try list.forEach { block in
            let request = try DispatchRequest(block)
            let ticket = try request.pipeline.context.encode(request)
            if outcome[0] == 0 { outcome[1] = ticket }
            outcome[0] += 1
            outcome[2] = ticket
        }
    }
}

@_cdecl("orchard_commit")
public func abiCommit(_ handle: UInt64, _ ticket: UnsafeMutablePointer<UInt64>?) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let last = try context.locked {
            context.stream.commit()
            return context.stream.lastCommitted
        }
        ticket?.pointee = last
    }
}

@_cdecl("orchard_ticket_poll")
public func abiTicketPoll(_ handle: UInt64, _ ticket: UInt64, _ state: UnsafeMutablePointer<UInt32>?) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let result = try required(state, "state")
        let isCommitted = try context.locked { try context.isCommitted(ticket) }
        let isComplete = context.tickets.isComplete(ticket)
        if isComplete, let failure = context.tickets.failure(of: ticket) { throw failure }
        result.pointee = UInt32(
            isComplete ? ORCHARD_TICKET_COMPLETE : isCommitted ? ORCHARD_TICKET_COMMITTED : ORCHARD_TICKET_OPEN)
    }
}

@_cdecl("orchard_ticket_wait")
public func abiTicketWait(_ handle: UInt64, _ ticket: UInt64, _ timeoutMilliseconds: UInt32) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try context.wait(for: ticket, until: Date(timeIntervalSinceNow: Double(timeoutMilliseconds) / 1000))
    }
}

@_cdecl("orchard_completion_counter")
public func abiCompletionCounter(_ handle: UInt64, _ address: UnsafeMutablePointer<UInt64>?) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        try required(address, "address").pointee = UInt64(UInt(bitPattern: context.tickets.counter))
    }
}

/// Blocks of dispatches one after another, each after its length.
private struct DispatchList {
    private let bytes: UnsafeRawBufferPointer

    init(_ start: UnsafeRawPointer?, _ length: UInt64) throws {
        guard let start, UInt(bitPattern: start) % 8 == 0, length <= Int32.max else {
            throw OrchardError.invalid(
                "dispatches: expected a list that is aligned to 8 bytes, and has less than 2^31 bytes.")
        }
        bytes = UnsafeRawBufferPointer(start: start, count: Int(length))
    }

    func forEach(_ body: (Block<orchard_dispatch>) throws -> Void) throws {
        var at = 0
        while at < bytes.count {
            guard bytes.count - at >= 8 else { throw cut(at) }
            let length = bytes.load(fromByteOffset: at, as: UInt64.self)
            guard length <= UInt64(bytes.count - at - 8) else { throw cut(at) }
            try body(Block(bytes.baseAddress?.advanced(by: at + 8), length, "dispatch"))
            at += 8 + (Int(length) + 7) / 8 * 8
        }
    }

    private func cut(_ at: Int) -> OrchardError {
        .invalid("dispatches: the list of \(bytes.count) bytes ends within the dispatch at byte \(at).")
    }
}

extension DispatchRequest {
    init(_ block: Block<orchard_dispatch>) throws {
        let given = block.header
        pipeline = try HandleTable.shared.lookup(given.pipeline, as: Pipeline.self)
        guard given.flags == 0, given.grid_kind <= ORCHARD_GRID_THREADGROUPS else {
            throw OrchardError.invalid(
                "dispatch: expected grid_kind to be 0 or 1 and flags to be 0, got \(given.grid_kind) and "
                    + "\(given.flags)."
            )
        }
        grid = Extent(given.grid)
        gridIsThreads = given.grid_kind == ORCHARD_GRID_THREADS
        threadgroup = Extent(given.threadgroup)
        let context = pipeline.context
        bindings = try block.array(given.bindings, of: orchard_binding.self, "bindings").map {
            try Binding($0, context)
        }
        inlines = try block.array(given.inline_bytes, of: orchard_inline.self, "inline_bytes").map {
            try Inline(index: Int($0.index), bytes: Array(Self.inlineBytes($0, block)))
        }
        threadgroupMemory = try block.array(
            given.threadgroup_memory, of: orchard_threadgroup_memory.self, "threadgroup_memory"
        ).map {
            ThreadgroupMemory(index: Int($0.index), length: Int($0.length))
        }
        label = try Self.label(given.label, block, pipeline.function)
        work = given.work
    }

    /// Labels are usually the kernel's name, which is then shared.
    private static func label(_ span: orchard_span, _ block: Block<orchard_dispatch>, _ name: String) throws -> String?
    {
        let bytes = try block.data(span, "label")
        let isName = name.utf8.count == bytes.count && zip(name.utf8, bytes).allSatisfy { $0 == $1 }
        return isName ? name : try block.text(span, "label")
    }

    private static func inlineBytes(_ inline: orchard_inline, _ block: Block<orchard_dispatch>) throws
        -> UnsafeRawBufferPointer
    {
        let bytes = try block.data(inline.bytes, "inline bytes")
        guard !bytes.isEmpty else {
            throw OrchardError.invalid("dispatch: inline bytes at buffer(\(inline.index)) are empty.")
        }
        guard bytes.count <= ORCHARD_MAX_INLINE_BYTES else {
            throw OrchardError.limit(
                "dispatch: \(bytes.count) inline bytes at buffer(\(inline.index)); the limit is "
                    + "\(ORCHARD_MAX_INLINE_BYTES): bind a buffer."
            )
        }
        return bytes
    }
}

extension DispatchRequest.Binding {
    init(_ given: orchard_binding, _ context: Context) throws {
        buffer = try HandleTable.shared.lookup(given.buffer, as: Buffer.self)
        try context.own(buffer, "buffer(\(given.index))")
        guard (1...3).contains(given.access) else {
            throw OrchardError.invalid(
                "buffer(\(given.index)): expected access to be 1 (read), 2 (write) or 3 (both), got \(given.access).")
        }
        let remaining = given.offset <= buffer.length ? buffer.length - given.offset : 0
        range = try buffer.range(given.offset, given.length == 0 ? remaining : given.length, "buffer(\(given.index))")
        guard !range.isEmpty else {
            throw OrchardError.invalid(
                "buffer(\(given.index)): offset \(given.offset) is the end of \(buffer.name); nothing is bound.")
        }
        index = Int(given.index)
        access = given.access
    }
}
