// Counters. This device has one set, "timestamp", sampled where an encoder starts and ends, as on an M1. It has no
// counters of hardware events.

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

/// A sample index that takes no sample.
public let MTLCounterDontSample: Int = -1

/// The value of a sample that was not taken.
public let MTLCounterErrorValue: UInt64 = .max

public class MTLComputePassSampleBufferAttachmentDescriptor: NSObject, NSCopying {
    public var sampleBuffer: (any MTLCounterSampleBuffer)?
    public var startOfEncoderSampleIndex = MTLCounterDontSample
    public var endOfEncoderSampleIndex = MTLCounterDontSample

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLComputePassSampleBufferAttachmentDescriptor()
        copy.sampleBuffer = sampleBuffer
        copy.startOfEncoderSampleIndex = startOfEncoderSampleIndex
        copy.endOfEncoderSampleIndex = endOfEncoderSampleIndex
        return copy
    }
}

public class MTLComputePassSampleBufferAttachmentDescriptorArray: NSObject {
    private var attachments = SampleAttachments(MTLComputePassSampleBufferAttachmentDescriptor.init)

    public subscript(attachmentIndex: Int) -> MTLComputePassSampleBufferAttachmentDescriptor! {
        get { attachments.get(attachmentIndex) }
        set { attachments.set(attachmentIndex, newValue) }
    }

    func copied() -> MTLComputePassSampleBufferAttachmentDescriptorArray {
        let copy = MTLComputePassSampleBufferAttachmentDescriptorArray()
        copy.attachments = attachments.copied()
        return copy
    }

    var samples: [EncoderSamples] {
        attachments.all.compactMap {
            EncoderSamples($0.sampleBuffer, $0.startOfEncoderSampleIndex, $0.endOfEncoderSampleIndex)
        }
    }
}

public class MTLBlitPassSampleBufferAttachmentDescriptor: NSObject, NSCopying {
    public var sampleBuffer: (any MTLCounterSampleBuffer)?
    public var startOfEncoderSampleIndex = MTLCounterDontSample
    public var endOfEncoderSampleIndex = MTLCounterDontSample

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLBlitPassSampleBufferAttachmentDescriptor()
        copy.sampleBuffer = sampleBuffer
        copy.startOfEncoderSampleIndex = startOfEncoderSampleIndex
        copy.endOfEncoderSampleIndex = endOfEncoderSampleIndex
        return copy
    }
}

public class MTLBlitPassSampleBufferAttachmentDescriptorArray: NSObject {
    private var attachments = SampleAttachments(MTLBlitPassSampleBufferAttachmentDescriptor.init)

    public subscript(attachmentIndex: Int) -> MTLBlitPassSampleBufferAttachmentDescriptor! {
        get { attachments.get(attachmentIndex) }
        set { attachments.set(attachmentIndex, newValue) }
    }

    func copied() -> MTLBlitPassSampleBufferAttachmentDescriptorArray {
        let copy = MTLBlitPassSampleBufferAttachmentDescriptorArray()
        copy.attachments = attachments.copied()
        return copy
    }

    var samples: [EncoderSamples] {
        attachments.all.compactMap {
            EncoderSamples($0.sampleBuffer, $0.startOfEncoderSampleIndex, $0.endOfEncoderSampleIndex)
        }
    }
}

/// The attachments of a pass by index; each is created when it is first read.
private struct SampleAttachments<Attachment: NSObject & NSCopying> {
    let make: () -> Attachment
    private var known: [Int: Attachment] = [:]

    init(_ make: @escaping () -> Attachment) { self.make = make }

    var all: [Attachment] { known.sorted { $0.key < $1.key }.map(\.value) }

    mutating func get(_ index: Int) -> Attachment {
        if let attachment = known[index] { return attachment }
        let fresh = make()
        known[index] = fresh
        return fresh
    }

    mutating func set(_ index: Int, _ attachment: Attachment?) { known[index] = attachment?.copy() as? Attachment }

    func copied() -> Self {
        var copy = Self(make)
        copy.known = known.compactMapValues { $0.copy() as? Attachment }
        return copy
    }
}
