// The BLAS functions that compute programs use to check their results, as plain loops. As in Apple's headers, pointers
// may be nil if there is no element.
import Foundation

public struct CBLAS_ORDER: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}
public let CblasRowMajor = CBLAS_ORDER(rawValue: 101)
public let CblasColMajor = CBLAS_ORDER(rawValue: 102)

public struct CBLAS_TRANSPOSE: RawRepresentable, Equatable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}
public let CblasNoTrans = CBLAS_TRANSPOSE(rawValue: 111)
public let CblasTrans = CBLAS_TRANSPOSE(rawValue: 112)
public let CblasConjTrans = CBLAS_TRANSPOSE(rawValue: 113)

/// A matrix as described by a call: element (row, column) after the requested transposition.
struct Operand<T> {
    let start: UnsafePointer<T>
    let rowStride: Int
    let columnStride: Int

    init(_ start: UnsafePointer<T>, _ leading: Int32, _ order: CBLAS_ORDER, _ transpose: CBLAS_TRANSPOSE) {
        self.start = start
        let isByRows = (order == CblasRowMajor) == (transpose == CblasNoTrans)
        (rowStride, columnStride) = isByRows ? (Int(leading), 1) : (1, Int(leading))
    }

    subscript(row: Int, column: Int) -> T { start[row * rowStride + column * columnStride] }
}

/// Returns the offset of a vector's element. With a negative stride, the first element is the last in memory.
func offset(_ index: Int, _ count: Int32, _ stride: Int32) -> Int {
    stride >= 0 ? index * Int(stride) : (index - Int(count) + 1) * Int(stride)
}

/// beta · c; if beta is 0, c is not read.
@inline(__always)
func scaled<T: FloatingPoint>(_ beta: T, _ c: T) -> T { beta == 0 ? 0 : beta * c }

public typealias MatrixMultiply<T> =
    @Sendable (
        CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, Int32, Int32, Int32, T, UnsafePointer<T>?, Int32,
        UnsafePointer<T>?, Int32, T, UnsafeMutablePointer<T>?, Int32
    ) -> Void
public typealias MatrixTimesVector<T> =
    @Sendable (
        CBLAS_ORDER, CBLAS_TRANSPOSE, Int32, Int32, T, UnsafePointer<T>?, Int32, UnsafePointer<T>?, Int32, T,
        UnsafeMutablePointer<T>?, Int32
    ) -> Void
public typealias VectorDot<T> = @Sendable (Int32, UnsafePointer<T>?, Int32, UnsafePointer<T>?, Int32) -> T
public typealias VectorSum<T> = @Sendable (Int32, UnsafePointer<T>?, Int32) -> T
public typealias VectorUpdate<T> =
    @Sendable (Int32, T, UnsafePointer<T>?, Int32, UnsafeMutablePointer<T>?, Int32) -> Void
public typealias VectorScale<T> = @Sendable (Int32, T, UnsafeMutablePointer<T>?, Int32) -> Void
public typealias VectorCopy<T> = @Sendable (Int32, UnsafePointer<T>?, Int32, UnsafeMutablePointer<T>?, Int32) -> Void

/// c[m × n] = alpha · a[m × k] · b[k × n] + beta · c
private func multiply<T: FloatingPoint>() -> MatrixMultiply<T> {
    { order, transposeA, transposeB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc in
        guard let a, let b, let c else { return }
        let left = Operand(a, lda, order, transposeA), right = Operand(b, ldb, order, transposeB)
        for row in 0..<Int(m) {
            for column in 0..<Int(n) {
                let sum = (0..<Int(k)).reduce(T(0)) { $0 + left[row, $1] * right[$1, column] }
                let at = order == CblasRowMajor ? row * Int(ldc) + column : column * Int(ldc) + row
                c[at] = alpha * sum + scaled(beta, c[at])
            }
        }
    }
}

/// y = alpha · a · x + beta · y, where a is m × n before its transposition
private func multiplyVector<T: FloatingPoint>() -> MatrixTimesVector<T> {
    { order, transpose, m, n, alpha, a, lda, x, incx, beta, y, incy in
        guard let a, let x, let y else { return }
        let matrix = Operand(a, lda, order, transpose)
        let (rows, columns) = transpose == CblasNoTrans ? (m, n) : (n, m)
        for row in 0..<Int(rows) {
            let sum = (0..<Int(columns)).reduce(T(0)) { $0 + matrix[row, $1] * x[offset($1, columns, incx)] }
            let at = offset(row, rows, incy)
            y[at] = alpha * sum + scaled(beta, y[at])
        }
    }
}

private func dot<T: FloatingPoint>() -> VectorDot<T> {
    { n, x, incx, y, incy in
        guard let x, let y else { return 0 }
        return (0..<max(Int(n), 0)).reduce(0) { $0 + x[offset($1, n, incx)] * y[offset($1, n, incy)] }
    }
}

