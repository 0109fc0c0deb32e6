/// The common part of all matrices: n columns of n elements.
public protocol SquareMatrix: Equatable, Sendable {
    associatedtype Column: SIMD where Column.Scalar: BinaryFloatingPoint & Sendable
    static var size: Int { get }
    init()
    subscript(column: Int) -> Column { get set }
}

extension SquareMatrix {
    public typealias Scalar = Column.Scalar

    /// A matrix with the scalar on the diagonal, 0 elsewhere.
    public init(_ scalar: Scalar) { self.init(diagonal: Column(repeating: scalar)) }

    public init(diagonal: Column) {
        self.init()
        for i in 0..<Self.size { self[i][i] = diagonal[i] }
    }

    public init(_ columns: [Column]) {
        precondition(columns.count == Self.size, "expected \(Self.size) columns, got \(columns.count)")
        self.init()
        for i in 0..<Self.size { self[i] = columns[i] }
    }

    public init(rows: [Column]) { self = Self(rows).transpose }

    public subscript(column: Int, row: Int) -> Scalar {
        get { self[column][row] }
        set { self[column][row] = newValue }
    }

    public var transpose: Self {
        var result = Self()
        for column in 0..<Self.size {
            for row in 0..<Self.size { result[column][row] = self[row][column] }
        }
        return result
    }

    public static func == (left: Self, right: Self) -> Bool { (0..<size).allSatisfy { left[$0] == right[$0] } }

    private func map(_ body: (Int) -> Column) -> Self {
        var result = Self()
        for i in 0..<Self.size { result[i] = body(i) }
        return result
    }

    public static prefix func - (matrix: Self) -> Self { matrix.map { -matrix[$0] } }
    public static func + (left: Self, right: Self) -> Self { left.map { left[$0] + right[$0] } }
    public static func - (left: Self, right: Self) -> Self { left.map { left[$0] - right[$0] } }
    public static func * (scalar: Scalar, matrix: Self) -> Self { matrix.map { matrix[$0] * scalar } }
    public static func * (matrix: Self, scalar: Scalar) -> Self { matrix.map { matrix[$0] * scalar } }
    public static func += (left: inout Self, right: Self) { left = left + right }
    public static func -= (left: inout Self, right: Self) { left = left - right }
    public static func *= (left: inout Self, right: Self) { left = left * right }
    public static func *= (left: inout Self, scalar: Scalar) { left = left * scalar }

    /// Σ columns · elements.
    public static func * (matrix: Self, vector: Column) -> Column {
        (0..<size).reduce(Column.zero) { $0 + matrix[$1] * vector[$1] }
    }

    public static func * (vector: Column, matrix: Self) -> Column {
        var result = Column.zero
        for column in 0..<size { result[column] = (vector * matrix[column]).sum() }
        return result
    }

    public static func * (left: Self, right: Self) -> Self { right.map { left * right[$0] } }

    /// The determinant, computed by Gaussian elimination with pivoting.
    public var determinant: Scalar { eliminated().determinant }

    /// The inverse. Its elements are not finite if the determinant is 0.
    public var inverse: Self { eliminated().inverse }

    private func eliminated() -> (determinant: Scalar, inverse: Self) {
        var left = self, right = Self(1), determinant: Scalar = 1
        for step in 0..<Self.size {
            let pivot = (step..<Self.size).max { left[step][$0].magnitude < left[step][$1].magnitude } ?? step
            if pivot != step {
                left.swapRows(step, pivot)
                right.swapRows(step, pivot)
                determinant = -determinant
            }
            let value = left[step][step]
            determinant *= value
            left.scaleRow(step, by: 1 / value)
            right.scaleRow(step, by: 1 / value)
            for row in 0..<Self.size where row != step {
                let factor = left[step][row]
                left.subtract(factor, timesRow: step, from: row)
                right.subtract(factor, timesRow: step, from: row)
            }
        }
        return (determinant, right)
    }

    private mutating func swapRows(_ a: Int, _ b: Int) {
        for column in 0..<Self.size { (self[column][a], self[column][b]) = (self[column][b], self[column][a]) }
    }

    private mutating func scaleRow(_ row: Int, by factor: Scalar) {
        for column in 0..<Self.size { self[column][row] *= factor }
    }

    private mutating func subtract(_ factor: Scalar, timesRow source: Int, from row: Int) {
        for column in 0..<Self.size { self[column][row] -= factor * self[column][source] }
    }
}

extension SIMD where Scalar: FloatingPoint {
    static var zero: Self { Self() }
}

public func simd_mul<Matrix: SquareMatrix>(_ x: Matrix, _ y: Matrix) -> Matrix { x * y }
public func simd_mul<Matrix: SquareMatrix>(_ x: Matrix, _ y: Matrix.Column) -> Matrix.Column { x * y }
public func simd_mul<Matrix: SquareMatrix>(_ x: Matrix.Column, _ y: Matrix) -> Matrix.Column { x * y }
public func matrix_multiply<Matrix: SquareMatrix>(_ x: Matrix, _ y: Matrix) -> Matrix { x * y }
public func matrix_multiply<Matrix: SquareMatrix>(_ x: Matrix, _ y: Matrix.Column) -> Matrix.Column { x * y }
public func simd_transpose<Matrix: SquareMatrix>(_ x: Matrix) -> Matrix { x.transpose }
public func simd_inverse<Matrix: SquareMatrix>(_ x: Matrix) -> Matrix { x.inverse }
public func simd_determinant<Matrix: SquareMatrix>(_ x: Matrix) -> Matrix.Scalar { x.determinant }
