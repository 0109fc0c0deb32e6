import COrchard
import XCTest

@testable import OrchardMetal

/// The offsets at which a caller in another language writes: a change here breaks every caller, and requires a new
/// version.
final class LayoutTests: XCTestCase {
    private struct Row {
        let name: String
        let size: Int
        let stride: Int
        let expected: Int
        let fields: [(name: String, offset: Int?, expected: Int)]
    }

    private func row<Struct>(_ type: Struct.Type, _ size: Int, _ fields: [(String, PartialKeyPath<Struct>, Int)]) -> Row
    {
        Row(
            name: "\(type)", size: MemoryLayout<Struct>.size, stride: MemoryLayout<Struct>.stride, expected: size,
            fields: fields.map { ($0.0, MemoryLayout<Struct>.offset(of: $0.1), $0.2) })
    }

    func testOffsets() {
        let rows = [
            row(orchard_span.self, 8, [("offset", \.offset, 0), ("length", \.length, 4)]),
            row(
                orchard_open_options.self, 80,
                [
                    ("size", \.size, 0), ("version", \.version, 4), ("default_storage", \.default_storage, 8),
                    ("flags", \.flags, 12),
                    ("batch_operations", \.batch_operations, 16), ("timeout_ms", \.timeout_ms, 20),
                    ("batch_bytes", \.batch_bytes, 24),
                    ("cache_limit", \.cache_limit, 32), ("memory_limit", \.memory_limit, 40),
                    ("cache_folder", \.cache_folder, 48),
                    ("materialize_source", \.materialize_source, 56), ("label", \.label, 64),
                    ("batch_work", \.batch_work, 72),
                ]),
            row(
                orchard_buffer_options.self, 32,
                [
                    ("size", \.size, 0), ("version", \.version, 4), ("length", \.length, 8), ("storage", \.storage, 16),
                    ("flags", \.flags, 20), ("label", \.label, 24),
                ]),
            row(
                orchard_buffer_info.self, 48,
                [
                    ("length", \.length, 8), ("allocated", \.allocated, 16), ("contents", \.contents, 24),
                    ("last_ticket", \.last_ticket, 32),
                    ("storage", \.storage, 40), ("retain_count", \.retain_count, 44),
                ]),
            row(
                orchard_view.self, 176,
                [
                    ("buffer", \.buffer, 8), ("offset", \.offset, 16), ("element_size", \.element_size, 24),
                    ("rank", \.rank, 28),
                    ("storage", \.storage, 32), ("flags", \.flags, 36), ("shape", \.shape, 40),
                    ("strides", \.strides, 104), ("label", \.label, 168),
                ]),
            row(
                orchard_materialized.self, 32,
                [
                    ("buffer", \.buffer, 8), ("offset", \.offset, 16), ("copies", \.copies, 24),
                    ("reserved", \.reserved, 28),
                ]),
            row(orchard_named_text.self, 16, [("name", \.name, 0), ("text", \.text, 8)]),
            row(
                orchard_library_options.self, 64,
                [
                    ("language_version", \.language_version, 8), ("math_mode", \.math_mode, 12),
                    ("math_functions", \.math_functions, 16),
                    ("flags", \.flags, 20), ("name", \.name, 24), ("source", \.source, 32), ("headers", \.headers, 40),
                    ("macros", \.macros, 48),
                    ("label", \.label, 56),
                ]),
            row(
                orchard_constant.self, 48,
                [("name", \.name, 0), ("index", \.index, 8), ("type", \.type, 12), ("value", \.value, 16)]),
            row(
                orchard_pipeline_options.self, 40,
                [
                    ("function", \.function, 8), ("constants", \.constants, 16), ("max_threads", \.max_threads, 24),
                    ("flags", \.flags, 28), ("label", \.label, 32),
                ]),
            row(
                orchard_binding.self, 32,
                [
                    ("buffer", \.buffer, 0), ("offset", \.offset, 8), ("length", \.length, 16), ("index", \.index, 24),
                    ("access", \.access, 28),
                ]),
            row(orchard_inline.self, 16, [("index", \.index, 0), ("reserved", \.reserved, 4), ("bytes", \.bytes, 8)]),
            row(orchard_threadgroup_memory.self, 8, [("index", \.index, 0), ("length", \.length, 4)]),
            row(
                orchard_dispatch.self, 88,
                [
                    ("pipeline", \.pipeline, 8), ("grid", \.grid, 16), ("grid_kind", \.grid_kind, 28),
                    ("threadgroup", \.threadgroup, 32),
                    ("flags", \.flags, 44), ("bindings", \.bindings, 48), ("inline_bytes", \.inline_bytes, 56),
                    ("threadgroup_memory", \.threadgroup_memory, 64), ("label", \.label, 72), ("work", \.work, 80),
                ]),
            row(
                orchard_statistics.self, 264,
                [
                    ("live_bytes", \.live_bytes, 8), ("peak_bytes", \.peak_bytes, 40),
                    ("allocations", \.allocations, 64),
                    ("dispatches", \.dispatches, 80), ("barriers", \.barriers, 104),
                    ("copies_storage", \.copies_storage, 112),
                    ("copied_bytes", \.copied_bytes, 152), ("archive_hits", \.archive_hits, 192),
                    ("failed_tickets", \.failed_tickets, 224), ("archive_writes", \.archive_writes, 256),
                ]),
        ]
        for row in rows {
            XCTAssertEqual(row.size, row.expected, row.name)
            XCTAssertEqual(row.stride, row.expected, "\(row.name) has padding at its end")
            for field in row.fields { XCTAssertEqual(field.offset, field.expected, "\(row.name).\(field.name)") }
        }
        XCTAssertEqual(MemoryLayout<StridedCopy>.size, 224, "as kernels/runtime/materialize.metal lays it out")
    }

