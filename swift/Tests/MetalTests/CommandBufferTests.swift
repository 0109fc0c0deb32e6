import Metal
import MetalRuntime
import XCTest

final class CommandBufferTests: MetalTestCase {
    func testStatusesAndTimes() {
        let commands = queue.makeCommandBuffer()!
        XCTAssertEqual(commands.status, .notEnqueued)
        commands.enqueue()
        XCTAssertEqual(commands.status, .enqueued)
        XCTAssertEqual(commands.gpuEndTime, 0)
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertEqual(commands.status, .completed)
        XCTAssertNil(commands.error)
        XCTAssertGreaterThan(commands.gpuStartTime, 0)
        XCTAssertGreaterThanOrEqual(commands.gpuEndTime, commands.gpuStartTime)
        XCTAssertGreaterThanOrEqual(commands.kernelEndTime, commands.kernelStartTime)
        XCTAssertTrue(commands.commandQueue === queue)
    }

    /// The behavior of a queue after a failure: the setting `after_fault`.
    func testTheAftermathOfAFault() throws {
        defer { mrt_setting_set("after_fault", "continue", nil) }
        let increment = try pipeline("increment")
        /// Returns the error of each command buffer after a failed one, and the results of its two dispatches.
        func aftermath(_ setting: String) -> [(error: String, value: Float)] {
            XCTAssertTrue(mrt_setting_set("after_fault", setting, nil))
            let queue = device.makeCommandQueue()!
            mrt_fault_inject("command-buffer", 0, 1, 3)
            XCTAssertEqual(run(on: queue) { _ in }.status, .error)
            return (0..<2).map { _ in
                let x = buffer([0])
                let done = run(on: queue) { encoder in
                    for _ in 0..<2 {
                        encoder.setComputePipelineState(increment)
                        encoder.setBuffer(x, offset: 0, index: 0)
                        encoder.dispatchThreads(MTLSizeMake(1, 1, 1), threadsPerThreadgroup: MTLSizeMake(1, 1, 1))
                    }
                }
                let code = (done.error as? MTLCommandBufferError).map { "\($0.code.rawValue) " } ?? ""
                return (code + (done.error?.localizedDescription ?? ""), floats(x)[0])
            }
        }
        let continued = aftermath("continue")
        XCTAssertEqual(continued.map(\.error), ["", ""])
        XCTAssertEqual(continued.map(\.value), [2, 2])
        let ignored = aftermath("ignore")
        XCTAssertTrue(ignored.allSatisfy { $0.error.hasPrefix("4 Ignored") && $0.error.contains("SubmissionsIgnored") })
        XCTAssertEqual(ignored.map(\.value), [0, 0])
        let discarded = aftermath("discard")
        XCTAssertTrue(discarded[0].error.hasPrefix("1 Discarded") && discarded[0].error.contains("InnocentVictim"))
        XCTAssertEqual(discarded[1].error, "")
        XCTAssertEqual(discarded.map(\.value), [1, 2])
    }

    func testCommitReturnsAtOnceAndBuffersRunInOrder() {
        let gate = device.makeSharedEvent()!, log = Log()
        let waiting = queue.makeCommandBuffer()!
        waiting.encodeWaitForEvent(gate, value: 1)
        waiting.addCompletedHandler { _ in log.add("first") }
        let next = queue.makeCommandBuffer()!
        next.addCompletedHandler { _ in log.add("second") }
        waiting.commit()
        next.commit()
        log.add("host")
        XCTAssertNotEqual(next.status, .completed)
        gate.signaledValue = 1
        next.waitUntilCompleted()
        XCTAssertEqual(log.entries, ["host", "first", "second"])
    }

    func testEnqueuingDecidesTheOrder() {
        let log = Log()
        let buffers = ["a", "b", "c"].map { name in
            let buffer = queue.makeCommandBuffer()!
            buffer.addCompletedHandler { _ in log.add(name) }
            buffer.enqueue()
            return buffer
        }
        buffers.reversed().forEach { $0.commit() }
        buffers.forEach { $0.waitUntilCompleted() }
        XCTAssertEqual(log.entries, ["a", "b", "c"])
    }

    func testHandlersRunInOrderOnAnotherThread() {
        let log = Log(), caller = Thread.current
        let commands = queue.makeCommandBuffer()!
        commands.addCompletedHandler { [unowned log] buffer in
            log.add("completed \(buffer.status) \(Thread.current === caller)")
        }
        commands.addScheduledHandler { [unowned log] _ in log.add("scheduled 1") }
        commands.addScheduledHandler { [unowned log] _ in log.add("scheduled 2") }
        commands.addCompletedHandler { [unowned log] _ in log.add("done") }
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertEqual(log.entries, ["scheduled 1", "scheduled 2", "completed completed false", "done"])
    }

    func testACommandBufferMayBeDroppedAfterCommit() {
        let done = DispatchSemaphore(value: 0)
        do {
            let commands = device.makeCommandQueue()!.makeCommandBuffer()!
            commands.addCompletedHandler { _ in done.signal() }
            commands.commit()
        }
        XCTAssertEqual(done.wait(timeout: .now() + 10), .success)
    }

