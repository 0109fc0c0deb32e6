// vDSP's combinations of three and four strided vectors, and running and sliding sums: for float, and for double if the
// name ends in D.

public typealias QuaternaryVector<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>,
        vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias BinaryVectorByScalar<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafeMutablePointer<T>,
        vDSP_Stride, vDSP_Length
    ) -> Void
public typealias SlidingVector<T> =
    @Sendable (UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length, vDSP_Length) -> Void

private func ternary<T>(_ body: @escaping @Sendable (T, T, T) -> T) -> TernaryVector<T> {
    { a, aStride, b, bStride, c, cStride, d, dStride, count in
        for i in 0..<Int(count) { d[i * dStride] = body(a[i * aStride], b[i * bStride], c[i * cStride]) }
    }
}

private func quaternary<T>(_ body: @escaping @Sendable (T, T, T, T) -> T) -> QuaternaryVector<T> {
    { a, aStride, b, bStride, c, cStride, d, dStride, e, eStride, count in
        for i in 0..<Int(count) {
            e[i * eStride] = body(a[i * aStride], b[i * bStride], c[i * cStride], d[i * dStride])
        }
    }
}

private func pairByScalar<T>(_ body: @escaping @Sendable (T, T, T) -> T) -> BinaryVectorByScalar<T> {
    { a, aStride, b, bStride, c, d, dStride, count in
        for i in 0..<Int(count) { d[i * dStride] = body(a[i * aStride], b[i * bStride], c.pointee) }
    }
}

/// `body` gets functions for the results before `position` and for the elements.
private func running<T: FloatingPoint>(
    _ body: @escaping @Sendable (_ before: (Int) -> T, _ element: (Int) -> T, _ step: T, _ position: Int) -> T
) -> VectorByScalar<T> {
    { a, aStride, step, c, cStride, count in
        for i in 0..<Int(count) {
            c[i * cStride] = i == 0 ? 0 : body({ c[$0 * cStride] }, { a[$0 * aStride] }, step.pointee, i)
        }
    }
}

private func sliding<T: FloatingPoint>(_ body: @escaping @Sendable (T, T) -> T) -> SlidingVector<T> {
    { a, aStride, c, cStride, count, window in
        for i in 0..<Int(count) {
            c[i * cStride] = (1..<max(1, Int(window))).reduce(a[i * aStride]) { body($0, a[(i + $1) * aStride]) }
        }
    }
}

/// The exponent of the power of 2 that scales the larger number to about 1; 0 if it is 0, infinite or NaN.
func balancing<T: BinaryFloatingPoint>(_ x: T, _ y: T) -> T.Exponent {
    let largest = max(abs(x), abs(y))
    guard largest > 0, largest.isFinite else { return 0 }
    let limit = -T.leastNormalMagnitude.exponent
    return min(max(-largest.exponent, -limit), limit)
}

/// √(x² + y²), of scaled numbers, whose squares neither overflow nor underflow.
func distance<T: BinaryFloatingPoint>(_ x: T, _ y: T) -> T {
    if x.isInfinite || y.isInfinite { return .infinity }
    let scale = T(sign: .plus, exponent: balancing(x, y), significand: 1)
    return ((x * scale) * (x * scale) + (y * scale) * (y * scale)).squareRoot() / scale
}

