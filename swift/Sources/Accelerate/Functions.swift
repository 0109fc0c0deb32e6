// vForce: functions of each element of a dense vector, for double, and for float if the name ends in f.
import Foundation

public typealias VectorFunction<T> = @Sendable (UnsafeMutablePointer<T>, UnsafePointer<T>, UnsafePointer<Int32>) -> Void
public typealias VectorPower<T> =
    @Sendable (UnsafeMutablePointer<T>, UnsafePointer<T>, UnsafePointer<T>, UnsafePointer<Int32>) -> Void

private func mapped<T>(_ body: @escaping @Sendable (T) -> T) -> VectorFunction<T> {
    { y, x, count in for i in 0..<Int(count.pointee) { y[i] = body(x[i]) } }
}

public let vvexpf: VectorFunction<Float> = mapped { exp($0) }
public let vvexp: VectorFunction<Double> = mapped { exp($0) }
public let vvlogf: VectorFunction<Float> = mapped { log($0) }
public let vvlog: VectorFunction<Double> = mapped { log($0) }
public let vvlog2f: VectorFunction<Float> = mapped { log2($0) }
public let vvlog2: VectorFunction<Double> = mapped { log2($0) }
public let vvlog10f: VectorFunction<Float> = mapped { log10($0) }
public let vvlog10: VectorFunction<Double> = mapped { log10($0) }
public let vvsinf: VectorFunction<Float> = mapped { sin($0) }
public let vvsin: VectorFunction<Double> = mapped { sin($0) }
public let vvcosf: VectorFunction<Float> = mapped { cos($0) }
public let vvcos: VectorFunction<Double> = mapped { cos($0) }
public let vvtanf: VectorFunction<Float> = mapped { tan($0) }
public let vvtan: VectorFunction<Double> = mapped { tan($0) }
public let vvtanhf: VectorFunction<Float> = mapped { tanh($0) }
public let vvtanh: VectorFunction<Double> = mapped { tanh($0) }
public let vvsqrtf: VectorFunction<Float> = mapped { sqrt($0) }
public let vvsqrt: VectorFunction<Double> = mapped { sqrt($0) }
public let vvfabsf: VectorFunction<Float> = mapped { abs($0) }
public let vvfabs: VectorFunction<Double> = mapped { abs($0) }
public let vvfloorf: VectorFunction<Float> = mapped { floor($0) }
public let vvfloor: VectorFunction<Double> = mapped { floor($0) }
public let vvceilf: VectorFunction<Float> = mapped { ceil($0) }
public let vvceil: VectorFunction<Double> = mapped { ceil($0) }
/// y = 1 / x
public let vvrecf: VectorFunction<Float> = mapped { 1 / $0 }
public let vvrec: VectorFunction<Double> = mapped { 1 / $0 }
public let vvexp2f: VectorFunction<Float> = mapped { exp2($0) }
public let vvexp2: VectorFunction<Double> = mapped { exp2($0) }
public let vvexpm1f: VectorFunction<Float> = mapped { expm1($0) }
public let vvexpm1: VectorFunction<Double> = mapped { expm1($0) }
public let vvlog1pf: VectorFunction<Float> = mapped { log1p($0) }
public let vvlog1p: VectorFunction<Double> = mapped { log1p($0) }
public let vvlogbf: VectorFunction<Float> = mapped { logb($0) }
public let vvlogb: VectorFunction<Double> = mapped { logb($0) }
public let vvasinf: VectorFunction<Float> = mapped { asin($0) }
public let vvasin: VectorFunction<Double> = mapped { asin($0) }
public let vvacosf: VectorFunction<Float> = mapped { acos($0) }
public let vvacos: VectorFunction<Double> = mapped { acos($0) }
public let vvatanf: VectorFunction<Float> = mapped { atan($0) }
public let vvatan: VectorFunction<Double> = mapped { atan($0) }
public let vvsinhf: VectorFunction<Float> = mapped { sinh($0) }
public let vvsinh: VectorFunction<Double> = mapped { sinh($0) }
public let vvcoshf: VectorFunction<Float> = mapped { cosh($0) }
public let vvcosh: VectorFunction<Double> = mapped { cosh($0) }
public let vvasinhf: VectorFunction<Float> = mapped { asinh($0) }
public let vvasinh: VectorFunction<Double> = mapped { asinh($0) }
public let vvacoshf: VectorFunction<Float> = mapped { acosh($0) }
public let vvacosh: VectorFunction<Double> = mapped { acosh($0) }
public let vvatanhf: VectorFunction<Float> = mapped { atanh($0) }
public let vvatanh: VectorFunction<Double> = mapped { atanh($0) }
public let vvcbrtf: VectorFunction<Float> = mapped { cbrt($0) }
public let vvcbrt: VectorFunction<Double> = mapped { cbrt($0) }
/// The integer part.
public let vvintf: VectorFunction<Float> = mapped { trunc($0) }
public let vvint: VectorFunction<Double> = mapped { trunc($0) }
/// The nearest integer, ties to even.
public let vvnintf: VectorFunction<Float> = mapped { $0.rounded(.toNearestOrEven) }
public let vvnint: VectorFunction<Double> = mapped { $0.rounded(.toNearestOrEven) }
/// y = 1 / √x
public let vvrsqrtf: VectorFunction<Float> = mapped { 1 / sqrt($0) }
public let vvrsqrt: VectorFunction<Double> = mapped { 1 / sqrt($0) }
/// y = sin(πx)
public let vvsinpif: VectorFunction<Float> = mapped { sin(.pi * $0) }
public let vvsinpi: VectorFunction<Double> = mapped { sin(.pi * $0) }
/// y = cos(πx)
public let vvcospif: VectorFunction<Float> = mapped { cos(.pi * $0) }
public let vvcospi: VectorFunction<Double> = mapped { cos(.pi * $0) }

