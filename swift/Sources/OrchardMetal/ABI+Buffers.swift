import COrchard

@_cdecl("orchard_buffer_create")
public func abiBufferCreate(
    _ handle: UInt64, _ options: UnsafePointer<orchard_buffer_options>?, _ blockLength: UInt64,
    _ buffer: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let result = try required(buffer, "buffer")
        let block = try Block<orchard_buffer_options>(options, blockLength, "options")
        guard block.header.flags & ~UInt32(ORCHARD_BUFFER_ZERO) == 0 else {
            throw OrchardError.invalid("options: flags \(block.header.flags) are unknown.")
        }
        let made = try context.makeBuffer(
            block.header.length, storage: block.header.storage,
            zeroed: block.header.flags & UInt32(ORCHARD_BUFFER_ZERO) != 0,
            label: block.text(block.header.label, "label"))
        result.pointee = try context.handle(of: made)
    }
}

@_cdecl("orchard_tensor_create")
public func abiTensorCreate(
    _ handle: UInt64, _ length: UInt64, _ storage: UInt32, _ label: UnsafePointer<CChar>?, _ labelLength: UInt64,
    _ facts: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let result = try required(facts, "facts")
        let name = try labelLength == 0 ? "tensor" : text(label, labelLength, "label")
        let made = try context.makeBuffer(length, storage: storage, zeroed: false, label: name)
        let buffer = try context.handle(of: made)
        try context.locked {
            result[0] = buffer
            result[1] = UInt64(UInt(bitPattern: made.contents))
            result[2] = made.allocation.lastUse
            result[3] = context.statistics.values.live_bytes
        }
    }
}

@_cdecl("orchard_buffer_info_get")
public func abiBufferInfo(_ handle: UInt64, _ info: UnsafeMutablePointer<orchard_buffer_info>?, _ blockLength: UInt64)
    -> Int32
{
    entry(handle) {
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        try fill(info, blockLength, "info") {
            try buffer.context.locked {
                let allocation = buffer.allocation
                return try orchard_buffer_info(
                    size: 0, version: 0, length: buffer.length, allocated: UInt64(allocation.bytes),
                    contents: UInt64(UInt(bitPattern: buffer.contents)), last_ticket: allocation.lastUse,
                    storage: allocation.storage.rawValue, retain_count: HandleTable.shared.owners(handle))
            }
        }
    }
}

@_cdecl("orchard_buffer_read")
public func abiBufferRead(_ handle: UInt64, _ offset: UInt64, _ destination: UnsafeMutableRawPointer?, _ length: UInt64)
    -> Int32
{
    entry(handle) {
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        let range = try buffer.range(offset, length, "read")
        guard !range.isEmpty else { return }
        guard let destination else { throw OrchardError.invalid("destination: the pointer is null.") }
        try buffer.context.read(buffer, range, to: destination)
    }
}

@_cdecl("orchard_buffer_write")
public func abiBufferWrite(_ handle: UInt64, _ offset: UInt64, _ source: UnsafeRawPointer?, _ length: UInt64) -> Int32 {
    entry(handle) {
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        let range = try buffer.range(offset, length, "write")
        guard !range.isEmpty else { return }
        guard let source else { throw OrchardError.invalid("source: the pointer is null.") }
        try buffer.context.write(buffer, range, from: source)
    }
}

@_cdecl("orchard_buffer_fill")
public func abiBufferFill(
    _ handle: UInt64, _ offset: UInt64, _ length: UInt64, _ byte: UInt32, _ ticket: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        guard let byte = UInt8(exactly: byte) else {
            throw OrchardError.invalid("byte: expected 0 to 255, got \(byte).")
        }
        let encoded = try buffer.context.fill(buffer, buffer.range(offset, length, "fill"), byte: byte)
        ticket?.pointee = encoded
    }
}

@_cdecl("orchard_buffer_copy")
public func abiBufferCopy(
    _ source: UInt64, _ sourceOffset: UInt64, _ destination: UInt64, _ destinationOffset: UInt64, _ length: UInt64,
    _ ticket: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(source) {
        let from = try HandleTable.shared.lookup(source, as: Buffer.self)
        let to = try HandleTable.shared.lookup(destination, as: Buffer.self)
        try from.context.own(to, "destination")
        let encoded = try from.context.copy(
            from, from.range(sourceOffset, length, "source"), to, to.range(destinationOffset, length, "destination"))
        ticket?.pointee = encoded
    }
}

@_cdecl("orchard_buffer_hint")
public func abiBufferHint(_ handle: UInt64, _ storage: UInt32) -> Int32 {
    entry(handle) {
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        try buffer.context.hint(buffer, storage)
    }
}

@_cdecl("orchard_materialize")
public func abiMaterialize(
    _ view: UnsafePointer<orchard_view>?, _ blockLength: UInt64, _ result: UnsafeMutablePointer<orchard_materialized>?,
    _ resultLength: UInt64
) -> Int32 {
    let handle = viewHandle(view, blockLength)
    return entry(handle) {
        let block = try Block<orchard_view>(view, blockLength, "view")
        guard block.header.flags & ~UInt32(ORCHARD_VIEW_CONTIGUOUS) == 0 else {
            throw OrchardError.invalid("view: flags \(block.header.flags) are unknown.")
        }
        try fill(result, resultLength, "result") {
            let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
            let made = try buffer.context.materialize(
                View(block.header, buffer), storage: block.header.storage,
                contiguous: block.header.flags & UInt32(ORCHARD_VIEW_CONTIGUOUS) != 0,
                label: block.text(block.header.label, "label"))
            guard let made else {
                try HandleTable.shared.retain(handle)
                return orchard_materialized(
                    size: 0, version: 0, buffer: handle, offset: block.header.offset, copies: 0, reserved: 0)
            }
            let fresh = try buffer.context.handle(of: made.buffer)
            return orchard_materialized(size: 0, version: 0, buffer: fresh, offset: made.offset, copies: 1, reserved: 0)
        }
    }
}

@_cdecl("orchard_write_back")
public func abiWriteBack(
    _ view: UnsafePointer<orchard_view>?, _ blockLength: UInt64, _ source: UInt64, _ sourceOffset: UInt64,
    _ copies: UnsafeMutablePointer<UInt32>?
) -> Int32 {
    let handle = viewHandle(view, blockLength)
    return entry(handle) {
        let block = try Block<orchard_view>(view, blockLength, "view")
        let buffer = try HandleTable.shared.lookup(handle, as: Buffer.self)
        let from = try HandleTable.shared.lookup(source, as: Buffer.self)
        try buffer.context.own(from, "source")
        let copied = try buffer.context.writeBack(View(block.header, buffer), from: from, at: sourceOffset)
        copies?.pointee = copied ? 1 : 0
    }
}

/// Returns the handle of a view's buffer, for counting errors; 0 if the block can't be read.
private func viewHandle(_ view: UnsafeRawPointer?, _ length: UInt64) -> UInt64 {
    (try? Block<orchard_view>(view, length, "view"))?.header.buffer ?? 0
}

extension Context {
    /// Returns a handle for a new buffer, or releases the buffer if no handle can be made.
    func handle(of buffer: Buffer) throws -> UInt64 {
        do { return try HandleTable.shared.insert(buffer) } catch {
            discard(buffer)
            throw error
        }
    }

    /// Throws unless the operand belongs to this context.
    func own(_ object: HandleObject, _ name: @autoclosure () -> String) throws {
        guard object.context === self else {
            throw OrchardError.invalid("\(name()): the handle belongs to another context.")
        }
    }
}