    func testBlocksAreCheckedBeforeTheyAreFollowed() throws {
        let client = try Client()
        func create(_ edit: (inout BlockWriter<orchard_buffer_options>) -> Void, length: UInt64? = nil) throws {
            var block = BlockWriter<orchard_buffer_options>()
            block.header.length = 64
            edit(&block)
            var handle: UInt64 = 0
            try check(block.with { orchard_buffer_create(client.context, $0, length ?? $1, &handle) })
        }
        try create { _ in }
        assertFails(ORCHARD_INVALID_ARGUMENT, "version 9") { try create { $0.header.version = 9 } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "size 33") { try create { $0.header.size = 33 } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "size 7") { try create { $0.header.size = 7 } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "got 4") { try create({ _ in }, length: 4) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "flags") { try create { $0.header.flags = 2 } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "label ends at byte 4294967304") {
            try create { $0.header.label = orchard_span(offset: 9, length: .max) }
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "UTF-8") { try create { $0.header.label = $0.span([0xff, 0xfe]) } }
        assertFails(ORCHARD_INVALID_ARGUMENT, "null") {
            var handle: UInt64 = 0
            try check(orchard_buffer_create(client.context, nil, 32, &handle))
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "null") {
            let block = BlockWriter<orchard_buffer_options>()
            try check(block.with { orchard_buffer_create(client.context, $0, $1, nil) })
        }
        // A caller from before `storage` was added: the missing fields have their defaults.
        try create { $0.header.size = 16 }
    }

    func testTextIsNeverCutInSilence() throws {
        let client = try Client()
        var length: UInt64 = 0
        var buffer = [CChar](repeating: 0x7f, count: 8)
        assertFails(ORCHARD_LIMIT_EXCEEDED) { try check(orchard_device_info(client.context, 0, &buffer, 8, &length)) }
        XCTAssertGreaterThan(length, 8)
        XCTAssertEqual(buffer, [CChar](repeating: 0x7f, count: 8))
        let info = try XCTUnwrap(json(text { orchard_device_info(client.context, 0, $0, $1, $2) }) as? [String: Any])
        XCTAssertEqual(info["isSoftware"] as? Bool, SoftwareDevice.isPresent)
        XCTAssertEqual(info["maxInlineBytes"] as? Int, 4096)
    }

    func testErrorsStayWithTheirThread() throws {
        XCTAssertNotEqual(orchard_release(1), 0)
        let mine = lastError()
        XCTAssertTrue(mine.contains("0x1"))
        let other = expectation(description: "other thread")
        Thread.detachNewThread {
            XCTAssertEqual(lastError(), "")
            other.fulfill()
        }
        wait(for: [other], timeout: 10)
        XCTAssertEqual(lastError(), mine)
    }
}
