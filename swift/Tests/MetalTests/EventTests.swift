import Metal
import XCTest

final class EventTests: MetalTestCase {
    func testEventsOrderQueues() {
        let other = device.makeCommandQueue()!, event = device.makeEvent()!
        let x = buffer([1, 2]), y = buffer([0, 0]), z = buffer([0, 0])
        let second = other.makeCommandBuffer()!
        second.encodeWaitForEvent(event, value: 7)
        copy(y, to: z, in: second)
        second.commit()
        let first = queue.makeCommandBuffer()!
        copy(x, to: y, in: first)
        first.encodeSignalEvent(event, value: 7)
        first.commit()
        second.waitUntilCompleted()
        XCTAssertEqual(floats(z), [1, 2])
    }

    func testNotifications() {
        let event = device.makeSharedEvent()!, log = Log(), reached = DispatchSemaphore(value: 0)
        let listener = MTLSharedEventListener(dispatchQueue: DispatchQueue(label: "listener"))
        for value: UInt64 in [3, 1] {
            event.notify(listener, atValue: value) { event, now in
                log.add("\(value) at \(now) of \(event.signaledValue)")
                reached.signal()
            }
        }
        event.signaledValue = 2
        XCTAssertEqual(reached.wait(timeout: .now() + 10), .success)
        XCTAssertEqual(log.entries, ["1 at 2 of 2"])
        let commands = queue.makeCommandBuffer()!
        commands.encodeSignalEvent(event, value: 5)
        commands.commit()
        XCTAssertEqual(reached.wait(timeout: .now() + 10), .success)
        XCTAssertEqual(log.entries, ["1 at 2 of 2", "3 at 5 of 5"])
        event.notify(listener, atValue: 4) { _, _ in reached.signal() }
        XCTAssertEqual(reached.wait(timeout: .now() + 10), .success, "a value that is already reached notifies at once")
    }

    func testWaitingOnTheHost() {
        let event = device.makeSharedEvent()!
        XCTAssertFalse(event.wait(untilSignaledValue: 1, timeoutMS: 20))
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.02) { event.signaledValue = 1 }
        XCTAssertTrue(event.wait(untilSignaledValue: 1, timeoutMS: 10000))
        XCTAssertTrue(event.wait(untilSignaledValue: 1, timeoutMS: .max))
    }

    func testHandlesShareTheEvent() throws {
        let event = device.makeSharedEvent()!
        event.label = "frame"
        let handle = event.makeSharedEventHandle()
        XCTAssertEqual(handle.label, "frame")
        let same = try XCTUnwrap(device.makeSharedEvent(handle: handle))
        event.signaledValue = 9
        XCTAssertEqual(same.signaledValue, 9)
    }

    private func copy(_ source: any MTLBuffer, to target: any MTLBuffer, in commands: any MTLCommandBuffer) {
        let encoder = commands.makeBlitCommandEncoder()!
        encoder.copy(from: source, sourceOffset: 0, to: target, destinationOffset: 0, size: source.length)
        encoder.endEncoding()
    }
}