/// √(a² + b²)
public let vDSP_vdist: BinaryVector<Float> = binary { distance($0, $1) }
public let vDSP_vdistD: BinaryVector<Double> = binary { distance($0, $1) }
/// √((a − c)² + (b − d)²)
public let vDSP_vpythg: QuaternaryVector<Float> = quaternary { distance($0 - $2, $1 - $3) }
public let vDSP_vpythgD: QuaternaryVector<Double> = quaternary { distance($0 - $2, $1 - $3) }
/// (a + b) · c
public let vDSP_vam: TernaryVector<Float> = ternary { ($0 + $1) * $2 }
public let vDSP_vamD: TernaryVector<Double> = ternary { ($0 + $1) * $2 }
/// (a − b) · c
public let vDSP_vsbm: TernaryVector<Float> = ternary { ($0 - $1) * $2 }
public let vDSP_vsbmD: TernaryVector<Double> = ternary { ($0 - $1) * $2 }
/// a · b − c
public let vDSP_vmsb: TernaryVector<Float> = ternary { $0 * $1 - $2 }
public let vDSP_vmsbD: TernaryVector<Double> = ternary { $0 * $1 - $2 }
/// (a + b) · scalar
public let vDSP_vasm: BinaryVectorByScalar<Float> = pairByScalar { ($0 + $1) * $2 }
public let vDSP_vasmD: BinaryVectorByScalar<Double> = pairByScalar { ($0 + $1) * $2 }
/// (a − b) · scalar
public let vDSP_vsbsm: BinaryVectorByScalar<Float> = pairByScalar { ($0 - $1) * $2 }
public let vDSP_vsbsmD: BinaryVectorByScalar<Double> = pairByScalar { ($0 - $1) * $2 }
/// a · b + scalar
public let vDSP_vmsa: BinaryVectorByScalar<Float> = pairByScalar { $0 * $1 + $2 }
public let vDSP_vmsaD: BinaryVectorByScalar<Double> = pairByScalar { $0 * $1 + $2 }
/// a + scalar · (b − a)
public let vDSP_vintb: BinaryVectorByScalar<Float> = pairByScalar { $0 + $2 * ($1 - $0) }
public let vDSP_vintbD: BinaryVectorByScalar<Double> = pairByScalar { $0 + $2 * ($1 - $0) }
/// (a + b) · (c + d)
public let vDSP_vaam: QuaternaryVector<Float> = quaternary { ($0 + $1) * ($2 + $3) }
public let vDSP_vaamD: QuaternaryVector<Double> = quaternary { ($0 + $1) * ($2 + $3) }
/// (a − b) · (c − d)
public let vDSP_vsbsbm: QuaternaryVector<Float> = quaternary { ($0 - $1) * ($2 - $3) }
public let vDSP_vsbsbmD: QuaternaryVector<Double> = quaternary { ($0 - $1) * ($2 - $3) }
/// a · b + c · d
public let vDSP_vmma: QuaternaryVector<Float> = quaternary { $0 * $1 + $2 * $3 }
public let vDSP_vmmaD: QuaternaryVector<Double> = quaternary { $0 * $1 + $2 * $3 }
/// a · b − c · d
public let vDSP_vmmsb: QuaternaryVector<Float> = quaternary { $0 * $1 - $2 * $3 }
public let vDSP_vmmsbD: QuaternaryVector<Double> = quaternary { $0 * $1 - $2 * $3 }
/// a · |a|
public let vDSP_vssq: UnaryVector<Float> = unary { $0 * abs($0) }
public let vDSP_vssqD: UnaryVector<Double> = unary { $0 * abs($0) }
/// Running sums of the elements after the first, times the scalar.
public let vDSP_vrsum: VectorByScalar<Float> = running { $0($3 - 1) + $2 * $1($3) }
public let vDSP_vrsumD: VectorByScalar<Double> = running { $0($3 - 1) + $2 * $1($3) }
/// The integral by trapezoids whose width is the scalar.
public let vDSP_vtrapz: VectorByScalar<Float> = running { $0($3 - 1) + $2 * ($1($3 - 1) + $1($3)) / 2 }
public let vDSP_vtrapzD: VectorByScalar<Double> = running { $0($3 - 1) + $2 * ($1($3 - 1) + $1($3)) / 2 }
/// The sums of sliding windows; the last argument is their length.
public let vDSP_vswsum: SlidingVector<Float> = sliding { $0 + $1 }
public let vDSP_vswsumD: SlidingVector<Double> = sliding { $0 + $1 }
/// The maxima of sliding windows.
public let vDSP_vswmax: SlidingVector<Float> = sliding { max($0, $1) }
public let vDSP_vswmaxD: SlidingVector<Double> = sliding { max($0, $1) }
