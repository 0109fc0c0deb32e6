import COrchard
import Foundation
import XCTest

@testable import OrchardMetal

/// A block as laid out by a caller: the struct, then the data of its spans.
struct BlockWriter<Header: VersionedStruct> {
    var header: Header
    private var tail: [UInt8] = []

    init(_ header: Header = Header()) {
        self.header = header
        self.header.size = UInt32(MemoryLayout<Header>.size)
        self.header.version = UInt32(ORCHARD_ABI_VERSION)
    }

    mutating func span(_ bytes: [UInt8]) -> orchard_span {
        tail += [UInt8](repeating: 0, count: (8 - tail.count % 8) % 8)
        let offset = MemoryLayout<Header>.size + tail.count
        tail += bytes
        return orchard_span(offset: UInt32(offset), length: UInt32(bytes.count))
    }

    mutating func span(_ text: String?) -> orchard_span { text.map { span(Array($0.utf8)) } ?? orchard_span() }

    mutating func span<Element>(array: [Element]) -> orchard_span { span(array.withUnsafeBytes(Array.init)) }

    mutating func span(texts: [(String, String)]) -> orchard_span {
        let entries = texts.map { orchard_named_text(name: span($0.0), text: span($0.1)) }
        return span(array: entries)
    }

    var bytes: [UInt8] { withUnsafeBytes(of: header, Array.init) + tail }

    /// Provides memory aligned to 8 for one call.
    func with<Result>(_ body: (UnsafePointer<Header>, UInt64) throws -> Result) rethrows -> Result {
        let bytes = self.bytes
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 8)
        defer { memory.deallocate() }
        memory.copyMemory(from: bytes, byteCount: bytes.count)
        return try body(UnsafePointer(memory.assumingMemoryBound(to: Header.self)), UInt64(bytes.count))
    }
}

/// A status other than ORCHARD_OK, with its message.
struct Failure: Error, CustomStringConvertible {
    let status: orchard_status
    let message: String
    var description: String { "status \(status.rawValue): \(message)" }
}

func check(_ status: Int32) throws {
    guard status != 0 else { return }
    throw Failure(status: orchard_status(UInt32(bitPattern: status)), message: lastError())
}

