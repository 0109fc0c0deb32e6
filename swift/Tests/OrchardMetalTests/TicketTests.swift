import COrchard
import XCTest

@testable import OrchardMetal

final class TicketTests: XCTestCase {
    func testHandlersOutOfOrderMoveTheCounterOverAGaplessRow() {
        let tickets = Tickets()
        tickets.end(2, .completed)
        XCTAssertEqual(tickets.completed, 0)
        tickets.end(3, .failed("page fault"))
        tickets.end(1, .completed)
        XCTAssertEqual(tickets.completed, 3)
        XCTAssertEqual(tickets.failed, 1)
        XCTAssertNil(tickets.failure(of: 2))
        XCTAssertEqual(tickets.failure(of: 3)?.message, "Command buffer 3 failed: page fault")
        XCTAssertEqual(tickets.failure(of: 3)?.status, ORCHARD_DEVICE_FAILED)
    }

    func testADroppedTicketHoldsTheCounterUntilItIsRunAgain() {
        let tickets = Tickets(), drops = Counter()
        tickets.onDrop = { drops.add() }
        tickets.end(1, .dropped(mayHaveRun: true, "discarded"))
        tickets.end(2, .completed)
        tickets.waitUntilEnded(through: 2)
        XCTAssertEqual([tickets.completed, tickets.failed, UInt64(drops.value)], [0, 0, 1])
        XCTAssertTrue(tickets.hasDropped)
        tickets.reopen(1)
        XCTAssertFalse(tickets.hasDropped)
        tickets.end(1, .completed)
        XCTAssertEqual(tickets.completed, 2)
    }

    func testAWaitEndsInTime() {
        let tickets = Tickets()
        let begin = Date()
        XCTAssertFalse(tickets.wait(for: 1, until: Date(timeIntervalSinceNow: 0.05)))
        XCTAssertLessThan(Date().timeIntervalSince(begin), 5)
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.02) { tickets.end(1, .completed) }
        XCTAssertTrue(tickets.wait(for: 1, until: Date(timeIntervalSinceNow: 10)))
    }

    func testStatesOfATicket() throws {
        let client = try Client()
        let buffer = try client.buffer(64)
        XCTAssertEqual(try client.commit(), 0, "nothing was ever encoded")
        var ticket: UInt64 = 0
        try check(orchard_buffer_fill(buffer, 0, 64, 1, &ticket))
        XCTAssertEqual(ticket, 1)
        XCTAssertEqual(try client.poll(1), UInt32(ORCHARD_TICKET_OPEN))
        assertFails(ORCHARD_INVALID_ARGUMENT, "Ticket 2 was never issued", "1") { _ = try client.poll(2) }
        try client.wait(1)
        XCTAssertEqual(try client.poll(1), UInt32(ORCHARD_TICKET_COMPLETE))
        XCTAssertEqual(try client.commit(), 1)
        assertFails(ORCHARD_INVALID_ARGUMENT) { try client.wait(2) }
        var address: UInt64 = 0
        try check(orchard_completion_counter(client.context, &address))
        let counter = try XCTUnwrap(UnsafePointer<UInt64>(bitPattern: UInt(address)))
        XCTAssertEqual([counter[0], counter[1]], [1, 0])
        try client.close()
        XCTAssertEqual(counter[0], 1, "readable after the close")
    }

    func testAFailedCommandBufferFailsItsOperationsOnly() throws {
        let client = try Client()
        let buffer = try client.buffer(64, zeroed: true), other = try client.buffer(64)
        try client.finish()
        try client.inject("command-buffer", code: 3)
        try check(orchard_buffer_fill(buffer, 0, 64, 1, nil))
        let failed = try client.commit()
        try check(orchard_buffer_fill(other, 0, 64, 2, nil))
        assertFails(ORCHARD_DEVICE_FAILED, "Command buffer \(failed)", "MTLCommandBufferErrorDomain 3") {
            try client.wait(failed)
        }
        assertFails(ORCHARD_DEVICE_FAILED) { _ = try client.poll(failed) }
        assertFails(ORCHARD_DEVICE_FAILED) { _ = try client.read(buffer, 1, of: UInt8.self) }
        XCTAssertEqual(try client.read(other, 1, of: UInt8.self), [2], "later command buffers continue")
        XCTAssertEqual(try client.statistics.failed_tickets, 1)
        try client.write(buffer, [UInt8](repeating: 9, count: 64))
        XCTAssertEqual(try client.read(buffer, 1, of: UInt8.self), [9], "new bytes make the buffer good again")
    }

    func testCommandBuffersAreCommittedByCount() throws {
        let client = try Client(batchOperations: 4)
        let buffer = try client.buffer(64)
        for _ in 0..<10 { try check(orchard_buffer_fill(buffer, 0, 64, 1, nil)) }
        XCTAssertEqual(try client.statistics.command_buffers, 2)
        XCTAssertEqual(try client.commit(), 3)
    }

    func testCommandBuffersAreCommittedByBytes() throws {
        let client = try Client(batchBytes: 1 << 20)
        let buffer = try client.buffer(1 << 19)
        for _ in 0..<5 { try check(orchard_buffer_fill(buffer, 0, 1 << 19, 1, nil)) }
        XCTAssertEqual(try client.statistics.command_buffers, 2)
    }

    func testClosingFinishesWhatIsInFlight() throws {
        let client = try Client(batchOperations: 1)
        let buffer = try client.buffer(1 << 20)
        var address: UInt64 = 0
        try check(orchard_completion_counter(client.context, &address))
        for _ in 0..<20 { try check(orchard_buffer_fill(buffer, 0, 1 << 20, 1, nil)) }
        try client.close()
        XCTAssertEqual(UnsafePointer<UInt64>(bitPattern: UInt(address))?.pointee, 20)
    }
}

private final class Counter: @unchecked Sendable {
    private(set) var value = 0
    func add() { value += 1 }
}
