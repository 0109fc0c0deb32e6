import COrchard
import XCTest

@testable import OrchardMetal

final class PoolTests: XCTestCase {
    func testSizeClasses() {
        let cases = [
            (1, 256), (256, 256), (257, 512), (512, 512), (1000, 1024), (16384, 16384), (16385, 32768), (32768, 32768),
            (32769, 49152), (1 << 20, 1 << 20), ((1 << 20) + 1, (1 << 20) + (1 << 17)), (Int.max, Int.max),
        ]
        for (length, expected) in cases { XCTAssertEqual(SizeClass.bytes(for: length), expected, "\(length)") }
        for _ in 0..<10_000 {
            let length = Int.random(in: 16385...1 << 34)
            let bytes = SizeClass.bytes(for: length)
            XCTAssertGreaterThanOrEqual(bytes, length)
            XCTAssertEqual(bytes % SizeClass.page, 0)
            XCTAssertLessThanOrEqual(bytes - length, max(length / 8 + 1, SizeClass.page))
            XCTAssertEqual(SizeClass.bytes(for: bytes), bytes, "a class is its own class")
        }
    }

    func testAReleasedBufferIsReused() throws {
        let client = try Client()
        let first = try client.buffer(1000)
        let address = try client.info(first).contents
        try client.release(first)
        XCTAssertEqual(try client.statistics.cached_bytes, 1024)
        let second = try client.buffer(600)
        XCTAssertEqual(try client.info(second).contents, address)
        XCTAssertEqual(try client.info(second).length, 600)
        let statistics = try client.statistics
        XCTAssertEqual(
            [statistics.pool_hits, statistics.allocations, statistics.cached_bytes, statistics.live_bytes],
            [1, 1, 0, 1024])
        let other = try client.buffer(600, ORCHARD_STORAGE_PRIVATE)
        XCTAssertEqual(try client.statistics.allocations, 2, "storage modes don't mix")
        try client.release(second, other)
    }

    func testReuseWaitsForTheCommandBuffer() throws {
        let client = try Client()
        let buffer = try client.buffer(1024)
        try check(orchard_buffer_fill(buffer, 0, 1024, 7, nil))
        try client.release(buffer)
        XCTAssertEqual(try client.statistics.live_bytes, 1024, "the open command buffer still uses it")
        let other = try client.buffer(1024)
        XCTAssertEqual(try client.statistics.pool_hits, 0)
        try client.finish()
        let statistics = try client.statistics
        XCTAssertEqual([statistics.live_bytes, statistics.cached_bytes], [1024, 1024])
        let third = try client.buffer(1024)
        XCTAssertEqual(try client.statistics.pool_hits, 1)
        try client.release(other, third)
    }

    func testTheCacheKeepsToItsLimitAndForgetsTheOldest() throws {
        let client = try Client(cacheLimit: 3 * 16384)
        let buffers = try (0..<5).map { _ in try client.buffer(16384) }
        let addresses = try buffers.map { try client.info($0).contents }
        for buffer in buffers { try client.release(buffer) }
        XCTAssertEqual(try client.statistics.cached_buffers, 3)
        let again = try (0..<3).map { _ in try client.info(client.buffer(16384)).contents }
        XCTAssertEqual(Set(again), Set(addresses[2...]))
        try client.configure("cache_limit", "0")
        XCTAssertEqual(try client.statistics.cached_bytes, 0)
    }

    func testTrim() throws {
        let client = try Client()
        for buffer in try (0..<4).map({ _ in try client.buffer(16384) }) { try client.release(buffer) }
        try check(orchard_trim(client.context, 16384))
        XCTAssertEqual(try client.statistics.cached_bytes, 16384)
        try check(orchard_trim(client.context, 0))
        XCTAssertEqual(try client.statistics.cached_bytes, 0)
    }

    func testTheMemoryLimitReclaimsTheCacheThenRefuses() throws {
        let client = try Client(memoryLimit: 4 * 16384)
        let small = try (0..<4).map { _ in try client.buffer(16384) }
        for buffer in small { try client.release(buffer) }
        let large = try client.buffer(3 * 16384)
        XCTAssertEqual(try client.statistics.cached_bytes, 16384)
        assertFails(ORCHARD_OUT_OF_MEMORY, "32768 bytes", "49152 are live", "16384 cached", "the limit is 65536") {
            _ = try client.buffer(2 * 16384)
        }
        XCTAssertEqual(try client.statistics.live_bytes, 3 * 16384)
        try client.release(large)
        _ = try client.buffer(4 * 16384)
    }

    func testMemoryInFlightIsNamedAndComesBack() throws {
        let client = try Client(memoryLimit: 2 * 16384)
        let first = try client.buffer(2 * 16384)
        try check(orchard_buffer_fill(first, 0, 16384, 0, nil))
        try client.release(first)
        assertFails(ORCHARD_OUT_OF_MEMORY, "32768 are released but still used") { _ = try client.buffer(2 * 16384) }
        try client.finish()
        _ = try client.buffer(2 * 16384)
    }

    func testExactAllocationsAreNeverReused() throws {
        let client = try Client(exact: true)
        let buffer = try client.buffer(1001)
        XCTAssertEqual(try client.info(buffer).allocated, 1001)
        try client.release(buffer)
        XCTAssertEqual(try client.statistics.cached_buffers, 0)
    }

    func testImpossibleLengths() throws {
        let client = try Client()
        assertFails(ORCHARD_INVALID_ARGUMENT, "at least 1 byte, got 0") { _ = try client.buffer(0) }
        assertFails(ORCHARD_OUT_OF_MEMORY, "got \(UInt64.max)") { _ = try client.buffer(.max) }
        assertFails(ORCHARD_INVALID_ARGUMENT, "storage", "got 9") { _ = try client.buffer(4, orchard_storage(9)) }
    }
}
