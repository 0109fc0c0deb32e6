import COrchard
import XCTest

@testable import OrchardMetal

final class StressTests: XCTestCase {
    /// The process's resident memory in kilobytes.
    private func residentKilobytes() throws -> Int {
        #if os(Linux)
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try XCTUnwrap(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try XCTUnwrap(line.split(separator: " ").compactMap { Int($0) }.first)
        #else
        var usage = rusage()
        getrusage(RUSAGE_SELF, &usage)
        return usage.ru_maxrss / 1024
        #endif
    }

    func testTenThousandDispatchesLeaveMemoryFlat() throws {
        let client = try Client()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer([UInt32](repeating: 0, count: 32))
        func run(_ count: Int) throws {
            for index in 0..<count {
                let scratch = try client.buffer(128)
                try client.dispatch(
                    bump, grid: (32, 1, 1), [binding(0, index % 4 == 0 ? buffer : scratch, readWrite)], label: "bump")
                try client.release(scratch)
            }
            try client.finish()
        }
        try run(1000)
        let before = try residentKilobytes(), live = try client.statistics.live_bytes
        try run(10_000)
        XCTAssertLessThan(try residentKilobytes() - before, 8192, "10,000 leaks of 1 KB would be 10 MB")
        let statistics = try client.statistics
        XCTAssertEqual(statistics.live_bytes, live)
        XCTAssertEqual(statistics.dispatches, 11_000)
        XCTAssertEqual(try client.read(buffer, 1, of: UInt32.self), [2750])
    }

    func testThreadsHammer() throws {
        let client = try Client(batchOperations: 7)
        let library = try client.library(Kernels.add)
        let shared = try client.buffer([UInt32](repeating: 0, count: 32))
        let threads = 4, rounds = 200
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            do {
                let bump = try client.pipeline(library, "bump")
                for round in 0..<rounds {
                    let own = try client.buffer(
                        [UInt32](repeating: UInt32(round), count: 32),
                        round % 2 == 0 ? ORCHARD_STORAGE_SHARED : ORCHARD_STORAGE_PRIVATE)
                    let ticket = try client.dispatch(bump, grid: (32, 1, 1), [binding(0, own, readWrite)])
                    try client.dispatch(bump, grid: (32, 1, 1), [binding(0, shared, readWrite)])
                    if round % 10 == thread { try client.wait(ticket) }
                    XCTAssertEqual(try client.read(own, 1, of: UInt32.self, at: 124), [UInt32(round) + 1])
                    try client.release(own)
                    XCTAssertNotEqual(orchard_release(own), 0)
                }
                try client.release(bump)
            } catch {
                XCTFail("\(error)")
            }
        }
        XCTAssertEqual(
            try client.read(shared, 32, of: UInt32.self), [UInt32](repeating: UInt32(threads * rounds), count: 32))
        XCTAssertEqual(try client.statistics.live_buffers, 1)
    }

    func testClosingWhileAnotherThreadWorks() throws {
        for _ in 0..<10 {
            let client = try Client()
            let bump = try client.pipeline(client.library(Kernels.add), "bump")
            let ended = expectation(description: "the worker ends")
            Thread.detachNewThread {
                while true {
                    do {
                        let buffer = try client.buffer(128, zeroed: true)
                        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
                        try client.release(buffer)
                    } catch {
                        XCTAssertEqual((error as? Failure)?.status, ORCHARD_CLOSED, "\(error)")
                        break
                    }
                }
                ended.fulfill()
            }
            usleep(2000)
            try client.close()
            wait(for: [ended], timeout: 30)
        }
    }

    /// The time of encoding a dispatch: all checks, the barrier and the encoder, while nothing runs. Prints the time,
    /// and asserts only that nothing was committed, since tests do not assert speed.
    func testEncodingAlone() throws {
        let client = try Client(batchOperations: 1000, batchBytes: 1 << 40)
        let add = try client.pipeline(client.library(Kernels.add), "add")
        let a = try client.buffer(128, zeroed: true), b = try client.buffer(128, zeroed: true),
            sum = try client.buffer(128)
        var block = BlockWriter<orchard_dispatch>()
        block.header.pipeline = add
        block.header.grid = (32, 1, 1)
        block.header.threadgroup = (32, 1, 1)
        block.header.bindings = block.span(array: [binding(0, a, read), binding(1, b, read), binding(2, sum, write)])
        let scale = block.span(Float(1).bytes)
        block.header.inline_bytes = block.span(array: [orchard_inline(index: 3, reserved: 0, bytes: scale)])
        let rounds = 50, batch = 40
        var nanoseconds: UInt64 = 0
        for _ in 0..<rounds {
            let committed = try client.statistics.command_buffers
            let begin = DispatchTime.now().uptimeNanoseconds
            try block.with { pointer, length in
                for _ in 0..<batch { try check(orchard_dispatch_encode(pointer, length, nil)) }
            }
            nanoseconds += DispatchTime.now().uptimeNanoseconds - begin
            XCTAssertEqual(
                try client.statistics.command_buffers, committed, "nothing was committed while the clock ran")
            try client.finish()
        }
        let microseconds = Double(nanoseconds) / Double(rounds * batch) / 1000
        print("dispatch cost in the encoder alone: \((microseconds * 100).rounded() / 100) us")
    }
}
