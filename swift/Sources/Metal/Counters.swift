// Hardware counters, which this device does not support: it lists no counter sets and no sampling points.

public struct MTLCommonCounter: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let timestamp = MTLCommonCounter(rawValue: "GPUTimestamp")
    public static let totalCycles = MTLCommonCounter(rawValue: "TotalCycles")
}

public struct MTLCommonCounterSet: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public static let timestamp = MTLCommonCounterSet(rawValue: "timestamp")
    public static let stageUtilization = MTLCommonCounterSet(rawValue: "stageutilization")
    public static let statistic = MTLCommonCounterSet(rawValue: "statistic")
}

public struct MTLCounterResultTimestamp: Sendable {
    public var timestamp: UInt64

    public init() { timestamp = 0 }

    public init(timestamp: UInt64) { self.timestamp = timestamp }
}

public enum MTLCounterSamplingPoint: UInt, Sendable {
    case atStageBoundary = 0
    case atDrawBoundary = 1
    case atDispatchBoundary = 2
    case atTileDispatchBoundary = 3
    case atBlitBoundary = 4
}

public protocol MTLCounter: NSObjectProtocol, Sendable {
    var name: String { get }
}

public protocol MTLCounterSet: NSObjectProtocol, Sendable {
    var name: String { get }
    var counters: [any MTLCounter] { get }
}

public protocol MTLCounterSampleBuffer: NSObjectProtocol, Sendable {
    var device: any MTLDevice { get }
    var label: String { get }
    var sampleCount: Int { get }
    func resolveCounterRange(_ range: Range<Int>) throws -> Data?
}

public class MTLCounterSampleBufferDescriptor: NSObject, NSCopying {
    public var counterSet: (any MTLCounterSet)?
    public var label: String = ""
    public var storageMode = MTLStorageMode.shared
    public var sampleCount = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLCounterSampleBufferDescriptor()
        copy.counterSet = counterSet
        copy.label = label
        copy.storageMode = storageMode
        copy.sampleCount = sampleCount
        return copy
    }
}

public struct MTLCounterSampleBufferError: _BridgedStoredNSError, Sendable {
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLCounterSampleBufferError

        case outOfMemory = 0
        case invalid = 1
        case `internal` = 2
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLCounterErrorDomain }
    public static var outOfMemory: Code { .outOfMemory }
    public static var invalid: Code { .invalid }
    public static var `internal`: Code { .internal }
}

public let MTLCounterErrorDomain: String = "MTLCounterErrorDomain"

extension SoftwareDevice {
    var counterSets: [any MTLCounterSet]? { nil }
    func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool { false }

    func makeCounterSampleBuffer(descriptor: MTLCounterSampleBufferDescriptor) throws -> any MTLCounterSampleBuffer {
        throw MTLCounterSampleBufferError(
            .invalid,
            "\(name) has no counters: counterSets is nil. Time command buffers by gpuStartTime and gpuEndTime.")
    }
}

extension SoftwareComputeEncoder {
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool) {
        misuse(debugName, "sampleCountersInBuffer:atSampleIndex:withBarrier:", "this device has no counters.")
    }
}
