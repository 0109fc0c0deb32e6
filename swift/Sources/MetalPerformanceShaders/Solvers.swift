import Metal

/// The status of a decomposition, which it writes to its status buffer as an Int32 for each matrix.
public enum MPSMatrixDecompositionStatus: Int32, Sendable {
    case success = 0
    case failure = -1
    case singular = -2
    case nonPositiveDefinite = -3
}

/// Computes the Cholesky factor of symmetric matrices: L with source = L Lᵀ, or U with source = Uᵀ U. Only that
/// triangle is read and written.
public class MPSMatrixDecompositionCholesky: MPSMatrixUnaryKernel {
    private let isLower: Bool
    private let order: Int

    public init(device: any MTLDevice, lower: Bool, order: Int) {
        (isLower, self.order) = (lower, order)
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceMatrix: MPSMatrix, resultMatrix: MPSMatrix,
        status: (any MTLBuffer)?
    ) {
        let source = MatrixPart(sourceMatrix, sourceMatrixOrigin, batchStart)
        let result = MatrixPart(resultMatrix, resultMatrixOrigin, batchStart)
        require(source, "source matrix", (order, order))
        require(result, "result matrix", (order, order))
        let factor = Cholesky(
            order: UInt32(order), sourceRow: source.rowStride, resultRow: result.rowStride, isLower: isLower ? 1 : 0,
            hasStatus: status == nil ? 0 : 1, sourceMatrix: source.matrixStride, resultMatrix: result.matrixStride)
        dispatch(
            "cholesky", types: ["Source": source.type, "Result": result.type], to: commandBuffer,
            buffers: [(source.buffer, source.offset), (result.buffer, result.offset), (status ?? result.buffer, 0)],
            parameters: factor, threads: MTLSizeMake(min(batchSize, source.matrices, result.matrices), 1, 1))
    }
}

private struct Cholesky {
    var order, sourceRow, resultRow, isLower, hasStatus: UInt32
    var sourceMatrix, resultMatrix: UInt64
}

/// Computes P source = L U with partial pivoting. The result holds U, and L without its diagonal of ones. The pivots
/// are UInt32: step k exchanged the rows k and `pivotIndices[k]`.
public class MPSMatrixDecompositionLU: MPSMatrixUnaryKernel {
    private let rows: Int
    private let columns: Int

    public init(device: any MTLDevice, rows: Int, columns: Int) {
        (self.rows, self.columns) = (rows, columns)
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceMatrix: MPSMatrix, resultMatrix: MPSMatrix,
        pivotIndices: MPSMatrix, info status: (any MTLBuffer)?
    ) {
        let source = MatrixPart(sourceMatrix, sourceMatrixOrigin, batchStart)
        let result = MatrixPart(resultMatrix, resultMatrixOrigin, batchStart)
        let pivots = pivotPart(pivotIndices, min(rows, columns), batchStart)
        require(source, "source matrix", (rows, columns))
        require(result, "result matrix", (rows, columns))
        let factor = LowerUpper(
            rows: UInt32(rows), columns: UInt32(columns), sourceRow: source.rowStride, resultRow: result.rowStride,
            pivotMatrix: UInt32(pivots.matrixStride), hasStatus: status == nil ? 0 : 1,
            sourceMatrix: source.matrixStride, resultMatrix: result.matrixStride)
        dispatch(
            "lu", types: ["Source": source.type, "Result": result.type], to: commandBuffer,
            buffers: [
                (source.buffer, source.offset), (result.buffer, result.offset), (pivots.buffer, pivots.offset),
                (status ?? pivots.buffer, 0),
            ], parameters: factor, threads: MTLSizeMake(min(batchSize, source.matrices, result.matrices), 1, 1))
    }
}

private struct LowerUpper {
    var rows, columns, sourceRow, resultRow, pivotMatrix, hasStatus: UInt32
    var sourceMatrix, resultMatrix: UInt64
}

/// Solves op(source) · X = alpha · B for a triangular matrix, or X · op(source) = alpha · B with `right`.
public class MPSMatrixSolveTriangular: MPSMatrixBinaryKernel {
    private let system: TriangularSystem
    private let count: Int

    public init(
        device: any MTLDevice, right: Bool, upper: Bool, transpose: Bool, unit: Bool, order: Int,
        numberOfRightHandSides: Int, alpha: Double
    ) {
        system = TriangularSystem(
            order: order, isUpper: upper, isTransposed: transpose, isUnit: unit, isRight: right, alpha: Float(alpha))
        count = numberOfRightHandSides
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceMatrix: MPSMatrix, rightHandSideMatrix: MPSMatrix,
        solutionMatrix: MPSMatrix
    ) {
        solve(system, parts(sourceMatrix, rightHandSideMatrix, solutionMatrix), count, batchSize, to: commandBuffer)
    }
}

/// Solves A · X = B, where the source is the Cholesky factor of A.
public class MPSMatrixSolveCholesky: MPSMatrixBinaryKernel {
    private let isUpper: Bool
    private let order: Int
    private let count: Int

