import MetalRuntime

private final class SoftwareCounter: NSObject, MTLCounter, Sendable {
    let name = MTLCommonCounter.timestamp.rawValue
}

private final class SoftwareCounterSet: NSObject, MTLCounterSet, Sendable {
    let name = MTLCommonCounterSet.timestamp.rawValue
    let counters: [any MTLCounter] = [SoftwareCounter()]
}

private let timestamps = SoftwareCounterSet()

/// Timestamps in nanoseconds, of the clock of `sampleTimestamps()`.
final class SoftwareSampleBuffer: NSObject, MTLCounterSampleBuffer, @unchecked Sendable {
    /// The largest size of a sample buffer on Apple's GPUs, in bytes.
    static let maxLength = 32768

    let label: String
    let sampleCount: Int
    let storageMode: MTLStorageMode
    private let samples: Guarded<[UInt64]>

    init(_ descriptor: MTLCounterSampleBufferDescriptor) {
        label = descriptor.label
        sampleCount = descriptor.sampleCount
        storageMode = descriptor.storageMode
        samples = Guarded([UInt64](repeating: MTLCounterErrorValue, count: descriptor.sampleCount))
    }

    var device: any MTLDevice { SoftwareDevice.shared }
    override var description: String { "<SoftwareSampleBuffer> label = \(label), sampleCount = \(sampleCount)" }

    func sample(_ index: Int) { samples.withLock { $0[index] = UInt64(hostTime() * 1e9) } }

    func resolveCounterRange(_ range: Range<Int>) throws -> Data? {
        guard storageMode != .private else {
            throw MTLCounterSampleBufferError(
                .invalid,
                "resolveCounterRange: the sample buffer \(label) is private; use storageMode .shared, or "
                    + "resolveCounters of a blit encoder.")
        }
        return bytes(range).map { Data($0) }
    }

    /// The samples of a range, each an `MTLCounterResultTimestamp`; nil if the buffer does not contain the range.
    func bytes(_ range: Range<Int>) -> [UInt8]? {
        guard range.lowerBound >= 0, range.upperBound <= sampleCount else { return nil }
        return samples.withLock { Array($0[range]) }.withUnsafeBytes { Array($0) }
    }
}

/// The samples that a pass takes when its encoder starts and ends.
struct EncoderSamples {
    let buffer: any MTLCounterSampleBuffer
    let start: Int
    let end: Int

    init?(_ buffer: (any MTLCounterSampleBuffer)?, _ start: Int, _ end: Int) {
        guard let buffer else { return nil }
        (self.buffer, self.start, self.end) = (buffer, start, end)
    }

    /// Returns the commands that take the samples; nil after a misuse.
    static func commands(_ samples: [EncoderSamples], _ selector: String) -> (
        start: [SampleCommand], end: [SampleCommand]
    )? {
        var commands = (start: [SampleCommand](), end: [SampleCommand]())
        for each in samples {
            guard let buffer = each.buffer as? SoftwareSampleBuffer else {
                misuse(SoftwareCommandBuffer.debugName, selector, "the sample buffer is not one of this device.")
                return nil
            }
            for index in [each.start, each.end] where index != MTLCounterDontSample {
                guard
                    (0..<buffer.sampleCount).contains(index)
                        || refuse(
                            SoftwareCommandBuffer.debugName, selector,
                            "sample index (\(index)) must be < sampleCount(\(buffer.sampleCount)).")
                else { return nil }
            }
            if each.start != MTLCounterDontSample { commands.start.append(SampleCommand(buffer, each.start)) }
            if each.end != MTLCounterDontSample { commands.end.append(SampleCommand(buffer, each.end)) }
        }
        return commands
    }
}

struct SampleCommand: Command {
    let isSeenByHost = true
    private let buffer: SoftwareSampleBuffer
    private let index: Int

    init(_ buffer: SoftwareSampleBuffer, _ index: Int) { (self.buffer, self.index) = (buffer, index) }

    func run() -> CommandFailure? {
        buffer.sample(index)
        return nil
    }
}

struct ResolveCommand: Command {
    let encoder: EncoderRecord?
    let samples: SoftwareSampleBuffer
    let range: Range<Int>
    let destination: BufferReference
    let offset: Int

