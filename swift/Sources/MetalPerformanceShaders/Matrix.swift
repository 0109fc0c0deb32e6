import Metal

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

    public convenience init(dimensions rows: Int, columns: Int, rowBytes: Int, dataType: MPSDataType) {
        self.init(rows: rows, columns: columns, rowBytes: rowBytes, dataType: dataType)
    }

    public init(rows: Int, columns: Int, matrices: Int, rowBytes: Int, matrixBytes: Int, dataType: MPSDataType) {
        (self.rows, self.columns, self.matrices) = (rows, columns, matrices)
        (self.rowBytes, self.matrixBytes, self.dataType) = (rowBytes, matrixBytes, dataType)
    }

    /// Returns the recommended distance between rows in bytes: a multiple of 16.
    public class func rowBytes(forColumns columns: Int, dataType: MPSDataType) -> Int {
        (columns * dataType.size + 15) / 16 * 16
    }

    public class func rowBytes(fromColumns columns: Int, dataType: MPSDataType) -> Int {
        rowBytes(forColumns: columns, dataType: dataType)
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

    /// Creates a matrix in a new shared buffer.
    public convenience init(device: any MTLDevice, descriptor: MPSMatrixDescriptor) {
        let length = descriptor.matrices * descriptor.matrixBytes
        guard let buffer = device.makeBuffer(length: length) else {
            preconditionFailure("MPSMatrix: \(device.name) has no \(length) bytes for a matrix.")
        }
        self.init(buffer: buffer, descriptor: descriptor)
    }

    public init(buffer: any MTLBuffer, offset: Int, descriptor: MPSMatrixDescriptor) {
        (data, self.offset, rows, columns) = (buffer, offset, descriptor.rows, descriptor.columns)
        (matrices, dataType) = (descriptor.matrices, descriptor.dataType)
        (rowBytes, matrixBytes) = (descriptor.rowBytes, descriptor.matrixBytes)
    }

    /// Has no effect: the CPU and the device share memory.
    public func synchronize(on commandBuffer: any MTLCommandBuffer) {}

    public func resourceSize() -> Int { data.allocatedSize }
}

/// A matrix in memory of the device, for use within one command buffer.
public class MPSTemporaryMatrix: MPSMatrix {
    public var readCount = 1

    public convenience init(commandBuffer: any MTLCommandBuffer, descriptor matrixDescriptor: MPSMatrixDescriptor) {
        self.init(device: commandBuffer.device, descriptor: matrixDescriptor)
    }

    /// Has no effect: memory is allocated when the matrix is created.
    public class func prefetchStorage(
        with commandBuffer: any MTLCommandBuffer, matrixDescriptorList descriptorList: [MPSMatrixDescriptor]
    ) {}
}

/// A vector in a buffer: `vectors` vectors of `length` elements, which start `vectorBytes` apart.
public class MPSVectorDescriptor: NSObject {
    public var length: Int
    public let vectors: Int
    public var dataType: MPSDataType
    public let vectorBytes: Int

    public convenience init(length: Int, dataType: MPSDataType) {
        let bytes = MPSVectorDescriptor.vectorBytes(forLength: length, dataType: dataType)
        self.init(length: length, vectors: 1, vectorBytes: bytes, dataType: dataType)
    }

    public init(length: Int, vectors: Int, vectorBytes: Int, dataType: MPSDataType) {
        (self.length, self.vectors, self.vectorBytes, self.dataType) = (length, vectors, vectorBytes, dataType)
    }

    /// Returns the recommended distance between vectors in bytes: a multiple of 16.
    public class func vectorBytes(forLength length: Int, dataType: MPSDataType) -> Int {
        (length * dataType.size + 15) / 16 * 16
    }
}

/// A buffer that holds vectors.
public class MPSVector: NSObject {
    public let data: any MTLBuffer
    public let offset: Int
    public let length: Int
    public let vectors: Int
    public let dataType: MPSDataType
    public let vectorBytes: Int

    public var device: any MTLDevice { data.device }

    public convenience init(buffer: any MTLBuffer, descriptor: MPSVectorDescriptor) {
        self.init(buffer: buffer, offset: 0, descriptor: descriptor)
    }

    /// Creates a vector in a new shared buffer.
    public convenience init(device: any MTLDevice, descriptor: MPSVectorDescriptor) {
        let length = descriptor.vectors * descriptor.vectorBytes
        guard let buffer = device.makeBuffer(length: length) else {
            preconditionFailure("MPSVector: \(device.name) has no \(length) bytes for a vector.")
        }
        self.init(buffer: buffer, descriptor: descriptor)
    }

    public init(buffer: any MTLBuffer, offset: Int, descriptor: MPSVectorDescriptor) {
        (data, self.offset, length, vectors) = (buffer, offset, descriptor.length, descriptor.vectors)
        (dataType, vectorBytes) = (descriptor.dataType, descriptor.vectorBytes)
    }

    /// Has no effect: the CPU and the device share memory.
    public func synchronize(on commandBuffer: any MTLCommandBuffer) {}

    public func resourceSize() -> Int { data.allocatedSize }
}
