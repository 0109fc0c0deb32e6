// vDSP's arithmetic on strided vectors, for float, and for double if the name ends in D. Each operand is followed by
// its stride.

public typealias VectorToVector<From, To> =
    @Sendable (UnsafePointer<From>, vDSP_Stride, UnsafeMutablePointer<To>, vDSP_Stride, vDSP_Length) -> Void
public typealias UnaryVector<T> = VectorToVector<T, T>
public typealias BinaryVector<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias VectorByScalar<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias ScalarByVector<T> =
    @Sendable (
        UnsafePointer<T>, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias TernaryVector<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, vDSP_Stride,
        UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias ScaledVectorSum<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafePointer<T>, vDSP_Stride, UnsafeMutablePointer<T>,
        vDSP_Stride, vDSP_Length
    ) -> Void

func unary<From, To>(_ body: @escaping @Sendable (From) -> To) -> VectorToVector<From, To> {
    { a, aStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = body(a[i * aStride]) }
    }
}

func binary<T>(_ body: @escaping @Sendable (T, T) -> T) -> BinaryVector<T> {
    { a, aStride, b, bStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = body(a[i * aStride], b[i * bStride]) }
    }
}

private func byScalar<T>(_ body: @escaping @Sendable (T, T) -> T) -> VectorByScalar<T> {
    { a, aStride, b, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = body(a[i * aStride], b.pointee) }
    }
}

private func scalarBy<T>(_ body: @escaping @Sendable (T, T) -> T) -> ScalarByVector<T> {
    { a, b, bStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = body(a.pointee, b[i * bStride]) }
    }
}

private func multiplyAdd<T: FloatingPoint>() -> TernaryVector<T> {
    { a, aStride, b, bStride, c, cStride, d, dStride, count in
        for i in 0..<Int(count) { d[i * dStride] = a[i * aStride] * b[i * bStride] + c[i * cStride] }
    }
}

private func scaleAdd<T: FloatingPoint>() -> ScaledVectorSum<T> {
    { a, aStride, b, c, cStride, d, dStride, count in
        for i in 0..<Int(count) { d[i * dStride] = a[i * aStride] * b.pointee + c[i * cStride] }
    }
}

/// c = a + b
public let vDSP_vadd: BinaryVector<Float> = binary { $0 + $1 }
public let vDSP_vaddD: BinaryVector<Double> = binary { $0 + $1 }
/// c = a · b
public let vDSP_vmul: BinaryVector<Float> = binary { $0 * $1 }
public let vDSP_vmulD: BinaryVector<Double> = binary { $0 * $1 }
/// c = second − first
public let vDSP_vsub: BinaryVector<Float> = binary { $1 - $0 }
public let vDSP_vsubD: BinaryVector<Double> = binary { $1 - $0 }
/// c = second / first
public let vDSP_vdiv: BinaryVector<Float> = binary { $1 / $0 }
public let vDSP_vdivD: BinaryVector<Double> = binary { $1 / $0 }
/// The maximum of each pair.
public let vDSP_vmax: BinaryVector<Float> = binary { max($0, $1) }
public let vDSP_vmaxD: BinaryVector<Double> = binary { max($0, $1) }
/// The minimum of each pair.
public let vDSP_vmin: BinaryVector<Float> = binary { min($0, $1) }
public let vDSP_vminD: BinaryVector<Double> = binary { min($0, $1) }
/// The maximum of each pair's magnitudes.
public let vDSP_vmaxmg: BinaryVector<Float> = binary { max(abs($0), abs($1)) }
public let vDSP_vmaxmgD: BinaryVector<Double> = binary { max(abs($0), abs($1)) }
/// The minimum of each pair's magnitudes.
public let vDSP_vminmg: BinaryVector<Float> = binary { min(abs($0), abs($1)) }
public let vDSP_vminmgD: BinaryVector<Double> = binary { min(abs($0), abs($1)) }
/// c = a + scalar
public let vDSP_vsadd: VectorByScalar<Float> = byScalar { $0 + $1 }
public let vDSP_vsaddD: VectorByScalar<Double> = byScalar { $0 + $1 }
/// c = a · scalar
public let vDSP_vsmul: VectorByScalar<Float> = byScalar { $0 * $1 }
public let vDSP_vsmulD: VectorByScalar<Double> = byScalar { $0 * $1 }
/// c = a / scalar
public let vDSP_vsdiv: VectorByScalar<Float> = byScalar { $0 / $1 }
public let vDSP_vsdivD: VectorByScalar<Double> = byScalar { $0 / $1 }
/// c = a, but at least the scalar
public let vDSP_vthr: VectorByScalar<Float> = byScalar { $0 >= $1 ? $0 : $1 }
public let vDSP_vthrD: VectorByScalar<Double> = byScalar { $0 >= $1 ? $0 : $1 }
/// c = a where it is at least the scalar, else 0
public let vDSP_vthres: VectorByScalar<Float> = byScalar { $0 >= $1 ? $0 : 0 }
public let vDSP_vthresD: VectorByScalar<Double> = byScalar { $0 >= $1 ? $0 : 0 }
/// c = scalar / b
public let vDSP_svdiv: ScalarByVector<Float> = scalarBy { $0 / $1 }
public let vDSP_svdivD: ScalarByVector<Double> = scalarBy { $0 / $1 }
/// d = a · b + c
public let vDSP_vma: TernaryVector<Float> = multiplyAdd()
public let vDSP_vmaD: TernaryVector<Double> = multiplyAdd()
/// d = a · scalar + c
public let vDSP_vsma: ScaledVectorSum<Float> = scaleAdd()
public let vDSP_vsmaD: ScaledVectorSum<Double> = scaleAdd()
/// c = −a
public let vDSP_vneg: UnaryVector<Float> = unary { -$0 }
public let vDSP_vnegD: UnaryVector<Double> = unary { -$0 }
/// c = |a|
public let vDSP_vabs: UnaryVector<Float> = unary { abs($0) }
public let vDSP_vabsD: UnaryVector<Double> = unary { abs($0) }
/// c = −|a|
public let vDSP_vnabs: UnaryVector<Float> = unary { -abs($0) }
public let vDSP_vnabsD: UnaryVector<Double> = unary { -abs($0) }
/// c = a − trunc(a)
public let vDSP_vfrac: UnaryVector<Float> = unary { $0 - $0.rounded(.towardZero) }
public let vDSP_vfracD: UnaryVector<Double> = unary { $0 - $0.rounded(.towardZero) }
/// c = a²
public let vDSP_vsq: UnaryVector<Float> = unary { $0 * $0 }
public let vDSP_vsqD: UnaryVector<Double> = unary { $0 * $0 }

