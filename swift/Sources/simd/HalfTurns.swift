// Trigonometric functions of π x.
import OrchardDarwin

/// Returns sin(π x).
public func sinpi(_ x: Double) -> Double { __sincospi_stret(x).__sinval }
/// Returns cos(π x).
public func cospi(_ x: Double) -> Double { __sincospi_stret(x).__cosval }
/// Returns tan(π x).
public func tanpi(_ x: Double) -> Double { sinpi(x) / cospi(x) }

public func sinpi(_ x: Float) -> Float { Float(sinpi(Double(x))) }
public func cospi(_ x: Float) -> Float { Float(cospi(Double(x))) }
public func tanpi(_ x: Float) -> Float { Float(tanpi(Double(x))) }

public func sinpi<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { sinpi($0) } }
public func sinpi<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { sinpi($0) } }
public func cospi<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { cospi($0) } }
public func cospi<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { cospi($0) } }
public func tanpi<V: SIMD>(_ x: V) -> V where V.Scalar == Float { x.mapped { tanpi($0) } }
public func tanpi<V: SIMD>(_ x: V) -> V where V.Scalar == Double { x.mapped { tanpi($0) } }
