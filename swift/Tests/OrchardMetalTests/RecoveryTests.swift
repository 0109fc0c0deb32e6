import COrchard
import XCTest

@testable import OrchardMetal

/// A queue that accepts no more work after a failure is replaced by a new one.
final class RecoveryTests: XCTestCase {
    private static let wild = """
        kernel void wild(device const long *at [[buffer(0)]], device uint *values [[buffer(1)]]) { values[at[0]] = 1; }
        """

    /// Every operation is in a separate command buffer.
    private func open(afterFault: String? = nil, batchOperations: UInt32 = 1) throws -> Client {
        let client = try Client(batchOperations: batchOperations)
        guard let afterFault else { return client }
        try XCTSkipUnless(SoftwareDevice.isPresent, "only the software device chooses what follows a fault")
        try client.configure("after_fault", afterFault)
        return client
    }

    override func tearDown() {
        guard SoftwareDevice.isPresent else { return }
        try? Client().configure("after_fault", "continue")
    }

    /// Commits a kernel that stores far outside `target`; returns its ticket.
    private func fault(_ client: Client, into target: UInt64) throws -> UInt64 {
        let wild = try client.pipeline(client.library("#include <metal_stdlib>\n" + Self.wild), "wild")
        let at = try client.buffer([Int64(1) << 40])
        try client.dispatch(
            wild, grid: (1, 1, 1), threadgroup: (1, 1, 1), [binding(0, at, read), binding(1, target, write)])
        return try client.commit()
    }

    private func counts(_ client: Client) throws -> [UInt64] {
        try [client.statistics.failed_tickets, client.statistics.queues_replaced]
    }

    private func newQueueNotes(_ client: Client) throws -> [String] {
        try XCTUnwrap(client.report()["notes"] as? [String]).filter { $0.contains("A new queue") }
    }

