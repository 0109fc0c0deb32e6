// MetalPerformanceShaders has only the types of data here: they describe buffers, and compute nothing. No kernel
// exists.
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

/// Always false: the device has no kernels of MetalPerformanceShaders.
public func MPSSupportsMTLDevice(_ device: (any MTLDevice)?) -> Bool { false }

/// A matrix in a buffer: `matrices` matrices of `rows` rows, which start `rowBytes` apart.
public class MPSMatrixDescriptor: NSObject {
    public var rows: Int
    public var columns: Int
    public let matrices: Int
    public var dataType: MPSDataType
    public var rowBytes: Int
    public let matrixBytes: Int

    public convenience init(rows: Int, columns: Int, rowBytes: Int, dataType: MPSDataType) {
        self.init(
            rows: rows, columns: columns, matrices: 1, rowBytes: rowBytes, matrixBytes: rows * rowBytes,
            dataType: dataType)
    }

    public init(rows: Int, columns: Int, matrices: Int, rowBytes: Int, matrixBytes: Int, dataType: MPSDataType) {
        (self.rows, self.columns, self.matrices) = (rows, columns, matrices)
        (self.rowBytes, self.matrixBytes, self.dataType) = (rowBytes, matrixBytes, dataType)
    }
}

/// A buffer that holds matrices.
public class MPSMatrix: NSObject {
    public let data: any MTLBuffer
    public let offset: Int
    public let rows: Int
    public let columns: Int
    public let matrices: Int
    public let dataType: MPSDataType
    public let rowBytes: Int
    public let matrixBytes: Int

    public var device: any MTLDevice { data.device }

    public convenience init(buffer: any MTLBuffer, descriptor: MPSMatrixDescriptor) {
        self.init(buffer: buffer, offset: 0, descriptor: descriptor)
    }

    public init(buffer: any MTLBuffer, offset: Int, descriptor: MPSMatrixDescriptor) {
        (data, self.offset, rows, columns) = (buffer, offset, descriptor.rows, descriptor.columns)
        (matrices, dataType) = (descriptor.matrices, descriptor.dataType)
        (rowBytes, matrixBytes) = (descriptor.rowBytes, descriptor.matrixBytes)
    }
}
