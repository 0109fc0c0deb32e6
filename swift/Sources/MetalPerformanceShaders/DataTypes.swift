// Types of the elements of matrices, vectors and images.
@_exported import Metal

public struct MPSDataType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    // A number of bits, and flags for floating point, signed integers, complex numbers and others.
    public static let invalid = MPSDataType(rawValue: 0)
    public static let floatBit = MPSDataType(rawValue: 0x1000_0000)
    public static let float32 = MPSDataType(rawValue: 0x1000_0020)
    public static let float16 = MPSDataType(rawValue: 0x1000_0010)
    public static let complexBit = MPSDataType(rawValue: 0x0100_0000)
    public static let complexFloat32 = MPSDataType(rawValue: 0x1100_0040)
    public static let complexFloat16 = MPSDataType(rawValue: 0x1100_0020)
    public static let signedBit = MPSDataType(rawValue: 0x2000_0000)
    public static let int8 = MPSDataType(rawValue: 0x2000_0008)
    public static let int16 = MPSDataType(rawValue: 0x2000_0010)
    public static let int32 = MPSDataType(rawValue: 0x2000_0020)
    public static let int64 = MPSDataType(rawValue: 0x2000_0040)
    public static let uInt8 = MPSDataType(rawValue: 8)
    public static let uInt16 = MPSDataType(rawValue: 16)
    public static let uInt32 = MPSDataType(rawValue: 32)
    public static let uInt64 = MPSDataType(rawValue: 64)
    public static let alternateEncodingBit = MPSDataType(rawValue: 0x8000_0000)
    public static let bool = MPSDataType(rawValue: 0x8000_0008)
    public static let bFloat16 = MPSDataType(rawValue: 0x9000_0010)
    public static let normalizedBit = MPSDataType(rawValue: 0x4000_0000)
    public static let unorm1 = MPSDataType(rawValue: 0x4000_0001)
    public static let unorm8 = MPSDataType(rawValue: 0x4000_0008)
}

extension MPSDataType {
    /// The size of an element in bytes: the lower 16 bits of the raw value are its bits.
    var size: Int { (Int(rawValue & 0xFFFF) + 7) / 8 }

    /// The name of the type in Metal Shading Language, if kernels compute with it.
    var kernelName: String? {
        switch self {
        case .float32: return "float"
        case .float16: return "half"
        default: return nil
        }
    }
}
