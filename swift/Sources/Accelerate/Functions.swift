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

/// z = x to the power of y; the exponents come first in the argument list.
public let vvpowf: VectorPower<Float> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { z[i] = pow(x[i], y[i]) }
}
public let vvpow: VectorPower<Double> = { z, y, x, count in
    for i in 0..<Int(count.pointee) { z[i] = pow(x[i], y[i]) }
}