func lastError() -> String {
    var length: UInt64 = 0
    var buffer = [CChar](repeating: 0, count: 1 << 16)
    XCTAssertEqual(orchard_last_error(&buffer, UInt64(buffer.count), &length), 0)
    return String(
        decoding: buffer.prefix(Int(min(length, UInt64(buffer.count)))).map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Expects a status, and a message that contains each of `fragments`.
func assertFails(
    _ status: orchard_status, _ fragments: String..., file: StaticString = #filePath, line: UInt = #line,
    _ body: () throws -> Void
) {
    do {
        try body()
        XCTFail("succeeded", file: file, line: line)
    } catch let failure as Failure {
        XCTAssertEqual(failure.status, status, failure.message, file: file, line: line)
        for fragment in fragments where !failure.message.contains(fragment) {
            XCTFail("'\(failure.message)' lacks '\(fragment)'", file: file, line: line)
        }
    } catch {
        XCTFail("\(error)", file: file, line: line)
    }
}

/// Reads text as the interface requires: one call for the length, one for the text.
func text(_ call: (UnsafeMutablePointer<CChar>?, UInt64, UnsafeMutablePointer<UInt64>) -> Int32) throws -> String {
    var length: UInt64 = 0
    let first = call(nil, 0, &length)
    if first != Int32(bitPattern: ORCHARD_LIMIT_EXCEEDED.rawValue) { try check(first) }
    var buffer = [CChar](repeating: 0, count: Int(length))
    try check(call(&buffer, length, &length))
    return String(decoding: buffer.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

func json(_ text: String) throws -> Any {
    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
}

/// The interface as a caller in Swift would wrap it: each method is one call of a C function.
final class Client {
    let context: UInt64
    private var isOpen = true

    init(
        storage: orchard_storage = ORCHARD_STORAGE_DEFAULT, exact: Bool = false, batchOperations: UInt32 = 0,
        batchBytes: UInt64 = 0,
        cacheLimit: UInt64 = 0, memoryLimit: UInt64 = 0, cacheFolder: String? = nil, materialize: Bool = true,
        timeout: UInt32 = 0
    ) throws {
        var block = BlockWriter<orchard_open_options>()
        block.header.default_storage = storage.rawValue
        block.header.flags = exact ? UInt32(ORCHARD_OPEN_EXACT) : 0
        block.header.batch_operations = batchOperations
        block.header.batch_bytes = batchBytes
        block.header.cache_limit = cacheLimit
        block.header.memory_limit = memoryLimit
        block.header.timeout_ms = timeout
        block.header.cache_folder = block.span(cacheFolder)
        block.header.materialize_source = block.span(materialize ? try Self.materializeSource() : nil)
        var handle: UInt64 = 0
        try check(block.with { orchard_open($0, $1, &handle) })
        context = handle
    }

    deinit { try? close() }

    func close() throws {
        guard isOpen else { return }
        isOpen = false
        try check(orchard_close(context))
    }

    static func materializeSource() throws -> String {
        // The tests run in the package's folder.
        return try String(contentsOfFile: "../kernels/runtime/materialize.metal", encoding: .utf8)
    }

    // MARK: Buffers

    func buffer(
        _ length: UInt64, _ storage: orchard_storage = ORCHARD_STORAGE_DEFAULT, zeroed: Bool = false,
        label: String? = nil
    ) throws -> UInt64 {
        var block = BlockWriter<orchard_buffer_options>()
        block.header.length = length
        block.header.storage = storage.rawValue
        block.header.flags = zeroed ? UInt32(ORCHARD_BUFFER_ZERO) : 0
        block.header.label = block.span(label)
        var handle: UInt64 = 0
        try check(block.with { orchard_buffer_create(context, $0, $1, &handle) })
        return handle
    }

    func buffer<Element>(
        _ values: [Element], _ storage: orchard_storage = ORCHARD_STORAGE_DEFAULT, label: String? = nil
    ) throws -> UInt64 {
        let handle = try buffer(UInt64(MemoryLayout<Element>.stride * values.count), storage, label: label)
        try write(handle, values)
        return handle
    }

    func write<Element>(_ buffer: UInt64, _ values: [Element], at offset: UInt64 = 0) throws {
        try check(values.withUnsafeBytes { orchard_buffer_write(buffer, offset, $0.baseAddress, UInt64($0.count)) })
    }

    func read<Element>(_ buffer: UInt64, _ count: Int, of type: Element.Type, at offset: UInt64 = 0) throws -> [Element]
    {
        let bytes = count * MemoryLayout<Element>.stride
        let memory = UnsafeMutableRawPointer.allocate(byteCount: max(bytes, 1), alignment: 16)
        defer { memory.deallocate() }
        try check(orchard_buffer_read(buffer, offset, memory, UInt64(bytes)))
        return Array(UnsafeBufferPointer(start: memory.bindMemory(to: type, capacity: count), count: count))
    }

    func info(_ buffer: UInt64) throws -> orchard_buffer_info {
        var info = BlockWriter<orchard_buffer_info>().header
        try check(orchard_buffer_info_get(buffer, &info, UInt64(MemoryLayout<orchard_buffer_info>.size)))
        return info
    }

    func release(_ handles: UInt64...) throws { for handle in handles { try check(orchard_release(handle)) } }

    // MARK: Libraries, pipelines, dispatches

    func library(
        _ source: String, name: String? = nil, headers: [(String, String)] = [], macros: [(String, String)] = [],
        fastFunctions: Bool = false
    ) throws -> UInt64 {
        var block = BlockWriter<orchard_library_options>()
        if fastFunctions { block.header.math_functions = UInt32(ORCHARD_FUNCTIONS_FAST) }
        block.header.name = block.span(name)
        block.header.source = block.span(source)
        block.header.headers = block.span(texts: headers)
        block.header.macros = block.span(texts: macros)
        var handle: UInt64 = 0
        try check(block.with { orchard_library_create(context, $0, $1, &handle) })
        return handle
    }

    func pipeline(
        _ library: UInt64, _ function: String, constants: [(orchard_constant, String?)] = [], maxThreads: UInt32 = 0
    ) throws -> UInt64 {
        var block = BlockWriter<orchard_pipeline_options>()
        block.header.function = block.span(function)
        block.header.max_threads = maxThreads
        let named = constants.map { constant, name in
            var constant = constant
            constant.name = block.span(name)
            return constant
        }
        block.header.constants = block.span(array: named)
        var handle: UInt64 = 0
        try check(block.with { orchard_pipeline_create(library, $0, $1, &handle) })
        return handle
    }

    @discardableResult
    func dispatch(
        _ pipeline: UInt64, grid: (UInt32, UInt32, UInt32), threadgroup: (UInt32, UInt32, UInt32) = (32, 1, 1),
        groups: Bool = false,
        _ bindings: [orchard_binding], inline: [(UInt32, [UInt8])] = [], memory: [orchard_threadgroup_memory] = [],
        label: String? = nil, work: UInt64 = 0
    ) throws -> UInt64 {
        var block = BlockWriter<orchard_dispatch>()
        block.header.pipeline = pipeline
        block.header.grid = grid
        block.header.grid_kind = UInt32(groups ? ORCHARD_GRID_THREADGROUPS : ORCHARD_GRID_THREADS)
        block.header.threadgroup = threadgroup
        block.header.bindings = block.span(array: bindings)
        let inlines = inline.map { orchard_inline(index: $0.0, reserved: 0, bytes: block.span($0.1)) }
        block.header.inline_bytes = block.span(array: inlines)
        block.header.threadgroup_memory = block.span(array: memory)
        block.header.label = block.span(label)
        block.header.work = work
        var ticket: UInt64 = 0
        try check(block.with { orchard_dispatch_encode($0, $1, &ticket) })
        return ticket
    }

    // MARK: Tickets and statistics

    func commit() throws -> UInt64 {
        var ticket: UInt64 = 0
        try check(orchard_commit(context, &ticket))
        return ticket
    }

    func wait(_ ticket: UInt64, timeout: UInt32 = 60000) throws {
        try check(orchard_ticket_wait(context, ticket, timeout))
    }

    func finish() throws { try wait(commit()) }

    func poll(_ ticket: UInt64) throws -> UInt32 {
        var state: UInt32 = 0
        try check(orchard_ticket_poll(context, ticket, &state))
        return state
    }

    var statistics: orchard_statistics {
        get throws {
            var values = BlockWriter<orchard_statistics>().header
            try check(orchard_statistics_get(context, &values, UInt64(MemoryLayout<orchard_statistics>.size)))
            return values
        }
    }

    func configure(_ name: String, _ value: String) throws {
        try check(orchard_configure(context, name, UInt64(name.utf8.count), value, UInt64(value.utf8.count)))
    }

    func inject(_ kind: String, skip: UInt32 = 0, count: UInt32 = 1, code: Int32 = 0) throws {
        try check(orchard_inject_fault(context, kind, UInt64(kind.utf8.count), skip, count, code))
    }

    func report(clear: Bool = false) throws -> [String: Any] {
        try XCTUnwrap(json(text { orchard_report(context, clear ? 1 : 0, $0, $1, $2) }) as? [String: Any])
    }
}

func binding(_ index: UInt32, _ buffer: UInt64, _ access: Int, offset: UInt64 = 0, length: UInt64 = 0)
    -> orchard_binding
{
    orchard_binding(buffer: buffer, offset: offset, length: length, index: index, access: UInt32(access))
}

let read = Int(ORCHARD_ACCESS_READ)
let write = Int(ORCHARD_ACCESS_WRITE)
let readWrite = Int(ORCHARD_ACCESS_READ_WRITE)