    var buffers: [SoftwareBuffer] { [destination.buffer].compactMap { $0 } }

    func run() -> CommandFailure? {
        guard let target = destination.resolve(), let bytes = samples.bytes(range) else { return nil }
        let address = target.memory.address + offset
        let device = target.memory.device
        guard device.gpu == nil else {
            return bytes.withUnsafeBytes { device.copy(to: address, from: $0.baseAddress!, count: $0.count) }
        }
        address.copyMemory(from: bytes, byteCount: bytes.count)
        mrt_memory_mark_written(address, bytes.count)
        return nil
    }
}

extension SoftwareDevice {
    var counterSets: [any MTLCounterSet]? { [timestamps] }

    func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool { samplingPoint == .atStageBoundary }

    func makeCounterSampleBuffer(descriptor: MTLCounterSampleBufferDescriptor) throws -> any MTLCounterSampleBuffer {
        guard let set = descriptor.counterSet else {
            throw MTLCounterSampleBufferError(
                .invalid, "makeCounterSampleBuffer: counterSet is nil; set one of the device's counterSets.")
        }
        guard set is SoftwareCounterSet else {
            throw MTLCounterSampleBufferError(
                .invalid, "makeCounterSampleBuffer: \(name) has the counter set timestamp alone (got \(set.name)).")
        }
        let limit = SoftwareSampleBuffer.maxLength / MemoryLayout<MTLCounterResultTimestamp>.size
        guard (1...limit).contains(descriptor.sampleCount) else {
            throw MTLCounterSampleBufferError(
                .invalid,
                "makeCounterSampleBuffer: sampleCount must be from 1 to \(limit) (got \(descriptor.sampleCount)).")
        }
        guard descriptor.storageMode == .shared || descriptor.storageMode == .private else {
            throw MTLCounterSampleBufferError(
                .invalid,
                "makeCounterSampleBuffer: storageMode must be .shared or .private (got \(descriptor.storageMode)).")
        }
        guard !takeFault("counters") else {
            throw MTLCounterSampleBufferError(.outOfMemory, "Injected failure: the sample buffer was not made.")
        }
        return SoftwareSampleBuffer(descriptor)
    }
}

/// Apple's GPUs sample only at the boundaries of encoders.
private let sampledAtBoundaries =
    "samples are taken where encoders start and end: use sampleBufferAttachments of the pass descriptor."

extension SoftwareComputeEncoder {
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool) {
        misuse(debugName, "sampleCountersInBuffer:atSampleIndex:withBarrier:", sampledAtBoundaries)
    }
}

extension SoftwareBlitEncoder {
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool) {
        misuse(debugName, "sampleCountersInBuffer:atSampleIndex:withBarrier:", sampledAtBoundaries)
    }

    func resolveCounters(
        _ sampleBuffer: any MTLCounterSampleBuffer, range: Range<Int>, destinationBuffer: any MTLBuffer,
        destinationOffset: Int
    ) {
        let selector = "resolveCounters:inRange:destinationBuffer:destinationOffset:"
        guard encodes(selector), let target = known(destinationBuffer, selector) else { return }
        guard let samples = sampleBuffer as? SoftwareSampleBuffer else {
            return misuse(debugName, selector, "the sample buffer is not one of this device.")
        }
        guard range.lowerBound >= 0, range.upperBound <= samples.sampleCount, !range.isEmpty else {
            return misuse(debugName, selector, "range(\(range)) must be within [0, \(samples.sampleCount)).")
        }
        let size = range.count * MemoryLayout<MTLCounterResultTimestamp>.size
        guard destinationOffset >= 0, destinationOffset % 256 == 0, destinationOffset <= target.length - size else {
            return misuse(
                debugName, selector,
                "destinationOffset(\(destinationOffset)) must be a multiple of 256, with \(size) bytes from there to "
                    + "the end of the buffer(\(target.length)).")
        }
        buffer.record(
            ResolveCommand(
                encoder: record, samples: samples, range: range,
                destination: BufferReference(target, retained: buffer.retainedReferences), offset: destinationOffset))
    }
}