    func testWorkAfterAFaultRunsOnANewQueue() throws {
        let client = try open(afterFault: "ignore")
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffers = try (0..<4).map { try client.buffer([UInt32](repeating: UInt32($0), count: 32)) }
        let target = try client.buffer(64, zeroed: true)
        try client.finish()
        let failed = try fault(client, into: target)
        for _ in 0..<10 {
            for buffer in buffers { try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)]) }
        }
        try check(orchard_buffer_hint(buffers[0], ORCHARD_STORAGE_PRIVATE.rawValue))
        for (index, buffer) in buffers.enumerated() {
            XCTAssertEqual(
                try client.read(buffer, 32, of: UInt32.self), [UInt32](repeating: UInt32(index) + 10, count: 32))
        }
        assertFails(ORCHARD_DEVICE_FAILED, "Command buffer \(failed)", "MTLCommandBufferErrorDomain 3") {
            try client.wait(failed)
        }
        XCTAssertEqual(try counts(client), [1, 1])
        let notes = try newQueueNotes(client)
        XCTAssertEqual(notes.count, 1)
        XCTAssertTrue(notes[0].contains("SubmissionsIgnored"), notes[0])
        let repeated = try client.statistics.command_buffers_repeated
        XCTAssertTrue(repeated >= 1 && notes[0].contains("runs \(repeated) of them again; 0 "), notes[0])
    }

    func testAQueueThatContinuesIsKept() throws {
        let client = try open(afterFault: "continue")
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer([UInt32](repeating: 1, count: 32)), target = try client.buffer(64)
        _ = try fault(client, into: target)
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
        XCTAssertEqual(try client.read(buffer, 1, of: UInt32.self), [2])
        XCTAssertEqual(try counts(client), [1, 0])
        XCTAssertEqual(try newQueueNotes(client), [])
    }

    func testADiscardedCommandBufferIsRunAgain() throws {
        let client = try open(afterFault: "discard", batchOperations: 100)
        let add = try client.pipeline(client.library(Kernels.add), "add")
        let a = try client.buffer([Float](repeating: 1, count: 32)), target = try client.buffer(64, zeroed: true)
        let sums = try (0..<3).map { _ in try client.buffer(128) }
        try client.finish()
        _ = try fault(client, into: target)
        var last = a
        for sum in sums {
            try client.dispatch(
                add, grid: (32, 1, 1), [binding(0, a, read), binding(1, last, read), binding(2, sum, write)],
                inline: [(3, Float(1).bytes)])
            last = sum
        }
        for (index, sum) in sums.enumerated() {
            XCTAssertEqual(
                try client.read(sum, 32, of: Float.self), [Float](repeating: Float(index) + 2, count: 32))
        }
        XCTAssertEqual(try counts(client), [1, 1])
        XCTAssertEqual(try client.statistics.command_buffers_repeated, 1)
    }

    /// It is unknown which elements `x += 1` has changed.
    func testADiscardedChangeInPlaceIsAnError() throws {
        let client = try open(afterFault: "discard", batchOperations: 100)
        let library = try client.library(Kernels.add)
        let bump = try client.pipeline(library, "bump"), add = try client.pipeline(library, "add")
        let buffer = try client.buffer([UInt32](repeating: 1, count: 32)), target = try client.buffer(64, zeroed: true)
        let a = try client.buffer([Float](repeating: 1, count: 32)), sum = try client.buffer(128)
        try client.finish()
        _ = try fault(client, into: target)
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
        let lost = try client.commit()
        try client.dispatch(
            add, grid: (32, 1, 1), [binding(0, a, read), binding(1, a, read), binding(2, sum, write)],
            inline: [(3, Float(1).bytes)])
        XCTAssertEqual(try client.read(sum, 1, of: Float.self), [2])
        assertFails(ORCHARD_DEVICE_FAILED, "Command buffer \(lost)", "InnocentVictim", "changes bytes that it reads") {
            _ = try client.read(buffer, 1, of: UInt32.self)
        }
        XCTAssertEqual(try counts(client), [2, 1])
        XCTAssertTrue(try newQueueNotes(client)[0].contains("1 can't be run again"))
    }

    func testWhatReadsTheResultsOfAFailedOneFailsToo() throws {
        let client = try open(afterFault: "ignore")
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let target = try client.buffer([UInt32](repeating: 1, count: 32))
        try client.finish()
        let failed = try fault(client, into: target)
        try client.dispatch(bump, grid: (32, 1, 1), [binding(0, target, readWrite)])
        assertFails(ORCHARD_DEVICE_FAILED, "reads what command buffer \(failed) did not write") {
            _ = try client.read(target, 1, of: UInt32.self)
        }
        XCTAssertEqual(try counts(client), [2, 1])
    }

    /// If new queues are rejected too, the work fails; later work is tried again.
    func testADeviceThatTakesNothingIsAnError() throws {
        let client = try open()
        let buffer = try client.buffer(64, zeroed: true)
        try client.finish()
        let accessRevoked: Int32 = 4
        try client.inject("command-buffer", count: 3, code: accessRevoked)
        try check(orchard_buffer_fill(buffer, 0, 64, 1, nil))
        assertFails(ORCHARD_DEVICE_FAILED, "it was run 3 times", "MTLCommandBufferErrorDomain 4") {
            try client.finish()
        }
        try check(orchard_buffer_fill(buffer, 0, 64, 2, nil))
        XCTAssertEqual(try client.read(buffer, 1, of: UInt8.self), [2])
        XCTAssertEqual(try counts(client), [1, 3])
    }

    /// Nobody waits for the device, but the counter advances. Labels stay pushed on the new queue.
    func testTheCounterMovesOnWithoutAWait() throws {
        let client = try open()
        let buffer = try client.buffer(64, zeroed: true)
        try client.finish()
        var address: UInt64 = 0
        try check(orchard_completion_counter(client.context, &address))
        let counter = try XCTUnwrap(UnsafePointer<UInt64>(bitPattern: UInt(address)))
        try check(orchard_label_push(client.context, "outer", 5))
        try client.inject("command-buffer", code: 4)
        try check(orchard_buffer_fill(buffer, 0, 64, 1, nil))
        let ticket = try client.commit()
        let deadline = Date(timeIntervalSinceNow: 60)
        while orchard_atomic_load(counter) < ticket, Date() < deadline { usleep(1000) }
        XCTAssertEqual([counter[0], counter[1], counter[2]], [ticket, 0, 1])
        try check(orchard_buffer_fill(buffer, 0, 32, 3, nil))
        try check(orchard_label_pop(client.context))
        XCTAssertEqual(try client.read(buffer, 1, of: UInt8.self), [3])
    }

    func testWhatIsCompleteIsNotRunAgain() throws {
        let client = try open()
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let buffer = try client.buffer([UInt32](repeating: 0, count: 32))
        try client.inject("command-buffer", skip: 3, code: 4)
        for _ in 0..<4 { try client.dispatch(bump, grid: (32, 1, 1), [binding(0, buffer, readWrite)]) }
        XCTAssertEqual(try client.read(buffer, 32, of: UInt32.self), [UInt32](repeating: 4, count: 32))
        XCTAssertEqual(try client.statistics.command_buffers_repeated, 1)
    }

    func testClosingFinishesWhatWasDropped() throws {
        let client = try open()
        let buffers = try (0..<5).map { _ in try client.buffer(64) }
        var address: UInt64 = 0
        try check(orchard_completion_counter(client.context, &address))
        try client.inject("command-buffer", code: 4)
        for buffer in buffers { try check(orchard_buffer_fill(buffer, 0, 64, 1, nil)) }
        try client.close()
        let counter = try XCTUnwrap(UnsafePointer<UInt64>(bitPattern: UInt(address)))
        XCTAssertEqual([counter[0], counter[1], counter[2]], [5, 0, 1])
    }
}
