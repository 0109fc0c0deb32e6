// Elementary functions of vectors, component by component, under the names with which Swift imports them from Apple's
// headers. Overloads of `sin` itself would make expressions of numbers too slow for the compiler to check.
import Glibc

extension SIMD {
    func mapped(_ function: (Scalar) -> Scalar) -> Self {
        var result = Self()
        for index in indices { result[index] = function(self[index]) }
        return result
    }

    func mapped(_ other: Self, _ function: (Scalar, Scalar) -> Scalar) -> Self {
        var result = Self()
        for index in indices { result[index] = function(self[index], other[index]) }
        return result
    }
}

public func __tg_sin<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.sin($0) } }
public func __tg_sin<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.sin($0) } }
public func __tg_cos<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.cos($0) } }
public func __tg_cos<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.cos($0) } }
public func __tg_tan<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.tan($0) } }
public func __tg_tan<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.tan($0) } }
public func __tg_asin<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.asin($0) } }
public func __tg_asin<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.asin($0) } }
public func __tg_acos<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.acos($0) } }
public func __tg_acos<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.acos($0) } }
public func __tg_atan<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.atan($0) } }
public func __tg_atan<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.atan($0) } }
public func __tg_sinh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.sinh($0) } }
public func __tg_sinh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.sinh($0) } }
public func __tg_cosh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.cosh($0) } }
public func __tg_cosh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.cosh($0) } }
public func __tg_tanh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.tanh($0) } }
public func __tg_tanh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.tanh($0) } }
public func __tg_asinh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.asinh($0) } }
public func __tg_asinh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.asinh($0) } }
public func __tg_acosh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.acosh($0) } }
public func __tg_acosh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.acosh($0) } }
public func __tg_atanh<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.atanh($0) } }
public func __tg_atanh<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.atanh($0) } }
public func __tg_exp<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.exp($0) } }
public func __tg_exp<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.exp($0) } }
public func __tg_exp2<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.exp2($0) } }
public func __tg_exp2<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.exp2($0) } }
public func __tg_expm1<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.expm1($0) } }
public func __tg_expm1<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.expm1($0) } }
public func __tg_log<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.log($0) } }
public func __tg_log<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.log($0) } }
public func __tg_log2<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.log2($0) } }
public func __tg_log2<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.log2($0) } }
public func __tg_log10<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.log10($0) } }
public func __tg_log10<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.log10($0) } }
public func __tg_log1p<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.log1p($0) } }
public func __tg_log1p<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.log1p($0) } }
public func __tg_sqrt<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.sqrt($0) } }
public func __tg_sqrt<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.sqrt($0) } }
public func __tg_cbrt<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.cbrt($0) } }
public func __tg_cbrt<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.cbrt($0) } }
public func __tg_trunc<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.trunc($0) } }
public func __tg_trunc<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.trunc($0) } }
public func __tg_rint<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.rint($0) } }
public func __tg_rint<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.rint($0) } }
public func __tg_pow<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.pow($0, $1) } }
public func __tg_pow<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.pow($0, $1) } }
public func __tg_fmod<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.fmod($0, $1) } }
public func __tg_fmod<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.fmod($0, $1) } }
public func __tg_atan2<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.atan2($0, $1) } }
public func __tg_atan2<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.atan2($0, $1) } }
public func __tg_copysign<V: SIMD>(_ x: V, _ y: V) -> V
where V.Scalar == Float {
    x.mapped(y) { Glibc.copysign($0, $1) }
}
public func __tg_copysign<V: SIMD>(_ x: V, _ y: V) -> V
where V.Scalar == Double {
    x.mapped(y) { Glibc.copysign($0, $1) }
}
public func __tg_hypot<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.hypot($0, $1) } }
public func __tg_hypot<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.hypot($0, $1) } }
public func __tg_remainder<V: SIMD>(_ x: V, _ y: V) -> V
where V.Scalar == Float {
    x.mapped(y) { Glibc.remainder($0, $1) }
}
public func __tg_remainder<V: SIMD>(_ x: V, _ y: V) -> V
where V.Scalar == Double {
    x.mapped(y) { Glibc.remainder($0, $1) }
}
public func __tg_fma<V: SIMD>(_ x: V, _ y: V, _ z: V) -> V where V.Scalar == Float { z.addingProduct(x, y) }
public func __tg_fma<V: SIMD>(_ x: V, _ y: V, _ z: V) -> V where V.Scalar == Double { z.addingProduct(x, y) }
public func __tg_fabs<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { abs(x) }
public func __tg_floor<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { x.rounded(.down) }
public func __tg_ceil<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { x.rounded(.up) }
public func __tg_round<V: SIMD>(_ x: V) -> V where V.Scalar: FloatingPoint { x.rounded(.toNearestOrAwayFromZero) }
public func __tg_fmin<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.fmin($0, $1) } }
public func __tg_fmin<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.fmin($0, $1) } }
public func __tg_fmax<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.fmax($0, $1) } }
public func __tg_fmax<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.fmax($0, $1) } }
public func __tg_fdim<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Float { x.mapped(y) { Glibc.fdim($0, $1) } }
public func __tg_fdim<V: SIMD>(_ x: V, _ y: V) -> V where V.Scalar == Double { x.mapped(y) { Glibc.fdim($0, $1) } }
public func __tg_erf<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.erf($0) } }
public func __tg_erf<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.erf($0) } }
public func __tg_erfc<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.erfc($0) } }
public func __tg_erfc<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.erfc($0) } }
public func __tg_tgamma<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { Glibc.tgamma($0) } }
public func __tg_tgamma<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { Glibc.tgamma($0) } }
