import Metal
import MetalRuntime
import XCTest

/// Timestamps of encoders: they are in the order of the encoders, between the start and the end of the command buffer.
final class CounterTests: MetalTestCase {
    private func descriptor(_ count: Int, _ mode: MTLStorageMode = .shared) -> MTLCounterSampleBufferDescriptor {
        let descriptor = MTLCounterSampleBufferDescriptor()
        descriptor.counterSet = device.counterSets?.first { $0.name == MTLCommonCounterSet.timestamp.rawValue }
        descriptor.sampleCount = count
        descriptor.storageMode = mode
        return descriptor
    }

    private func times(_ data: Data) -> [UInt64] {
        data.withUnsafeBytes { $0.bindMemory(to: MTLCounterResultTimestamp.self).map(\.timestamp) }
    }

    func testEncodersAreTimed() throws {
        let count = Int.random(in: 1...4)
        let samples = try device.makeCounterSampleBuffer(descriptor: descriptor(2 * count + 3))
        let before = device.sampleTimestamps().gpu
        let commands = try XCTUnwrap(queue.makeCommandBuffer()), values = buffer([1, 2])
        for index in 0..<count {
            let pass = MTLComputePassDescriptor()
            let attachment = try XCTUnwrap(pass.sampleBufferAttachments[0])
            attachment.sampleBuffer = samples
            (attachment.startOfEncoderSampleIndex, attachment.endOfEncoderSampleIndex) = (2 * index, 2 * index + 1)
            let encoder = try XCTUnwrap(commands.makeComputeCommandEncoder(descriptor: pass))
            encoder.setComputePipelineState(try pipeline("increment"))
            encoder.setBuffer(values, offset: 0, index: 0)
            encoder.dispatchThreads(MTLSizeMake(2, 1, 1), threadsPerThreadgroup: MTLSizeMake(2, 1, 1))
            encoder.endEncoding()
        }
        let pass = MTLBlitPassDescriptor()
        pass.sampleBufferAttachments[1].sampleBuffer = samples
        pass.sampleBufferAttachments[1].startOfEncoderSampleIndex = 2 * count
        pass.sampleBufferAttachments[1].endOfEncoderSampleIndex = 2 * count + 1
        let resolved = try XCTUnwrap(device.makeBuffer(length: 512))
        let blit = try XCTUnwrap(commands.makeBlitCommandEncoder(descriptor: pass))
        blit.resolveCounters(samples, range: 0..<2 * count, destinationBuffer: resolved, destinationOffset: 256)
        blit.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        XCTAssertNil(commands.error)
        XCTAssertEqual(floats(values), [1 + Float(count), 2 + Float(count)])

        let all = times(try XCTUnwrap(samples.resolveCounterRange(0..<2 * count + 3)))
        let taken = [before] + all.dropLast() + [device.sampleTimestamps().gpu]
        XCTAssertEqual(taken, taken.sorted())
        XCTAssertEqual(all.last, MTLCounterErrorValue, "no pass takes this sample")
        XCTAssertEqual(times(Data(bytes: resolved.contents() + 256, count: 16 * count)), Array(all.prefix(2 * count)))
        XCTAssertNil(try samples.resolveCounterRange(0..<2 * count + 4))
    }

    func testErrors() throws {
        XCTAssertEqual(
            [.atStageBoundary, .atDrawBoundary, .atDispatchBoundary, .atTileDispatchBoundary, .atBlitBoundary].map {
                device.supportsCounterSampling($0)
            }, [true, false, false, false, false])
        let noSet = descriptor(1)
        noSet.counterSet = nil
        for wrong in [noSet, descriptor(0), descriptor(4097), descriptor(1, .managed)] {
            XCTAssertThrowsError(try device.makeCounterSampleBuffer(descriptor: wrong)) {
                XCTAssertEqual(($0 as? MTLCounterSampleBufferError)?.code, .invalid)
            }
        }
        let hidden = try device.makeCounterSampleBuffer(descriptor: descriptor(4096, .private))
        XCTAssertThrowsError(try hidden.resolveCounterRange(0..<1))
        mrt_fault_inject("counters", 0, 1, 0)
        XCTAssertThrowsError(try device.makeCounterSampleBuffer(descriptor: descriptor(1))) {
            XCTAssertEqual(($0 as? MTLCounterSampleBufferError)?.code, .outOfMemory)
        }

        let commands = try XCTUnwrap(queue.makeCommandBuffer()), pass = MTLComputePassDescriptor()
        pass.sampleBufferAttachments[0].sampleBuffer = hidden
        pass.sampleBufferAttachments[0].endOfEncoderSampleIndex = 4096
        assertMisuse("sample index (4096)") { XCTAssertNil(commands.makeComputeCommandEncoder(descriptor: pass)) }
        let encoder = try XCTUnwrap(commands.makeComputeCommandEncoder())
        assertMisuse("sampleBufferAttachments") {
            encoder.sampleCounters(sampleBuffer: hidden, sampleIndex: 0, barrier: false)
        }
        encoder.endEncoding()
        let blit = try XCTUnwrap(commands.makeBlitCommandEncoder()), small = buffer([0, 0])
        assertMisuse("destinationOffset(256)") {
            blit.resolveCounters(hidden, range: 0..<1, destinationBuffer: small, destinationOffset: 256)
        }
        assertMisuse("range(4000..<4097)") {
            blit.resolveCounters(hidden, range: 4000..<4097, destinationBuffer: small, destinationOffset: 0)
        }
        blit.endEncoding()
    }
}
