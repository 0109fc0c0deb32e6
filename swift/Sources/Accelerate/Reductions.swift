// vDSP's reductions of strided vectors, in the order of the elements, for float, and for double if the name ends in D.

public typealias VectorReduction<T> =
    @Sendable (UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Length) -> Void
public typealias PairReduction<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Length
    ) -> Void
public typealias VectorSearch<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, UnsafeMutablePointer<vDSP_Length>, vDSP_Length
    ) -> Void

private func reduction<T: FloatingPoint>(
    _ initial: T, _ body: @escaping @Sendable (T, T) -> T, last: @escaping @Sendable (T, T) -> T = { sum, _ in sum }
) -> VectorReduction<T> where T: Sendable {
    { a, stride, result, count in
        result.pointee = last((0..<Int(count)).reduce(initial) { body($0, a[$1 * stride]) }, T(count))
    }
}

private func pairReduction<T: FloatingPoint>(_ term: @escaping @Sendable (T, T) -> T) -> PairReduction<T> {
    { a, aStride, b, bStride, result, count in
        result.pointee = (0..<Int(count)).reduce(0) { $0 + term(a[$1 * aStride], b[$1 * bStride]) }
    }
}

/// The index includes the stride. Of equal elements, the first is found.
private func search<T: FloatingPoint>(
    _ initial: T, _ isBetter: @escaping @Sendable (T, T) -> Bool
) -> VectorSearch<T> where T: Sendable {
    { a, stride, result, index, count in
        (result.pointee, index.pointee) = (initial, 0)
        for i in 0..<Int(count) where isBetter(a[i * stride], result.pointee) {
            (result.pointee, index.pointee) = (a[i * stride], vDSP_Length(i * stride))
        }
    }
}

/// Σ a
public let vDSP_sve: VectorReduction<Float> = reduction(0) { $0 + $1 }
public let vDSP_sveD: VectorReduction<Double> = reduction(0) { $0 + $1 }
/// Σ a²
public let vDSP_svesq: VectorReduction<Float> = reduction(0) { $0 + $1 * $1 }
public let vDSP_svesqD: VectorReduction<Double> = reduction(0) { $0 + $1 * $1 }
/// Σ |a|
public let vDSP_svemg: VectorReduction<Float> = reduction(0) { $0 + abs($1) }
public let vDSP_svemgD: VectorReduction<Double> = reduction(0) { $0 + abs($1) }
/// The largest element; −∞ for an empty vector.
public let vDSP_maxv: VectorReduction<Float> = reduction(-.infinity) { max($0, $1) }
public let vDSP_maxvD: VectorReduction<Double> = reduction(-.infinity) { max($0, $1) }
/// The smallest element; ∞ for an empty vector.
public let vDSP_minv: VectorReduction<Float> = reduction(.infinity) { min($0, $1) }
public let vDSP_minvD: VectorReduction<Double> = reduction(.infinity) { min($0, $1) }
/// The largest magnitude; 0 for an empty vector.
public let vDSP_maxmgv: VectorReduction<Float> = reduction(0) { max($0, abs($1)) }
public let vDSP_maxmgvD: VectorReduction<Double> = reduction(0) { max($0, abs($1)) }
/// The smallest magnitude; ∞ for an empty vector.
public let vDSP_minmgv: VectorReduction<Float> = reduction(.infinity) { min($0, abs($1)) }
public let vDSP_minmgvD: VectorReduction<Double> = reduction(.infinity) { min($0, abs($1)) }
/// The mean.
public let vDSP_meanv: VectorReduction<Float> = reduction(0, { $0 + $1 }, last: { $0 / $1 })
public let vDSP_meanvD: VectorReduction<Double> = reduction(0, { $0 + $1 }, last: { $0 / $1 })
/// The mean of the magnitudes.
public let vDSP_meamgv: VectorReduction<Float> = reduction(0, { $0 + abs($1) }, last: { $0 / $1 })
public let vDSP_meamgvD: VectorReduction<Double> = reduction(0, { $0 + abs($1) }, last: { $0 / $1 })
/// The mean of the squares.
public let vDSP_measqv: VectorReduction<Float> = reduction(0, { $0 + $1 * $1 }, last: { $0 / $1 })
public let vDSP_measqvD: VectorReduction<Double> = reduction(0, { $0 + $1 * $1 }, last: { $0 / $1 })
/// The root mean square.
public let vDSP_rmsqv: VectorReduction<Float> =
    reduction(0, { $0 + $1 * $1 }, last: { ($0 / $1).squareRoot() })
public let vDSP_rmsqvD: VectorReduction<Double> =
    reduction(0, { $0 + $1 * $1 }, last: { ($0 / $1).squareRoot() })
/// Σ a · b
public let vDSP_dotpr: PairReduction<Float> = pairReduction { $0 * $1 }
public let vDSP_dotprD: PairReduction<Double> = pairReduction { $0 * $1 }
/// Σ (a − b)²
public let vDSP_distancesq: PairReduction<Float> = pairReduction { ($0 - $1) * ($0 - $1) }
public let vDSP_distancesqD: PairReduction<Double> = pairReduction { ($0 - $1) * ($0 - $1) }
/// The largest element and its index.
public let vDSP_maxvi: VectorSearch<Float> = search(-.infinity) { $0 > $1 }
public let vDSP_maxviD: VectorSearch<Double> = search(-.infinity) { $0 > $1 }
/// The smallest element and its index.
public let vDSP_minvi: VectorSearch<Float> = search(.infinity) { $0 < $1 }
public let vDSP_minviD: VectorSearch<Double> = search(.infinity) { $0 < $1 }
