// The part of Accelerate with which compute programs check their results: vDSP's arithmetic, vForce's functions and
// BLAS's products, each as a loop. Programs that use other parts of Accelerate do not compile.
@_exported import Foundation
@_exported import OrchardDarwin
@_exported import simd

public enum vDSP {
    public static func add<T: FloatingPoint>(_ a: [T], _ b: [T]) -> [T] { zip(a, b).map { $0 + $1 } }
    public static func add<T: FloatingPoint>(_ scalar: T, _ values: [T]) -> [T] { values.map { scalar + $0 } }
    public static func subtract<T: FloatingPoint>(_ a: [T], _ b: [T]) -> [T] { zip(a, b).map { $0 - $1 } }
    public static func multiply<T: FloatingPoint>(_ a: [T], _ b: [T]) -> [T] { zip(a, b).map { $0 * $1 } }
    public static func multiply<T: FloatingPoint>(_ scalar: T, _ values: [T]) -> [T] { values.map { scalar * $0 } }
    public static func divide<T: FloatingPoint>(_ a: [T], _ b: [T]) -> [T] { zip(a, b).map { $0 / $1 } }
    public static func sum<T: FloatingPoint>(_ values: [T]) -> T { values.reduce(0, +) }
    public static func mean<T: FloatingPoint>(_ values: [T]) -> T { sum(values) / T(values.count) }
    public static func dot<T: FloatingPoint>(_ a: [T], _ b: [T]) -> T { zip(a, b).reduce(0) { $0 + $1.0 * $1.1 } }
    public static func sumOfSquares<T: FloatingPoint>(_ values: [T]) -> T { dot(values, values) }
    public static func maximum<T: FloatingPoint>(_ values: [T]) -> T { values.max() ?? -.infinity }
    public static func minimum<T: FloatingPoint>(_ values: [T]) -> T { values.min() ?? .infinity }
}

public typealias vDSP_Length = UInt
public typealias vDSP_Stride = Int
