import Metal

/// A kernel with one source matrix. Origins are (row, column, 0), and a batch is a range of the matrices.
public class MPSMatrixUnaryKernel: MPSKernel {
    public var sourceMatrixOrigin = MTLOrigin()
    public var resultMatrixOrigin = MTLOrigin()
    public var batchStart = 0
    public var batchSize = Int.max
}

/// A kernel with two source matrices. Origins are (row, column, 0), and a batch is a range of the matrices.
public class MPSMatrixBinaryKernel: MPSKernel {
    public var primarySourceMatrixOrigin = MTLOrigin()
    public var secondarySourceMatrixOrigin = MTLOrigin()
    public var resultMatrixOrigin = MTLOrigin()
    public var batchStart = 0
    public var batchSize = Int.max
}

/// Computes result = alpha · op(left) · op(right) + beta · result in float32, where op may transpose a matrix. With
/// `beta` 0, the result is not read.
public class MPSMatrixMultiplication: MPSKernel {
    public var leftMatrixOrigin = MTLOrigin()
    public var rightMatrixOrigin = MTLOrigin()
    public var resultMatrixOrigin = MTLOrigin()
    public var batchStart = 0
    public var batchSize = Int.max
    private let product: Product

    public init(
        device: any MTLDevice, transposeLeft: Bool, transposeRight: Bool, resultRows: Int, resultColumns: Int,
        interiorColumns: Int, alpha: Double, beta: Double
    ) {
        product = Product(
            rows: UInt32(resultRows), columns: UInt32(resultColumns), interior: UInt32(interiorColumns),
            alpha: Float(alpha), beta: Float(beta), transposeLeft: transposeLeft ? 1 : 0,
            transposeRight: transposeRight ? 1 : 0)
        super.init(device: device)
    }

    public convenience init(device: any MTLDevice, resultRows: Int, resultColumns: Int, interiorColumns: Int) {
        self.init(
            device: device, transposeLeft: false, transposeRight: false, resultRows: resultRows,
            resultColumns: resultColumns, interiorColumns: interiorColumns, alpha: 1, beta: 0)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, leftMatrix: MPSMatrix, rightMatrix: MPSMatrix, resultMatrix: MPSMatrix
    ) {
        multiply(
            product,
            [
                MatrixPart(leftMatrix, leftMatrixOrigin, batchStart),
                MatrixPart(rightMatrix, rightMatrixOrigin, batchStart),
                MatrixPart(resultMatrix, resultMatrixOrigin, batchStart),
            ], batchSize: batchSize, to: commandBuffer)
    }
}

/// Computes result = alpha · op(matrix) · vector + beta · result in float32, where op may transpose the matrix. With
/// `beta` 0, the result is not read.
public class MPSMatrixVectorMultiplication: MPSMatrixBinaryKernel {
    private let product: Product

    public init(device: any MTLDevice, transpose: Bool, rows: Int, columns: Int, alpha: Double, beta: Double) {
        product = Product(
            rows: UInt32(rows), columns: 1, interior: UInt32(columns), alpha: Float(alpha), beta: Float(beta),
            transposeLeft: transpose ? 1 : 0, transposeRight: 0)
        super.init(device: device)
    }

    public convenience init(device: any MTLDevice, rows: Int, columns: Int) {
        self.init(device: device, transpose: false, rows: rows, columns: columns, alpha: 1, beta: 0)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, inputMatrix: MPSMatrix, inputVector: MPSVector, resultVector: MPSVector
    ) {
        multiply(
            product,
            [
                MatrixPart(inputMatrix, primarySourceMatrixOrigin, batchStart),
                MatrixPart(inputVector, secondarySourceMatrixOrigin, batchStart),
                MatrixPart(resultVector, resultMatrixOrigin, batchStart),
            ], batchSize: batchSize, to: commandBuffer)
    }
}

/// The parameters of a product, as its kernel reads them.
private struct Product {
    var rows, columns, interior: UInt32
    var leftRow: UInt32 = 0
    var rightRow: UInt32 = 0
    var resultRow: UInt32 = 0
    var leftMatrix: UInt64 = 0
    var rightMatrix: UInt64 = 0
    var resultMatrix: UInt64 = 0
    var alpha, beta: Float
    var transposeLeft, transposeRight: UInt32
}

extension MPSKernel {
    /// Encodes a product of the first two matrices into the third.
    fileprivate func multiply(
        _ product: Product, _ parts: [MatrixPart], batchSize: Int, to commandBuffer: any MTLCommandBuffer
    ) {
        var product = product
        let (rows, columns, interior) = (Int(product.rows), Int(product.columns), Int(product.interior))
        let (left, right, result) = (parts[0], parts[1], parts[2])
        require(left, "left matrix", product.transposeLeft == 0 ? (rows, interior) : (interior, rows))
        require(right, "right matrix", product.transposeRight == 0 ? (interior, columns) : (columns, interior))
        require(result, "result matrix", (rows, columns))
        (product.leftRow, product.rightRow, product.resultRow) =
            (left.rowStride, right.rowStride, result.rowStride)
        (product.leftMatrix, product.rightMatrix, product.resultMatrix) =
            (left.matrixStride, right.matrixStride, result.matrixStride)
        let batch = min(batchSize, parts.map(\.matrices).min() ?? 0)
        dispatch(
            "multiply", types: ["Left": left.type, "Right": right.type, "Result": result.type], to: commandBuffer,
            buffers: parts.map { ($0.buffer, $0.offset) }, parameters: product,
            threads: MTLSizeMake(columns, rows, batch))
    }

    func require(_ part: MatrixPart, _ name: String, _ size: (Int, Int)) {
        check(
            part.rows >= size.0 && part.columns >= size.1,
            "the \(name) has \(part.rows) x \(part.columns) elements from its origin; "
                + "expected at least \(size.0) x \(size.1).")
        check(part.isAligned, "the rows of the \(name) start between elements; use a multiple of the element's size.")
    }
}

/// The part of a matrix or vector that starts at an origin. A vector is a matrix of one column.
struct MatrixPart {
    let buffer: any MTLBuffer
    let offset, rows, columns, matrices: Int
    let rowStride: UInt32
    let matrixStride: UInt64
    let type: MPSDataType
    let isAligned: Bool

    init(_ matrix: MPSMatrix, _ origin: MTLOrigin, _ batchStart: Int) {
        let size = max(matrix.dataType.size, 1)
        buffer = matrix.data
        offset = matrix.offset + batchStart * matrix.matrixBytes + origin.x * matrix.rowBytes + origin.y * size
        (rows, columns) = (matrix.rows - origin.x, matrix.columns - origin.y)
        (matrices, type) = (matrix.matrices - batchStart, matrix.dataType)
        (rowStride, matrixStride) = (UInt32(matrix.rowBytes / size), UInt64(matrix.matrixBytes / size))
        isAligned = matrix.rowBytes % size == 0 && matrix.matrixBytes % size == 0
    }

    init(_ vector: MPSVector, _ origin: MTLOrigin, _ batchStart: Int) {
        let size = max(vector.dataType.size, 1)
        buffer = vector.data
        offset = vector.offset + batchStart * vector.vectorBytes + origin.x * size
        (rows, columns) = (vector.length - origin.x, 1)
        (matrices, type) = (vector.vectors - batchStart, vector.dataType)
        (rowStride, matrixStride) = (1, UInt64(vector.vectorBytes / size))
        isAligned = vector.vectorBytes % size == 0
    }
}