    public init(device: any MTLDevice, upper: Bool, order: Int, numberOfRightHandSides: Int) {
        (isUpper, self.order, count) = (upper, order, numberOfRightHandSides)
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceMatrix: MPSMatrix, rightHandSideMatrix: MPSMatrix,
        solutionMatrix: MPSMatrix
    ) {
        let parts = self.parts(sourceMatrix, rightHandSideMatrix, solutionMatrix)
        let first = TriangularSystem(order: order, isUpper: isUpper, isTransposed: isUpper)
        let second = TriangularSystem(order: order, isUpper: isUpper, isTransposed: !isUpper)
        solve(first, parts, count, batchSize, to: commandBuffer)
        solve(second, [parts[0], parts[2], parts[2]], count, batchSize, to: commandBuffer)
    }
}

/// Solves op(A) · X = B, where the source and the pivots are those of MPSMatrixDecompositionLU.
public class MPSMatrixSolveLU: MPSMatrixBinaryKernel {
    private let isTransposed: Bool
    private let order: Int
    private let count: Int

    public init(device: any MTLDevice, transpose: Bool, order: Int, numberOfRightHandSides: Int) {
        (isTransposed, self.order, count) = (transpose, order, numberOfRightHandSides)
        super.init(device: device)
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceMatrix: MPSMatrix, rightHandSideMatrix: MPSMatrix,
        pivotIndices: MPSMatrix, solutionMatrix: MPSMatrix
    ) {
        let parts = self.parts(sourceMatrix, rightHandSideMatrix, solutionMatrix)
        let pivots = pivotPart(pivotIndices, order, batchStart)
        var lower = TriangularSystem(order: order, isUpper: false, isTransposed: isTransposed, isUnit: true)
        var upper = TriangularSystem(order: order, isUpper: true, isTransposed: isTransposed)
        // P A = L U, so Aᵀ = Uᵀ Lᵀ P: its solution exchanges rows last.
        lower.exchange = (pivots, isTransposed ? 2 : 1)
        if isTransposed { swap(&lower, &upper) }
        solve(lower, parts, count, batchSize, to: commandBuffer)
        solve(upper, [parts[0], parts[2], parts[2]], count, batchSize, to: commandBuffer)
    }
}

/// A system of equations with a triangular matrix.
private struct TriangularSystem {
    var order: Int
    var isUpper: Bool
    var isTransposed: Bool
    var isUnit = false
    var isRight = false
    var alpha: Float = 1
    /// Pivots, and whether their rows are exchanged first (1) or last (2).
    var exchange: (MatrixPart, UInt32)?
}

private struct Solve {
    var order, matrixRow, rightRow, rightColumn, solutionRow, solutionColumn: UInt32
    var isUpper, isTransposed, isUnit, pivotMatrix, pivots: UInt32
    var alpha: Float
    var matrixMatrix, rightMatrix, solutionMatrix: UInt64
}

extension MPSMatrixBinaryKernel {
    fileprivate func parts(_ source: MPSMatrix, _ right: MPSMatrix, _ solution: MPSMatrix) -> [MatrixPart] {
        [
            MatrixPart(source, primarySourceMatrixOrigin, batchStart),
            MatrixPart(right, secondarySourceMatrixOrigin, batchStart),
            MatrixPart(solution, resultMatrixOrigin, batchStart),
        ]
    }

    /// X · op(A) = B is op(A)ᵀ · Xᵀ = Bᵀ, so rows and columns of B and X change places.
    fileprivate func solve(
        _ system: TriangularSystem, _ parts: [MatrixPart], _ count: Int, _ batchSize: Int,
        to commandBuffer: any MTLCommandBuffer
    ) {
        let (matrix, right, solution) = (parts[0], parts[1], parts[2])
        let size = system.isRight ? (count, system.order) : (system.order, count)
        require(matrix, "source matrix", (system.order, system.order))
        require(right, "right-hand side", size)
        require(solution, "solution", size)
        let given = Solve(
            order: UInt32(system.order), matrixRow: matrix.rowStride, rightRow: system.isRight ? 1 : right.rowStride,
            rightColumn: system.isRight ? right.rowStride : 1, solutionRow: system.isRight ? 1 : solution.rowStride,
            solutionColumn: system.isRight ? solution.rowStride : 1, isUpper: system.isUpper ? 1 : 0,
            isTransposed: system.isTransposed != system.isRight ? 1 : 0, isUnit: system.isUnit ? 1 : 0,
            pivotMatrix: UInt32(system.exchange?.0.matrixStride ?? 0), pivots: system.exchange?.1 ?? 0,
            alpha: system.alpha, matrixMatrix: matrix.matrixStride, rightMatrix: right.matrixStride,
            solutionMatrix: solution.matrixStride)
        let pivots = system.exchange?.0 ?? matrix
        dispatch(
            "solve", types: ["Source": matrix.type, "Right": right.type, "Result": solution.type], to: commandBuffer,
            buffers: [matrix, right, pivots, solution].map { ($0.buffer, $0.offset) }, parameters: given,
            threads: MTLSizeMake(count, 1, min(batchSize, parts.map(\.matrices).min() ?? 0)))
    }
}

extension MPSKernel {
    fileprivate func pivotPart(_ pivots: MPSMatrix, _ count: Int, _ batchStart: Int) -> MatrixPart {
        check(pivots.dataType == .uInt32, "the pivots have another data type; expected uInt32.")
        let part = MatrixPart(pivots, MTLOrigin(), batchStart)
        require(part, "matrix of pivots", (1, count))
        return part
    }
}