    func testBuffersAreKeptAliveUntilTheyAreUsed() {
        let gate = device.makeSharedEvent()!, target = buffer([0, 0])
        let commands = queue.makeCommandBuffer()!
        commands.encodeWaitForEvent(gate, value: 1)
        weak var weakSource: AnyObject?
        do {
            let source = buffer([5, 6])
            weakSource = source
            let encoder = commands.makeBlitCommandEncoder()!
            encoder.copy(from: source, sourceOffset: 0, to: target, destinationOffset: 0, size: 8)
            encoder.endEncoding()
        }
        commands.commit()
        XCTAssertNotNil(weakSource)
        gate.signaledValue = 1
        commands.waitUntilCompleted()
        XCTAssertEqual(floats(target), [5, 6])
        XCTAssertNil(weakSource, "what a command buffer kept is free once it has completed")
    }

    func testAQueueHandsOutItsCountOfCommandBuffers() {
        let queue = device.makeCommandQueue(maxCommandBufferCount: 2)!
        var held: [any MTLCommandBuffer] = [queue.makeCommandBuffer()!, queue.makeCommandBuffer()!]
        let made = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            _ = queue.makeCommandBuffer()
            made.signal()
        }
        XCTAssertEqual(made.wait(timeout: .now() + 0.1), .timedOut, "a third must wait")
        held.removeFirst().commit()
        XCTAssertEqual(made.wait(timeout: .now() + 10), .success)
        held.removeAll()
        XCTAssertNotNil(queue.makeCommandBuffer(), "a command buffer that is dropped frees its slot")
    }

    func testAwaiting() async {
        let before = queue.makeCommandBuffer()!, gate = device.makeSharedEvent()!
        before.encodeWaitForEvent(gate, value: 1)
        before.commit()
        await before.scheduled()
        XCTAssertEqual(before.status, .scheduled)
        gate.signaledValue = 1
        await before.completed()
        XCTAssertEqual(before.status, .completed)
        await before.completed()
        await before.scheduled()
    }

    func testInjectedFailures() {
        mrt_fault_inject("command-buffer", 1, 1, Int32(MTLCommandBufferError.Code.outOfMemory.rawValue))
        let target = buffer([1, 2])
        let statuses = (0..<3).map { index -> MTLCommandBufferStatus in
            let commands = queue.makeCommandBuffer(descriptor: reporting())!
            let encoder = commands.makeBlitCommandEncoder()!
            encoder.label = "fill"
            encoder.fill(buffer: target, range: 0..<8, value: UInt8(index))
            encoder.endEncoding()
            commands.commit()
            commands.waitUntilCompleted()
            if index == 1 { checkFailure(commands.error) }
            return commands.status
        }
        XCTAssertEqual(statuses, [.completed, .error, .completed])
    }

    private func reporting() -> MTLCommandBufferDescriptor {
        let descriptor = MTLCommandBufferDescriptor()
        descriptor.errorOptions = .encoderExecutionStatus
        return descriptor
    }

    private func checkFailure(_ error: (any Error)?) {
        XCTAssertEqual((error as? MTLCommandBufferError)?.code, .outOfMemory)
        XCTAssertTrue(error?.localizedDescription.contains("Insufficient Memory") ?? false)
        let plain = error as NSError?
        XCTAssertEqual(plain?.domain, MTLCommandBufferErrorDomain)
        XCTAssertEqual(plain?.code, 8)
        let encoders = plain?.userInfo[MTLCommandBufferEncoderInfoErrorKey] as? [any MTLCommandBufferEncoderInfo]
        XCTAssertEqual(encoders?.map(\.label), ["fill"])
        XCTAssertEqual(encoders?.map(\.errorState), [.affected])
    }

    func testInjectedFailuresOfMaking() {
        mrt_fault_inject("allocate", 0, 1, 0)
        XCTAssertNil(device.makeBuffer(length: 16))
        XCTAssertNotNil(device.makeBuffer(length: 16))
        mrt_fault_inject("queue", 0, 1, 0)
        XCTAssertNil(device.makeCommandQueue())
        XCTAssertNotNil(device.makeCommandQueue())
        mrt_fault_inject("library", 0, 1, 0)
        XCTAssertThrowsError(try device.makeLibrary(source: "", options: nil)) { error in
            XCTAssertEqual((error as? MTLLibraryError)?.code, .internal)
        }
    }

    func testASignalIsSentEvenByACommandBufferThatFails() {
        mrt_fault_inject("command-buffer", 0, 1, 2)
        let event = device.makeSharedEvent()!
        let commands = queue.makeCommandBuffer()!
        commands.encodeSignalEvent(event, value: 3)
        commands.commit()
        XCTAssertTrue(event.wait(untilSignaledValue: 3, timeoutMS: 10000))
        commands.waitUntilCompleted()
        XCTAssertEqual((commands.error as? MTLCommandBufferError)?.code, .timeout)
    }
}

/// A log of events in order, from any thread.
final class Log: @unchecked Sendable {
    private let lock = NSLock()
    private var list: [String] = []
    var entries: [String] { lock.withLock { list } }
    func add(_ entry: String) { lock.withLock { list.append(entry) } }
}
