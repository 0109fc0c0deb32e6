import COrchard
import XCTest

@testable import OrchardMetal

/// Command buffers are committed according to the work of their kernels.
final class WorkTests: XCTestCase {
    private func dispatch(_ client: Client, _ pipeline: UInt64, _ works: [UInt64]) throws {
        let buffer = try client.buffer([UInt32](repeating: 0, count: 32))
        for work in works {
            try client.dispatch(pipeline, grid: (32, 1, 1), [binding(0, buffer, readWrite)], work: work)
        }
        XCTAssertEqual(
            try client.read(buffer, 32, of: UInt32.self), [UInt32](repeating: UInt32(works.count), count: 32))
    }

    /// The given work counts eightfold: each dispatch has one threadgroup, which occupies a single core.
    func testCommandBuffersHaveAtMostTheLimit() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        try client.configure("batch_work", "8000")
        try dispatch(client, bump, [400, 400, 300, 600, 100, 1000, 1])
        XCTAssertEqual(try client.statistics.command_buffers, 4, "400 400 | 300 600 100 | 1000 | 1")
        XCTAssertEqual(try client.statistics.largest_work, 8000)
    }

    func testMoreThanTheLimitIsAlone() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        try client.configure("batch_work", "8000")
        try dispatch(client, bump, [1, 1, 5000, 1, .max, 1])
        XCTAssertEqual(try client.statistics.command_buffers, 5, "1 1 | 5000 | 1 | max | 1")
        XCTAssertEqual(try client.statistics.largest_work, .max)
        assertFails(ORCHARD_INVALID_ARGUMENT, "batch_work", "at least 1") { try client.configure("batch_work", "0") }
    }

    /// Without an estimate by the caller: 40 products of this size, with one thread per element, would take a minute.
    func testWorkIsEstimatedFromThreadsAndBytes() {
        let side: UInt64 = 4096, groups = side * side / 256
        let product = Work.estimate(given: 0, threads: side * side, groups: groups, bytes: 12 * side * side)
        XCTAssertEqual(product, side * side * side)
        XCTAssertGreaterThan(2 * product, ContextOptions().batchWork)
        let rows = Work.estimate(given: 0, threads: 1024, groups: 32, bytes: 1 << 30)
        XCTAssertEqual(rows, 1 << 30, "each thread reads its share")
        XCTAssertEqual(Work.estimate(given: 100, threads: 1 << 20, groups: 4096, bytes: 1 << 30), 100)
        XCTAssertEqual(
            Work.estimate(given: 100, threads: 1 << 20, groups: 2, bytes: 1 << 30), 400, "two cores of eight")
        XCTAssertEqual(Work.estimate(given: 0, threads: .max, groups: .max, bytes: 0), .max)
    }

    func testWhatTheDispatchSaysOfItsGridCounts() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer([UInt32](repeating: 0, count: 4096))
        try client.dispatch(bump, grid: (4096, 1, 1), [binding(0, buffer, readWrite)])
        try client.finish()
        XCTAssertEqual(try client.statistics.largest_work, 4096 * 64)
        try client.dispatch(bump, grid: (128, 1, 1), groups: true, [binding(0, buffer, readWrite)])
        try client.finish()
        XCTAssertEqual(try client.statistics.largest_work, 4096 * 64)
    }
}