public typealias VectorClear<T> = @Sendable (UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void
public typealias VectorFill<T> =
    @Sendable (UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void
public typealias VectorRamp<T> =
    @Sendable (UnsafePointer<T>, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride, vDSP_Length) -> Void
public typealias VectorSort<T> = @Sendable (UnsafeMutablePointer<T>, vDSP_Length, Int32) -> Void

private func clear<T: FloatingPoint>() -> VectorClear<T> {
    { c, stride, count in for i in 0..<Int(count) { c[i * stride] = 0 } }
}

private func fill<T>() -> VectorFill<T> {
    { a, c, stride, count in for i in 0..<Int(count) { c[i * stride] = a.pointee } }
}

private func ramp<T: FloatingPoint>() -> VectorRamp<T> {
    { start, step, c, stride, count in
        for i in 0..<Int(count) { c[i * stride] = start.pointee + T(i) * step.pointee }
    }
}

private func sorted<T: FloatingPoint>() -> VectorSort<T> {
    { values, count, order in
        var all = UnsafeMutableBufferPointer(start: values, count: Int(count))
        all.sort { order < 0 ? $0 > $1 : $0 < $1 }
    }
}

/// c = 0
public let vDSP_vclr: VectorClear<Float> = clear()
public let vDSP_vclrD: VectorClear<Double> = clear()
/// c = scalar
public let vDSP_vfill: VectorFill<Float> = fill()
public let vDSP_vfillD: VectorFill<Double> = fill()
/// c[i] = start + i · step
public let vDSP_vramp: VectorRamp<Float> = ramp()
public let vDSP_vrampD: VectorRamp<Double> = ramp()
/// Sorts in place: ascending if the order is 1, descending if it is −1.
public let vDSP_vsort: VectorSort<Float> = sorted()
public let vDSP_vsortD: VectorSort<Double> = sorted()

public typealias VectorByTwo<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Stride, UnsafePointer<T>, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Stride,
        vDSP_Length
    ) -> Void

private func byTwo<T>(_ body: @escaping @Sendable (T, T, T) -> T) -> VectorByTwo<T> {
    { a, aStride, b, c, d, dStride, count in
        for i in 0..<Int(count) { d[i * dStride] = body(a[i * aStride], b.pointee, c.pointee) }
    }
}

/// d = a · scalar + scalar
public let vDSP_vsmsa: VectorByTwo<Float> = byTwo { $0 * $1 + $2 }
public let vDSP_vsmsaD: VectorByTwo<Double> = byTwo { $0 * $1 + $2 }
/// d = a, but at least the first scalar and at most the second
public let vDSP_vclip: VectorByTwo<Float> = byTwo { min(max($0, $1), $2) }
public let vDSP_vclipD: VectorByTwo<Double> = byTwo { min(max($0, $1), $2) }
/// d = a outside the limits; between them, the lower limit if a < 0, else the upper one: an inverted clip
public let vDSP_viclip: VectorByTwo<Float> = byTwo { $0 <= $1 || $0 >= $2 ? $0 : $0 < 0 ? $1 : $2 }
public let vDSP_viclipD: VectorByTwo<Double> = byTwo { $0 <= $1 || $0 >= $2 ? $0 : $0 < 0 ? $1 : $2 }
/// d = the second scalar where a is at least the first, else its negative
public let vDSP_vlim: VectorByTwo<Float> = byTwo { $0 >= $1 ? $2 : -$2 }
public let vDSP_vlimD: VectorByTwo<Double> = byTwo { $0 >= $1 ? $2 : -$2 }
