// Common functions of numbers, and additional functions of vectors.

/// Returns -1, 0 or 1.
public func sign(_ x: Float) -> Float { x < 0 ? -1 : (x > 0 ? 1 : 0) }
public func recip(_ x: Float) -> Float { 1 / x }
public func rsqrt(_ x: Float) -> Float { 1 / x.squareRoot() }
public func fract(_ x: Float) -> Float { x - x.rounded(.down) }
public func mix(_ x: Float, _ y: Float, t: Float) -> Float { x + (y - x) * t }
public func clamp(_ x: Float, min: Float, max: Float) -> Float { Swift.min(Swift.max(x, min), max) }
public func step(_ x: Float, edge: Float) -> Float { x < edge ? 0 : 1 }
public func smoothstep(_ x: Float, edge0: Float, edge1: Float) -> Float {
    let t = clamp((x - edge0) / (edge1 - edge0), min: 0, max: 1)
    return t * t * (3 - 2 * t)
}

/// Returns -1, 0 or 1.
public func sign(_ x: Double) -> Double { x < 0 ? -1 : (x > 0 ? 1 : 0) }
public func recip(_ x: Double) -> Double { 1 / x }
public func rsqrt(_ x: Double) -> Double { 1 / x.squareRoot() }
public func fract(_ x: Double) -> Double { x - x.rounded(.down) }
public func mix(_ x: Double, _ y: Double, t: Double) -> Double { x + (y - x) * t }
public func clamp(_ x: Double, min: Double, max: Double) -> Double { Swift.min(Swift.max(x, min), max) }
public func step(_ x: Double, edge: Double) -> Double { x < edge ? 0 : 1 }
public func smoothstep(_ x: Double, edge0: Double, edge1: Double) -> Double {
    let t = clamp((x - edge0) / (edge1 - edge0), min: 0, max: 1)
    return t * t * (3 - 2 * t)
}

public func sign<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint & ExpressibleByIntegerLiteral {
    V().replacing(with: V(repeating: -1), where: x .< V()).replacing(with: V(repeating: 1), where: x .> V())
}
public func recip<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { V(repeating: 1) / x }
public func rsqrt<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { V(repeating: 1) / x.squareRoot() }
/// Returns the sum of the magnitudes.
public func norm_one<V: SIMD>(_ x: V) -> V.Scalar where V.Scalar: FloatingPoint { abs(x).sum() }
/// Returns the largest magnitude.
public func norm_inf<V: SIMD>(_ x: V) -> V.Scalar where V.Scalar: FloatingPoint { abs(x).max() }

public func simd_sign<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint & ExpressibleByIntegerLiteral { sign(x) }
public func simd_recip<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { recip(x) }
public func simd_precise_recip<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { recip(x) }
public func simd_fast_recip<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { recip(x) }
public func simd_rsqrt<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { rsqrt(x) }
public func simd_precise_rsqrt<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { rsqrt(x) }
public func simd_fast_rsqrt<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { rsqrt(x) }
public func simd_fast_length<V: SIMD>(_ x: V) -> V.Scalar where V.Scalar: FloatingPoint { length(x) }
public func simd_fast_normalize<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { normalize(x) }
public func simd_norm_one<V: SIMD>(_ x: V) -> V.Scalar where V.Scalar: FloatingPoint { norm_one(x) }
public func simd_norm_inf<V: SIMD>(_ x: V) -> V.Scalar where V.Scalar: FloatingPoint { norm_inf(x) }
/// Returns x y + z, rounded once.
public func simd_muladd<V: SIMD>(_ x: V, _ y: V, _ z: V) -> V where V.Scalar: FloatingPoint { z.addingProduct(x, y) }
