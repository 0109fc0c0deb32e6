import MetalRuntime

/// The largest number of dimensions of a tensor.
public var MTL_TENSOR_MAX_RANK: Int32 { Int32(MRT_MAX_TENSOR_RANK) }

public enum MTLTensorDataType: Int, Sendable {
    case none = 0
    case float32 = 3
    case float16 = 16
    case bfloat16 = 121
    case int8 = 45
    case uint8 = 49
    case int16 = 37
    case uint16 = 41
    case int32 = 29
    case uint32 = 33

    /// The size of an element in bytes.
    var size: Int {
        switch self {
        case .none: return 0
        case .float32, .int32, .uint32: return 4
        case .float16, .bfloat16, .int16, .uint16: return 2
        case .int8, .uint8: return 1
        }
    }
}

public struct MTLTensorUsage: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var compute: MTLTensorUsage { MTLTensorUsage(rawValue: 1) }
    public static var render: MTLTensorUsage { MTLTensorUsage(rawValue: 2) }
    public static var machineLearning: MTLTensorUsage { MTLTensorUsage(rawValue: 4) }
}

/// Sizes, strides or positions, one per dimension. Dimension 0 is the innermost.
public class MTLTensorExtents: NSObject, NSCopying {
    public let extents: [Int]

    public override init() { extents = [] }

    public init?(_ values: [Int]) {
        guard values.count <= Int(MTL_TENSOR_MAX_RANK) else { return nil }
        extents = values
    }

    /// The Objective-C form, which Swift imports with two underscores.
    public convenience init?(__rank rank: Int, values: UnsafePointer<Int>?) {
        guard rank >= 0, rank == 0 || values != nil else { return nil }
        self.init(Array(UnsafeBufferPointer(start: values, count: rank)))
    }

    public var rank: Int { extents.count }

    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override func isEqual(_ object: Any?) -> Bool { (object as? MTLTensorExtents)?.extents == extents }

    public override var hash: Int { extents.hashValue }

    public override var description: String { "\(extents)" }
}

public class MTLTensorDescriptor: NSObject, NSCopying {
    @NSCopying public var dimensions: MTLTensorExtents = MTLTensorExtents([1])!
    @NSCopying public var strides: MTLTensorExtents?
    public var dataType = MTLTensorDataType.float32
    public var usage: MTLTensorUsage = [.render, .compute]
    public var resourceOptions: MTLResourceOptions = []

    public var cpuCacheMode: MTLCPUCacheMode {
        get { resourceOptions.cpuCacheMode }
        set { resourceOptions = MTLResourceOptions(newValue, storageMode, hazardTrackingMode) }
    }
    public var storageMode: MTLStorageMode {
        get { resourceOptions.storageMode }
        set { resourceOptions = MTLResourceOptions(cpuCacheMode, newValue, hazardTrackingMode) }
    }
    public var hazardTrackingMode: MTLHazardTrackingMode {
        get { resourceOptions.hazardTrackingMode }
        set { resourceOptions = MTLResourceOptions(cpuCacheMode, storageMode, newValue) }
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLTensorDescriptor()
        copy.dimensions = dimensions
        copy.strides = strides
        copy.dataType = dataType
        copy.usage = usage
        copy.resourceOptions = resourceOptions
        return copy
    }
}

public let MTLTensorDomain = "MTLTensorDomain"

public struct MTLTensorError: _BridgedStoredNSError, Sendable {
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLTensorError

        case none = 0
        case internalError = 1
        case invalidDescriptor = 2
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLTensorDomain }
    public static var none: Code { .none }
    public static var internalError: Code { .internalError }
    public static var invalidDescriptor: Code { .invalidDescriptor }
}

public protocol MTLTensor: MTLResource, Sendable {
    var gpuResourceID: MTLResourceID { get }
    var buffer: (any MTLBuffer)? { get }
    var bufferOffset: Int { get }
    var strides: MTLTensorExtents? { get }
    var dimensions: MTLTensorExtents { get }
    var dataType: MTLTensorDataType { get }
    var usage: MTLTensorUsage { get }
    func replace(
        sliceOrigin: MTLTensorExtents, sliceDimensions: MTLTensorExtents, withBytes bytes: UnsafeRawPointer,
        strides: MTLTensorExtents)
    func getBytes(
        _ bytes: UnsafeMutableRawPointer, strides: MTLTensorExtents, sliceOrigin: MTLTensorExtents,
        sliceDimensions: MTLTensorExtents)
}
