// vDSP's selections, limits and windows of strided vectors, for float, and for double if the name ends in D.
import Foundation

public typealias VectorInPlace<T> = @Sendable (UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void
public typealias VectorGather<T> =
    @Sendable (
        UnsafePointer<T>, UnsafePointer<vDSP_Length>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias VectorClipCount<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride,
        vDSP_Length, UnsafeMutablePointer<vDSP_Length>, UnsafeMutablePointer<vDSP_Length>
    ) -> Void
public typealias VectorIndexSort<T> =
    @Sendable (
        UnsafePointer<T>, UnsafeMutablePointer<vDSP_Length>, UnsafeMutablePointer<vDSP_Length>?, vDSP_Length, Int32
    ) -> Void
public typealias VectorNormalize<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>?, vDSP_Stride, UnsafeMutablePointer<T>,
        UnsafeMutablePointer<T>, vDSP_Length
    ) -> Void
public typealias VectorConvolution<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride,
        vDSP_Length, vDSP_Length
    ) -> Void
public typealias VectorWindow<T> = @Sendable (UnsafeMutablePointer<T>, vDSP_Length, Int32) -> Void

private func reversed<T>() -> VectorInPlace<T> {
    { c, stride, count in
        for i in 0..<Int(count) / 2 {
            let (low, high) = (i * stride, (Int(count) - 1 - i) * stride)
            (c[low], c[high]) = (c[high], c[low])
        }
    }
}

private func gather<T>() -> VectorGather<T> {
    { a, indices, indexStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = a[Int(indices[i * indexStride]) - 1] }
    }
}

private func compressed<T: FloatingPoint>() -> BinaryVector<T> {
    { a, aStride, gate, gateStride, c, cStride, count in
        var at = 0
        for i in 0..<Int(count) where gate[i * gateStride] != 0 {
            c[at * cStride] = a[i * aStride]
            at += 1
        }
    }
}

private func clipCount<T: FloatingPoint>() -> VectorClipCount<T> {
    { a, aStride, low, high, c, cStride, count, below, above in
        (below.pointee, above.pointee) = (0, 0)
        for i in 0..<Int(count) {
            let value = a[i * aStride]
            c[i * cStride] = min(max(value, low.pointee), high.pointee)
            if value < low.pointee { below.pointee += 1 }
            if value > high.pointee { above.pointee += 1 }
        }
    }
}

private func indexSort<T: FloatingPoint>() -> VectorIndexSort<T> {
    { values, indices, _, count, order in
        var all = UnsafeMutableBufferPointer(start: indices, count: Int(count))
        all.sort { order < 0 ? values[Int($0)] > values[Int($1)] : values[Int($0)] < values[Int($1)] }
    }
}

/// c = (a − mean) / standard deviation of the population
private func normalize<T: FloatingPoint>() -> VectorNormalize<T> {
    { a, aStride, c, cStride, mean, deviation, count in
        let n = T(count)
        let average = (0..<Int(count)).reduce(0) { $0 + a[$1 * aStride] } / n
        let square = (0..<Int(count)).reduce(T(0)) {
            $0 + (a[$1 * aStride] - average) * (a[$1 * aStride] - average)
        }
        (mean.pointee, deviation.pointee) = (average, (square / n).squareRoot())
        guard let c else { return }
        for i in 0..<Int(count) { c[i * cStride] = (a[i * aStride] - average) / deviation.pointee }
    }
}

private func convolve<T: FloatingPoint>() -> VectorConvolution<T> {
    { a, aStride, filter, filterStride, c, cStride, count, taps in
        for i in 0..<Int(count) {
            c[i * cStride] = (0..<Int(taps)).reduce(0) { $0 + a[(i + $1) * aStride] * filter[$1 * filterStride] }
        }
    }
}

/// √(2/3), to the digits of vDSP.h.
private let hannNorm = 0.816496580927726

public let vDSP_HALF_WINDOW: Int32 = 1
public let vDSP_HANN_DENORM: Int32 = 0
public let vDSP_HANN_NORM: Int32 = 2

/// Σ_k terms_k · cos(2πki / count). A half window has only the first (count + 1) / 2 values.
private func window<T: BinaryFloatingPoint>(_ terms: @escaping @Sendable (_ isNormed: Bool) -> [Double])
    -> VectorWindow<T>
{
    { c, count, flag in
        let terms = terms(flag & vDSP_HANN_NORM != 0)
        for i in 0..<(flag & vDSP_HALF_WINDOW != 0 ? (Int(count) + 1) / 2 : Int(count)) {
            let angle = 2 * Double.pi * Double(i) / Double(count)
            c[i] = T(terms.enumerated().reduce(0) { $0 + $1.element * cos(Double($1.offset) * angle) })
        }
    }
}

/// Reverses the vector in place.
public let vDSP_vrvrs: VectorInPlace<Float> = reversed()
public let vDSP_vrvrsD: VectorInPlace<Double> = reversed()
/// c[i] = a[indices[i] − 1]
public let vDSP_vgathr: VectorGather<Float> = gather()
public let vDSP_vgathrD: VectorGather<Double> = gather()
/// c = the elements of a where the second operand is not 0, stored without gaps
public let vDSP_vcmprs: BinaryVector<Float> = compressed()
public let vDSP_vcmprsD: BinaryVector<Double> = compressed()
/// As vDSP_vclip; the last two arguments count the elements below and above the limits.
public let vDSP_vclipc: VectorClipCount<Float> = clipCount()
public let vDSP_vclipcD: VectorClipCount<Double> = clipCount()
/// Sorts indices by the elements at them: ascending if the order is 1, descending if it is −1.
public let vDSP_vsorti: VectorIndexSort<Float> = indexSort()
public let vDSP_vsortiD: VectorIndexSort<Double> = indexSort()
/// Computes the mean and the standard deviation, and the vector normalized by them.
public let vDSP_normalize: VectorNormalize<Float> = normalize()
public let vDSP_normalizeD: VectorNormalize<Double> = normalize()
/// c[i] = Σ_p a[i + p] · filter[p]: a correlation, or a convolution if the filter's stride is negative.
public let vDSP_conv: VectorConvolution<Float> = convolve()
public let vDSP_convD: VectorConvolution<Double> = convolve()

/// 0.5 − 0.5 cos, or √(2/3) (1 − cos) with `vDSP_HANN_NORM`.
public let vDSP_hann_window: VectorWindow<Float> = window { $0 ? [hannNorm, -hannNorm] : [0.5, -0.5] }
public let vDSP_hann_windowD: VectorWindow<Double> = window { $0 ? [hannNorm, -hannNorm] : [0.5, -0.5] }
/// 0.54 − 0.46 cos
public let vDSP_hamm_window: VectorWindow<Float> = window { _ in [0.54, -0.46] }
public let vDSP_hamm_windowD: VectorWindow<Double> = window { _ in [0.54, -0.46] }
/// 0.42 − 0.5 cos + 0.08 cos of twice the angle
public let vDSP_blkman_window: VectorWindow<Float> = window { _ in [0.42, -0.5, 0.08] }
public let vDSP_blkman_windowD: VectorWindow<Double> = window { _ in [0.42, -0.5, 0.08] }
