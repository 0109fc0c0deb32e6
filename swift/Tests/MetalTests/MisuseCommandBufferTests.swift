import Metal
import XCTest

final class MisuseCommandBufferTests: MetalTestCase {
    private func commands() -> any MTLCommandBuffer { queue.makeCommandBuffer()! }

    func testOneOpenEncoder() {
        let buffer = commands()
        let first = buffer.makeComputeCommandEncoder()!
        let message = "A command encoder is already encoding to this command buffer"
        assertMisuse(message) { XCTAssertNil(buffer.makeComputeCommandEncoder()) }
        assertMisuse(message) { XCTAssertNil(buffer.makeBlitCommandEncoder()) }
        assertMisuse(message) { buffer.encodeSignalEvent(device.makeEvent()!, value: 1) }
        assertMisuse(message) { buffer.encodeWaitForEvent(device.makeEvent()!, value: 1) }
        first.endEncoding()
        let second = buffer.makeBlitCommandEncoder()
        XCTAssertNotNil(second)
        second?.endEncoding()
    }

    func testCommitWithAnOpenEncoder() {
        let buffer = commands()
        let encoder = buffer.makeComputeCommandEncoder()!
        assertMisuse("commit command buffer with uncommitted encoder") { buffer.commit() }
        XCTAssertEqual(buffer.status, .notEnqueued)
        encoder.endEncoding()
        buffer.commit()
        buffer.waitUntilCompleted()
        XCTAssertEqual(buffer.status, .completed)
    }

    func testDoubleCommit() {
        let buffer = commands()
        buffer.commit()
        assertMisuse("commit an already committed command buffer") { buffer.commit() }
        buffer.waitUntilCompleted()
    }

    func testEncodingAfterCommit() {
        let buffer = commands()
        buffer.commit()
        assertMisuse("already committed") { XCTAssertNil(buffer.makeComputeCommandEncoder()) }
        assertMisuse("already committed") { XCTAssertNil(buffer.makeBlitCommandEncoder()) }
        assertMisuse("already committed") { buffer.encodeSignalEvent(device.makeEvent()!, value: 1) }
        assertMisuse("already committed") { buffer.enqueue() }
        assertMisuse("already committed") { buffer.pushDebugGroup("late") }
        buffer.waitUntilCompleted()
    }

    func testHandlersAfterCommit() {
        let buffer = commands()
        buffer.commit()
        assertMisuse("Scheduled handler provided after commit call") { buffer.addScheduledHandler { _ in } }
        assertMisuse("Completed handler provided after commit call") { buffer.addCompletedHandler { _ in } }
        buffer.waitUntilCompleted()
    }

    func testWaitingBeforeCommit() {
        let buffer = commands()
        assertMisuse("must be committed before") { buffer.waitUntilCompleted() }
        assertMisuse("must be committed before") { buffer.waitUntilScheduled() }
        buffer.commit()
        buffer.waitUntilScheduled()
        buffer.waitUntilCompleted()
    }

    func testEncoderReleasedWithoutEndEncoding() {
        let buffer = commands()
        assertMisuse("Command encoder released without endEncoding") { _ = buffer.makeComputeCommandEncoder() }
        assertMisuse("Command encoder released without endEncoding") { _ = buffer.makeBlitCommandEncoder() }
    }

    func testEncodingAfterEndEncoding() throws {
        let buffer = commands(), target = self.buffer([1, 2])
        let encoder = buffer.makeComputeCommandEncoder()!
        encoder.endEncoding()
        assertMisuse("endEncoding has already been called") { encoder.endEncoding() }
        try assertMisuse("after endEncoding") { encoder.setComputePipelineState(try pipeline("increment")) }
        assertMisuse("after endEncoding") { encoder.setBuffer(target, offset: 0, index: 0) }
        assertMisuse("after endEncoding") { encoder.dispatchThreads(one, threadsPerThreadgroup: one) }
        assertMisuse("after endEncoding") { encoder.dispatchThreadgroups(one, threadsPerThreadgroup: one) }
        assertMisuse("after endEncoding") { encoder.memoryBarrier(scope: .buffers) }
        let blit = buffer.makeBlitCommandEncoder()!
        blit.endEncoding()
        assertMisuse("after endEncoding") { blit.fill(buffer: target, range: 0..<8, value: 0) }
    }

    func testDebugGroupsBalance() {
        let buffer = commands()
        assertMisuse("popDebugGroup called without a matching pushDebugGroup") { buffer.popDebugGroup() }
        buffer.pushDebugGroup("outer")
        let encoder = buffer.makeComputeCommandEncoder()!
        assertMisuse("popDebugGroup called without a matching pushDebugGroup") { encoder.popDebugGroup() }
        encoder.pushDebugGroup("inner")
        assertMisuse("[\"inner\"] were pushed and not popped") { encoder.endEncoding() }
        assertMisuse("[\"outer\"] were pushed and not popped") { buffer.commit() }
        buffer.popDebugGroup()
        buffer.commit()
        buffer.waitUntilCompleted()
    }

    func testPurgedBuffersAtCommit() throws {
        let target = buffer([1, 2])
        target.label = "weights"
        target.setPurgeableState(.volatile)
        let commands = commands()
        let encoder = commands.makeBlitCommandEncoder()!
        encoder.fill(buffer: target, range: 0..<8, value: 0)
        encoder.endEncoding()
        assertMisuse("(label: weights), referenced in cmd buffer") { commands.commit() }
        XCTAssertEqual(target.setPurgeableState(.nonVolatile), .volatile)
        commands.commit()
        commands.waitUntilCompleted()
    }

    func testUnretainedBuffersMustLive() {
        let commands = queue.makeCommandBufferWithUnretainedReferences()!
        XCTAssertFalse(commands.retainedReferences)
        let encoder = commands.makeBlitCommandEncoder()!
        do {
            let short = buffer([1, 2])
            encoder.fill(buffer: short, range: 0..<8, value: 0)
        }
        encoder.endEncoding()
        assertMisuse("references deallocated object") {
            commands.commit()
            commands.waitUntilCompleted()
        }
        XCTAssertEqual((commands.error as? MTLCommandBufferError)?.code, .invalidResource)
    }

    func testQueueOfNoCommandBuffers() {
        assertMisuse("maxCommandBufferCount(0) must be > 0") {
            XCTAssertNil(device.makeCommandQueue(maxCommandBufferCount: 0))
        }
    }
}
