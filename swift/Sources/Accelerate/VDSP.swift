// The part of Accelerate that compute programs use to check their results: vDSP's arithmetic, vForce's functions and
// BLAS's products, each as a loop. Programs that use other parts of Accelerate do not compile.
@_exported import Foundation
@_exported import OrchardDarwin
@_exported import simd

/// Arithmetic of vectors. For each form that returns an array, another form stores the elements in `result`.
public enum vDSP {}

public typealias vDSP_Length = UInt
public typealias vDSP_Stride = Int

extension vDSP {
    public static func sum<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(0, +)
    }
    public static func mean<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        sum(vector) / U.Element(vector.count)
    }
    public static func sumOfSquares<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(0) { $0 + $1 * $1 }
    }
    public static func sumOfMagnitudes<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(0) { $0 + $1.magnitude }
    }
    public static func meanSquare<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        sumOfSquares(vector) / U.Element(vector.count)
    }
    public static func meanMagnitude<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        sumOfMagnitudes(vector) / U.Element(vector.count)
    }
    public static func rootMeanSquare<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        meanSquare(vector).squareRoot()
    }
    public static func maximum<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(-.infinity) { $0 > $1 ? $0 : $1 }
    }
    public static func minimum<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(.infinity) { $0 < $1 ? $0 : $1 }
    }
    public static func maximumMagnitude<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(0) { $0 > $1.magnitude ? $0 : $1.magnitude }
    }
    public static func minimumMagnitude<U: AccelerateBuffer>(_ vector: U) -> U.Element where U.Element: FloatingPoint {
        vector.joined(.infinity) { $0 < $1.magnitude ? $0 : $1.magnitude }
    }
    /// The index of the first largest value.
    public static func indexOfMaximum<U: AccelerateBuffer>(_ vector: U) -> (UInt, U.Element)
    where U.Element: FloatingPoint { first(vector, of: maximum(vector)) }
    /// The index of the first smallest value.
    public static func indexOfMinimum<U: AccelerateBuffer>(_ vector: U) -> (UInt, U.Element)
    where U.Element: FloatingPoint { first(vector, of: minimum(vector)) }

    private static func first<U: AccelerateBuffer>(_ vector: U, of value: U.Element) -> (UInt, U.Element)
    where U.Element: FloatingPoint {
        (UInt(vector.withUnsafeBufferPointer { $0.firstIndex(of: value) } ?? 0), value)
    }

    public static func dot<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> U.Element
    where U.Element: FloatingPoint, V.Element == U.Element { a.mapped(with: b, *).reduce(0, +) }
    public static func distanceSquared<U: AccelerateBuffer, V: AccelerateBuffer>(_ a: U, _ b: V) -> U.Element
    where U.Element: FloatingPoint, V.Element == U.Element {
        a.mapped(with: b) { ($0 - $1) * ($0 - $1) }.reduce(0, +)
    }
}