private func sum<T: FloatingPoint>(_ term: @escaping @Sendable (T) -> T) -> VectorSum<T> {
    { n, x, incx in
        guard let x else { return 0 }
        return (0..<max(Int(n), 0)).reduce(0) { $0 + term(x[offset($1, n, incx)]) }
    }
}

/// √(Σ x²), of scaled numbers, whose squares neither overflow nor underflow.
private func norm<T: BinaryFloatingPoint>() -> VectorSum<T> {
    { n, x, incx in
        guard let x else { return 0 }
        let values = (0..<max(Int(n), 0)).map { x[offset($0, n, incx)] }
        let scale = T(sign: .plus, exponent: balancing(values.map(abs).max() ?? 0, 0), significand: 1)
        return values.reduce(0) { $0 + ($1 * scale) * ($1 * scale) }.squareRoot() / scale
    }
}

/// y += alpha · x
private func update<T: FloatingPoint>() -> VectorUpdate<T> {
    { n, alpha, x, incx, y, incy in
        guard let x, let y else { return }
        for i in 0..<max(Int(n), 0) { y[offset(i, n, incy)] += alpha * x[offset(i, n, incx)] }
    }
}

private func scale<T: FloatingPoint>() -> VectorScale<T> {
    { n, alpha, x, incx in
        guard let x else { return }
        for i in 0..<max(Int(n), 0) { x[offset(i, n, incx)] *= alpha }
    }
}

private func copy<T>() -> VectorCopy<T> {
    { n, x, incx, y, incy in
        guard let x, let y else { return }
        for i in 0..<max(Int(n), 0) { y[offset(i, n, incy)] = x[offset(i, n, incx)] }
    }
}

public let cblas_sgemm: MatrixMultiply<Float> = multiply()
public let cblas_dgemm: MatrixMultiply<Double> = multiply()
public let cblas_sgemv: MatrixTimesVector<Float> = multiplyVector()
public let cblas_dgemv: MatrixTimesVector<Double> = multiplyVector()
public let cblas_sdot: VectorDot<Float> = dot()
public let cblas_ddot: VectorDot<Double> = dot()
public let cblas_sasum: VectorSum<Float> = sum { abs($0) }
public let cblas_dasum: VectorSum<Double> = sum { abs($0) }
public let cblas_snrm2: VectorSum<Float> = norm()
public let cblas_dnrm2: VectorSum<Double> = norm()
public let cblas_saxpy: VectorUpdate<Float> = update()
public let cblas_daxpy: VectorUpdate<Double> = update()
public let cblas_sscal: VectorScale<Float> = scale()
public let cblas_dscal: VectorScale<Double> = scale()
public let cblas_scopy: VectorCopy<Float> = copy()
public let cblas_dcopy: VectorCopy<Double> = copy()

public typealias VectorScaledUpdate<T> =
    @Sendable (Int32, T, UnsafePointer<T>?, Int32, T, UnsafeMutablePointer<T>?, Int32) -> Void
public typealias VectorSwap<T> =
    @Sendable (Int32, UnsafeMutablePointer<T>?, Int32, UnsafeMutablePointer<T>?, Int32) -> Void
public typealias VectorArgument<T> = @Sendable (Int32, UnsafePointer<T>?, Int32) -> Int32

private func scaledUpdate<T: FloatingPoint>() -> VectorScaledUpdate<T> {
    { n, alpha, x, incx, beta, y, incy in
        guard let x, let y else { return }
        for i in 0..<max(Int(n), 0) {
            let at = offset(i, n, incy)
            y[at] = alpha * x[offset(i, n, incx)] + scaled(beta, y[at])
        }
    }
}

private func filled<T>() -> VectorScale<T> {
    { n, alpha, x, incx in
        guard let x else { return }
        for i in 0..<max(Int(n), 0) { x[offset(i, n, incx)] = alpha }
    }
}

private func swap<T>() -> VectorSwap<T> {
    { n, x, incx, y, incy in
        guard let x, let y else { return }
        for i in 0..<max(Int(n), 0) {
            let (first, second) = (offset(i, n, incx), offset(i, n, incy))
            (x[first], y[second]) = (y[second], x[first])
        }
    }
}

/// The first index of the largest magnitude; 0 for an empty vector.
private func largest<T: FloatingPoint>() -> VectorArgument<T> {
    { n, x, incx in
        guard let x else { return 0 }
        return Int32((0..<max(Int(n), 0)).reduce(0) { abs(x[$1 * Int(incx)]) > abs(x[$0 * Int(incx)]) ? $1 : $0 })
    }
}

/// y = alpha · x + beta · y
public let catlas_saxpby: VectorScaledUpdate<Float> = scaledUpdate()
public let catlas_daxpby: VectorScaledUpdate<Double> = scaledUpdate()
/// x = alpha
public let catlas_sset: VectorScale<Float> = filled()
public let catlas_dset: VectorScale<Double> = filled()
public let cblas_sswap: VectorSwap<Float> = swap()
public let cblas_dswap: VectorSwap<Double> = swap()
public let cblas_isamax: VectorArgument<Float> = largest()
public let cblas_idamax: VectorArgument<Double> = largest()
