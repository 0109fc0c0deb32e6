import COrchard

@_cdecl("orchard_abi_version")
public func abiVersion() -> Int32 { Int32(ORCHARD_ABI_VERSION) }

@_cdecl("orchard_last_error")
public func abiLastError(
    _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64, _ length: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    let message = LastError.message
    return entry { try give(message, buffer, capacity, length, truncating: true) }
}

@_cdecl("orchard_open")
public func abiOpen(
    _ options: UnsafePointer<orchard_open_options>?, _ blockLength: UInt64, _ context: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry {
        let result = try required(context, "context")
        let parsed =
            try options == nil && blockLength == 0
            ? ContextOptions() : ContextOptions(Block(options, blockLength, "options"))
        let opened = try Context(parsed)
        SoftwareDevice.survive()
        ProcessExit.watch(opened)
        result.pointee = try HandleTable.shared.insert(opened)
    }
}

@_cdecl("orchard_close")
public func abiClose(_ handle: UInt64) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let ended = HandleTable.shared.close(context)
        guard !ended.isEmpty else { throw OrchardError(ORCHARD_CLOSED, "The context was closed.") }
        guard context.close() else {
            throw OrchardError(
                ORCHARD_TIMEOUT,
                "The context is closed, but work still runs on \(context.device.name); its memory is freed when it "
                    + "ends."
            )
        }
    }
}

@_cdecl("orchard_device_info")
public func abiDeviceInfo(
    _ handle: UInt64, _ probe: UInt32, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: UInt64,
    _ length: UnsafeMutablePointer<UInt64>?
) -> Int32 {
    entry(handle) {
        let context = try HandleTable.shared.lookup(handle, as: Context.self)
        let wanted = Int(probe)
        let info = try context.deviceInfo(
            probing: wanted & ORCHARD_PROBE_CAPABILITIES != 0, withLibraries: wanted & ORCHARD_PROBE_LIBRARIES != 0)
        try give(info, buffer, capacity, length)
    }
}

@_cdecl("orchard_retain")
public func abiRetain(_ handle: UInt64) -> Int32 {
    entry(handle) { try HandleTable.shared.retain(handle) }
}

@_cdecl("orchard_release")
public func abiRelease(_ handle: UInt64) -> Int32 {
    entry(handle) {
        let ended = try HandleTable.shared.release(handle)
        if let buffer = ended as? Buffer { buffer.context.discard(buffer) }
    }
}

/// A garbage collector may call this at any time, so it does not count as a call of the context: a stale handle leaves
/// no error message.
@_cdecl("orchard_collected")
public func abiCollected(_ bytes: UnsafeMutableRawPointer?, _ handle: UnsafeMutableRawPointer?) -> Int32 {
    let value = UInt64(UInt(bitPattern: handle))
    guard HandleTable.shared.context(of: value) != nil else { return Int32(ORCHARD_OK.rawValue) }
    return abiRelease(value)
}

extension ContextOptions {
    init(_ block: Block<orchard_open_options>) throws {
        let given = block.header
        guard given.flags & ~UInt32(ORCHARD_OPEN_EXACT) == 0 else {
            throw OrchardError.invalid("options: flags \(given.flags) are unknown.")
        }
        if given.default_storage != ORCHARD_STORAGE_DEFAULT.rawValue {
            guard let storage = Storage(rawValue: given.default_storage) else {
                throw OrchardError.invalid(
                    "options: expected default_storage to be 0, 1 or 2, got \(given.default_storage).")
            }
            self.storage = storage
        }
        exact = given.flags & UInt32(ORCHARD_OPEN_EXACT) != 0
        if given.batch_operations != 0 { batchOperations = Int(given.batch_operations) }
        if given.timeout_ms != 0 { timeout = Double(given.timeout_ms) / 1000 }
        if given.batch_bytes != 0 { batchBytes = Int(clamping: given.batch_bytes) }
        if given.batch_work != 0 { batchWork = given.batch_work }
        if given.cache_limit != 0 { cacheLimit = given.cache_limit }
        if given.memory_limit != 0 { memoryLimit = given.memory_limit }
        cacheFolder = try block.text(given.cache_folder, "cache_folder")
        materializeSource = try block.text(given.materialize_source, "materialize_source")
        label = try block.text(given.label, "label") ?? label
    }
}
