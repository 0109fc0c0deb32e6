// Of Accelerate there are the sums and products by which compute programs check their results. Anything else of it is
// not here, and does not compile.
@_exported import Foundation
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

/// result[i] = a[i] + b[i]
public func vDSP_vadd(
    _ a: UnsafePointer<Float>, _ aStride: vDSP_Stride, _ b: UnsafePointer<Float>, _ bStride: vDSP_Stride,
    _ result: UnsafeMutablePointer<Float>, _ resultStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) { result[i * resultStride] = a[i * aStride] + b[i * bStride] }
}

/// result[i] = a[i] · b[i]
public func vDSP_vmul(
    _ a: UnsafePointer<Float>, _ aStride: vDSP_Stride, _ b: UnsafePointer<Float>, _ bStride: vDSP_Stride,
    _ result: UnsafeMutablePointer<Float>, _ resultStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) { result[i * resultStride] = a[i * aStride] * b[i * bStride] }
}

/// result = Σ values[i]
public func vDSP_sve(
    _ values: UnsafePointer<Float>, _ stride: vDSP_Stride, _ result: UnsafeMutablePointer<Float>, _ count: vDSP_Length
) {
    result.pointee = (0..<Int(count)).reduce(0) { $0 + values[$1 * stride] }
}

/// The product of row-major matrices: result[m × n] = a[m × p] · b[p × n]
public func vDSP_mmul(
    _ a: UnsafePointer<Float>, _ aStride: vDSP_Stride, _ b: UnsafePointer<Float>, _ bStride: vDSP_Stride,
    _ result: UnsafeMutablePointer<Float>, _ resultStride: vDSP_Stride, _ m: vDSP_Length, _ n: vDSP_Length,
    _ p: vDSP_Length
) {
    for i in 0..<Int(m) {
        for j in 0..<Int(n) {
            result[(i * Int(n) + j) * resultStride] = (0..<Int(p)).reduce(0) {
                $0 + a[(i * Int(p) + $1) * aStride] * b[($1 * Int(n) + j) * bStride]
            }
        }
    }
}
