import COrchard
import XCTest

@testable import OrchardMetal

final class BufferTests: XCTestCase {
    private let bytes = (0..<64).map { UInt8($0) }

    func testSharedBuffersAreReadAndWrittenInPlace() throws {
        let client = try Client()
        let buffer = try client.buffer(bytes)
        let contents = try XCTUnwrap(UnsafePointer<UInt8>(bitPattern: UInt(client.info(buffer).contents)))
        XCTAssertEqual(Array(UnsafeBufferPointer(start: contents, count: 64)), bytes)
        XCTAssertEqual(try client.read(buffer, 3, of: UInt8.self, at: 5), [5, 6, 7])
        XCTAssertEqual(try client.statistics.copied_bytes, 0)
    }

    func testPrivateBuffersGoThroughStaging() throws {
        let client = try Client()
        let buffer = try client.buffer(bytes, ORCHARD_STORAGE_PRIVATE)
        XCTAssertEqual(try client.info(buffer).contents, 0)
        XCTAssertEqual(try client.read(buffer, 8, of: UInt8.self, at: 8), Array(bytes[8..<16]))
        XCTAssertEqual(try client.statistics.copies_staging, 2)
        try client.release(buffer)
        XCTAssertEqual(try client.statistics.live_bytes, 0, "staging buffers are given back")
    }

    func testFillsAndCopiesRunInOrder() throws {
        let client = try Client()
        let source = try client.buffer(64, zeroed: true),
            destination = try client.buffer(64, ORCHARD_STORAGE_PRIVATE, zeroed: true)
        try check(orchard_buffer_fill(source, 8, 16, 0xab, nil))
        try check(orchard_buffer_copy(source, 4, destination, 0, 16, nil))
        try check(orchard_buffer_fill(source, 0, 64, 1, nil))
        XCTAssertEqual(
            try client.read(destination, 16, of: UInt8.self), [0, 0, 0, 0] + [UInt8](repeating: 0xab, count: 12))
        XCTAssertEqual(try client.read(source, 64, of: UInt8.self), [UInt8](repeating: 1, count: 64))
        XCTAssertEqual(try client.statistics.copies_requested, 1)
        XCTAssertEqual(
            try client.statistics.encoders, 2,
            "two fills and a copy share an encoder; the read of a private buffer commits")
    }

    func testRangesAreChecked() throws {
        let client = try Client()
        let buffer = try client.buffer(64, label: "weights")
        assertFails(ORCHARD_INVALID_ARGUMENT, "buffer 'weights'", "64") { try client.write(buffer, bytes, at: 1) }
        assertFails(ORCHARD_INVALID_ARGUMENT) { _ = try client.read(buffer, 1, of: UInt8.self, at: .max) }
        assertFails(ORCHARD_INVALID_ARGUMENT) { try check(orchard_buffer_fill(buffer, 60, 8, 0, nil)) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "256") { try check(orchard_buffer_fill(buffer, 0, 8, 256, nil)) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "overlap") {
            try check(orchard_buffer_copy(buffer, 0, buffer, 4, 8, nil))
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "null") { try check(orchard_buffer_read(buffer, 0, nil, 1)) }
        try check(orchard_buffer_read(buffer, 64, nil, 0))
        let other = try Client()
        assertFails(ORCHARD_INVALID_ARGUMENT, "another context") {
            try check(orchard_buffer_copy(buffer, 0, other.buffer(64), 0, 8, nil))
        }
    }

    func testAHintMovesTheContents() throws {
        let client = try Client()
        let buffer = try client.buffer(bytes)
        try check(orchard_buffer_hint(buffer, ORCHARD_STORAGE_SHARED.rawValue))
        XCTAssertEqual(try client.statistics.copies_storage, 0)
        try check(orchard_buffer_hint(buffer, ORCHARD_STORAGE_PRIVATE.rawValue))
        XCTAssertEqual(try client.info(buffer).storage, ORCHARD_STORAGE_PRIVATE.rawValue)
        XCTAssertEqual(try client.info(buffer).contents, 0)
        XCTAssertEqual(try client.read(buffer, 64, of: UInt8.self), bytes)
        try check(orchard_buffer_hint(buffer, ORCHARD_STORAGE_SHARED.rawValue))
        XCTAssertEqual(try client.read(buffer, 64, of: UInt8.self), bytes)
        XCTAssertEqual(try client.statistics.copies_storage, 2)
    }

    func testTheDefaultStorageIsASetting() throws {
        let client = try Client(storage: ORCHARD_STORAGE_PRIVATE)
        XCTAssertEqual(try client.info(client.buffer(4)).storage, ORCHARD_STORAGE_PRIVATE.rawValue)
        try client.configure("storage", "shared")
        XCTAssertEqual(try client.info(client.buffer(4)).storage, ORCHARD_STORAGE_SHARED.rawValue)
        assertFails(ORCHARD_INVALID_ARGUMENT, "shared or private") { try client.configure("storage", "managed") }
        assertFails(ORCHARD_INVALID_ARGUMENT, "batch_operations", "'0'") {
            try client.configure("batch_operations", "0")
        }
    }
}
