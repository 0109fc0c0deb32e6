// Functions of <math.h> that return a sine and a cosine. The C library of Linux lacks them.
import Glibc

public struct __float2: Sendable {
    public var __sinval: Float
    public var __cosval: Float

    public init() { (__sinval, __cosval) = (0, 0) }
    public init(__sinval: Float, __cosval: Float) { (self.__sinval, self.__cosval) = (__sinval, __cosval) }
}

public struct __double2: Sendable {
    public var __sinval: Double
    public var __cosval: Double

    public init() { (__sinval, __cosval) = (0, 0) }
    public init(__sinval: Double, __cosval: Double) { (self.__sinval, self.__cosval) = (__sinval, __cosval) }
}

/// Returns the sine and the cosine of an angle in radians.
public func __sincosf_stret(_ x: Float) -> __float2 { __float2(__sinval: sinf(x), __cosval: cosf(x)) }
public func __sincos_stret(_ x: Double) -> __double2 { __double2(__sinval: sin(x), __cosval: cos(x)) }
/// Returns the sine and the cosine of π x.
public func __sincospif_stret(_ x: Float) -> __float2 {
    let value = __sincospi_stret(Double(x))
    return __float2(__sinval: Float(value.__sinval), __cosval: Float(value.__cosval))
}
/// The angle is first reduced by whole turns, which is exact, and multiples of a quarter turn give exact values.
public func __sincospi_stret(_ x: Double) -> __double2 {
    guard x.isFinite else { return __double2(__sinval: .nan, __cosval: .nan) }
    let turn = remainder(x, 2)
    let quarters = (2 * turn).rounded()
    let angle = (turn - quarters / 2) * Double.pi
    let (s, c) = (sin(angle), cos(angle))
    switch (Int(quarters) + 4) % 4 {
    case 0: return __double2(__sinval: s, __cosval: c)
    case 1: return __double2(__sinval: c, __cosval: -s)
    case 2: return __double2(__sinval: -s, __cosval: -c)
    default: return __double2(__sinval: -c, __cosval: s)
    }
}