private func paired<T>(_ body: @escaping @Sendable (T, T) -> T) -> VectorPower<T> {
    { z, y, x, count in for i in 0..<Int(count.pointee) { z[i] = body(y[i], x[i]) } }
}

/// z = x to the power of y; the exponents come first in the argument list.
public let vvpowf: VectorPower<Float> = paired { pow($1, $0) }
public let vvpow: VectorPower<Double> = paired { pow($1, $0) }
/// z = x to the power of one exponent y
public let vvpowsf: VectorPower<Float> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { z[i] = pow(x[i], y.pointee) }
}
public let vvpows: VectorPower<Double> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { z[i] = pow(x[i], y.pointee) }
}
/// z = y / x
public let vvdivf: VectorPower<Float> = paired { $0 / $1 }
public let vvdiv: VectorPower<Double> = paired { $0 / $1 }
/// z = y − x · trunc(y / x)
public let vvfmodf: VectorPower<Float> = paired { fmod($0, $1) }
public let vvfmod: VectorPower<Double> = paired { fmod($0, $1) }
/// z = y − x · rint(y / x)
public let vvremainderf: VectorPower<Float> = paired { remainder($0, $1) }
public let vvremainder: VectorPower<Double> = paired { remainder($0, $1) }
/// The magnitude of y with the sign of x.
public let vvcopysignf: VectorPower<Float> = paired { copysign($0, $1) }
public let vvcopysign: VectorPower<Double> = paired { copysign($0, $1) }
/// The angle of the point (x, y).
public let vvatan2f: VectorPower<Float> = paired { atan2($0, $1) }
public let vvatan2: VectorPower<Double> = paired { atan2($0, $1) }
/// The next number after y in the direction of x.
public let vvnextafterf: VectorPower<Float> = paired { nextafter($0, $1) }
public let vvnextafter: VectorPower<Double> = paired { nextafter($0, $1) }

public typealias VectorSinCos<T> =
    @Sendable (UnsafeMutablePointer<T>, UnsafeMutablePointer<T>, UnsafePointer<T>, UnsafePointer<Int32>) -> Void

/// z = sin(x), y = cos(x)
public let vvsincosf: VectorSinCos<Float> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { (z[i], y[i]) = (sin(x[i]), cos(x[i])) }
}
public let vvsincos: VectorSinCos<Double> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { (z[i], y[i]) = (sin(x[i]), cos(x[i])) }
}
