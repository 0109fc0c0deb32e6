// vDSP's operations on row-major matrices, for float, and for double if the name ends in D.

public typealias MatrixProduct<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length,
        vDSP_Length, vDSP_Length
    ) -> Void
public typealias MatrixTranspose<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length, vDSP_Length
    ) -> Void
public typealias MatrixMove<T> =
    @Sendable (
        UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Length, vDSP_Length, vDSP_Length, vDSP_Length
    ) -> Void

private func product<T: FloatingPoint>() -> MatrixProduct<T> {
    { a, aStride, b, bStride, c, cStride, m, n, p in
        let (rows, columns, inner) = (Int(m), Int(n), Int(p))
        for i in 0..<rows {
            for j in 0..<columns {
                c[(i * columns + j) * cStride] = (0..<inner).reduce(0) {
                    $0 + a[(i * inner + $1) * aStride] * b[($1 * columns + j) * bStride]
                }
            }
        }
    }
}

private func transpose<T>() -> MatrixTranspose<T> {
    { a, aStride, c, cStride, m, n in
        for i in 0..<Int(m) {
            for j in 0..<Int(n) { c[(i * Int(n) + j) * cStride] = a[(j * Int(m) + i) * aStride] }
        }
    }
}

private func move<T>() -> MatrixMove<T> {
    { a, c, columns, rows, aRow, cRow in
        for row in 0..<Int(rows) {
            for column in 0..<Int(columns) { c[row * Int(cRow) + column] = a[row * Int(aRow) + column] }
        }
    }
}

/// c[m × n] = a[m × p] · b[p × n]
public let vDSP_mmul: MatrixProduct<Float> = product()
public let vDSP_mmulD: MatrixProduct<Double> = product()
/// c[m × n] is the transpose of a[n × m].
public let vDSP_mtrans: MatrixTranspose<Float> = transpose()
public let vDSP_mtransD: MatrixTranspose<Double> = transpose()
/// Copies columns × rows elements between matrices. The last two arguments are the distances between rows of a and of
/// c.
public let vDSP_mmov: MatrixMove<Float> = move()
public let vDSP_mmovD: MatrixMove<Double> = move()
