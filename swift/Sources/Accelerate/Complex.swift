// vDSP's arithmetic on strided vectors of complex numbers, whose real and imaginary parts are in separate arrays
// (split) or interleaved: for float, and for double if the name ends in D.
import Foundation

/// A split complex vector of either precision.
public protocol SplitComplex {
    associatedtype Real: BinaryFloatingPoint
    var realp: UnsafeMutablePointer<Real> { get }
    var imagp: UnsafeMutablePointer<Real> { get }
}
extension DSPSplitComplex: SplitComplex {}
extension DSPDoubleSplitComplex: SplitComplex {}

public struct DSPComplex: Sendable {
    public var real: Float
    public var imag: Float

    public init() { (real, imag) = (0, 0) }
    public init(real: Float, imag: Float) { (self.real, self.imag) = (real, imag) }
}

public struct DSPDoubleComplex: Sendable {
    public var real: Double
    public var imag: Double

    public init() { (real, imag) = (0, 0) }
    public init(real: Double, imag: Double) { (self.real, self.imag) = (real, imag) }
}

/// One complex number.
struct ComplexNumber<T: BinaryFloatingPoint> {
    var re: T, im: T

    var conjugate: Self { Self(re: re, im: -im) }
    static func * (a: Self, b: Self) -> Self { Self(re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re) }
    /// Divides scaled numbers, whose products neither overflow nor underflow.
    static func / (a: Self, b: Self) -> Self {
        let (ofA, ofB) = (balancing(a.re, a.im), balancing(b.re, b.im))
        let (dividend, divisor) = (a.scaled(ofA), b.scaled(ofB))
        let square = divisor.re * divisor.re + divisor.im * divisor.im, product = dividend * divisor.conjugate
        let half = (ofB - ofA) / 2
        return Self(re: product.re / square, im: product.im / square).scaled(half).scaled(ofB - ofA - half)
    }
    private func scaled(_ exponent: T.Exponent) -> Self {
        let scale = T(sign: .plus, exponent: exponent, significand: 1)
        return Self(re: re * scale, im: im * scale)
    }
}

extension SplitComplex {
    fileprivate subscript(index: Int) -> ComplexNumber<Real> {
        get { ComplexNumber(re: realp[index], im: imagp[index]) }
        nonmutating set { (realp[index], imagp[index]) = (newValue.re, newValue.im) }
    }
}

public typealias ComplexUnary<C> =
    @Sendable (UnsafePointer<C>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, vDSP_Length) -> Void
public typealias ComplexToReal<C: SplitComplex> =
    @Sendable (UnsafePointer<C>, vDSP_Stride, UnsafeMutablePointer<C.Real>, vDSP_Stride, vDSP_Length) -> Void
public typealias ComplexBinary<C> =
    @Sendable (
        UnsafePointer<C>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, vDSP_Length
    ) -> Void
public typealias ComplexProduct<C> =
    @Sendable (
        UnsafePointer<C>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, vDSP_Length, Int32
    ) -> Void
public typealias ComplexByReal<C: SplitComplex> =
    @Sendable (
        UnsafePointer<C>, vDSP_Stride, UnsafePointer<C.Real>, vDSP_Stride, UnsafePointer<C>, vDSP_Stride, vDSP_Length
    ) -> Void
/// An operation of a dense real vector and a dense split complex vector.
public typealias RealByComplex<C: SplitComplex> =
    @Sendable (UnsafePointer<C.Real>, UnsafePointer<C>, UnsafePointer<C>, vDSP_Length) -> Void

private func unary<C: SplitComplex>(
    _ body: @escaping @Sendable (ComplexNumber<C.Real>) -> ComplexNumber<C.Real>
) -> ComplexUnary<C> {
    { a, aStride, c, cStride, count in
        for i in 0..<Int(count) { c.pointee[i * cStride] = body(a.pointee[i * aStride]) }
    }
}

private func toReal<C: SplitComplex>(
    _ body: @escaping @Sendable (ComplexNumber<C.Real>) -> C.Real
) -> ComplexToReal<C> {
    { a, aStride, c, cStride, count in
        for i in 0..<Int(count) { c[i * cStride] = body(a.pointee[i * aStride]) }
    }
}

private func binary<C: SplitComplex>(
    _ body: @escaping @Sendable (ComplexNumber<C.Real>, ComplexNumber<C.Real>) -> ComplexNumber<C.Real>
) -> ComplexBinary<C> {
    { a, aStride, b, bStride, c, cStride, count in
        for i in 0..<Int(count) { c.pointee[i * cStride] = body(a.pointee[i * aStride], b.pointee[i * bStride]) }
    }
}

private func product<C: SplitComplex>() -> ComplexProduct<C> {
    { a, aStride, b, bStride, c, cStride, count, conjugate in
        for i in 0..<Int(count) {
            let left = a.pointee[i * aStride]
            c.pointee[i * cStride] = (conjugate < 0 ? left.conjugate : left) * b.pointee[i * bStride]
        }
    }
}

private func byReal<C: SplitComplex>(
    _ body: @escaping @Sendable (ComplexNumber<C.Real>, C.Real) -> ComplexNumber<C.Real>
) -> ComplexByReal<C> {
    { a, aStride, b, bStride, c, cStride, count in
        for i in 0..<Int(count) { c.pointee[i * cStride] = body(a.pointee[i * aStride], b[i * bStride]) }
    }
}

private func transfer<C: SplitComplex>() -> RealByComplex<C> {
    { a, b, c, count in
        for i in 0..<Int(count) {
            c.pointee[i] = ComplexNumber(re: b.pointee[i].re / a[i], im: b.pointee[i].im / a[i])
        }
    }
}

/// c = a + b
public let vDSP_zvadd: ComplexBinary<DSPSplitComplex> = binary { .init(re: $0.re + $1.re, im: $0.im + $1.im) }
public let vDSP_zvaddD: ComplexBinary<DSPDoubleSplitComplex> = binary { .init(re: $0.re + $1.re, im: $0.im + $1.im) }
/// c = a − b
public let vDSP_zvsub: ComplexBinary<DSPSplitComplex> = binary { .init(re: $0.re - $1.re, im: $0.im - $1.im) }
public let vDSP_zvsubD: ComplexBinary<DSPDoubleSplitComplex> = binary { .init(re: $0.re - $1.re, im: $0.im - $1.im) }
/// c = second / first
public let vDSP_zvdiv: ComplexBinary<DSPSplitComplex> = binary { $1 / $0 }
public let vDSP_zvdivD: ComplexBinary<DSPDoubleSplitComplex> = binary { $1 / $0 }
/// c = a · b, or conj(a) · b where the last argument is −1
public let vDSP_zvmul: ComplexProduct<DSPSplitComplex> = product()
public let vDSP_zvmulD: ComplexProduct<DSPDoubleSplitComplex> = product()
/// c = conj(a)
public let vDSP_zvconj: ComplexUnary<DSPSplitComplex> = unary { $0.conjugate }
public let vDSP_zvconjD: ComplexUnary<DSPDoubleSplitComplex> = unary { $0.conjugate }
/// c = −a
public let vDSP_zvneg: ComplexUnary<DSPSplitComplex> = unary { .init(re: -$0.re, im: -$0.im) }
public let vDSP_zvnegD: ComplexUnary<DSPDoubleSplitComplex> = unary { .init(re: -$0.re, im: -$0.im) }
/// c = a
public let vDSP_zvmov: ComplexUnary<DSPSplitComplex> = unary { $0 }
public let vDSP_zvmovD: ComplexUnary<DSPDoubleSplitComplex> = unary { $0 }
/// c = |a|
public let vDSP_zvabs: ComplexToReal<DSPSplitComplex> = toReal { distance($0.re, $0.im) }
public let vDSP_zvabsD: ComplexToReal<DSPDoubleSplitComplex> = toReal { distance($0.re, $0.im) }
/// c = the angle of a
public let vDSP_zvphas: ComplexToReal<DSPSplitComplex> = toReal { atan2($0.im, $0.re) }
public let vDSP_zvphasD: ComplexToReal<DSPDoubleSplitComplex> = toReal { atan2($0.im, $0.re) }
/// c = a + real b
public let vDSP_zrvadd: ComplexByReal<DSPSplitComplex> = byReal { .init(re: $0.re + $1, im: $0.im) }
public let vDSP_zrvaddD: ComplexByReal<DSPDoubleSplitComplex> = byReal { .init(re: $0.re + $1, im: $0.im) }
/// c = a − real b
public let vDSP_zrvsub: ComplexByReal<DSPSplitComplex> = byReal { .init(re: $0.re - $1, im: $0.im) }
public let vDSP_zrvsubD: ComplexByReal<DSPDoubleSplitComplex> = byReal { .init(re: $0.re - $1, im: $0.im) }
/// c = a · real b
public let vDSP_zrvmul: ComplexByReal<DSPSplitComplex> = byReal { .init(re: $0.re * $1, im: $0.im * $1) }
public let vDSP_zrvmulD: ComplexByReal<DSPDoubleSplitComplex> = byReal { .init(re: $0.re * $1, im: $0.im * $1) }
/// c = a / real b
public let vDSP_zrvdiv: ComplexByReal<DSPSplitComplex> = byReal { .init(re: $0.re / $1, im: $0.im / $1) }
public let vDSP_zrvdivD: ComplexByReal<DSPDoubleSplitComplex> = byReal { .init(re: $0.re / $1, im: $0.im / $1) }
/// c = b / real a
public let vDSP_ztrans: RealByComplex<DSPSplitComplex> = transfer()
public let vDSP_ztransD: RealByComplex<DSPDoubleSplitComplex> = transfer()

/// Splits complex numbers into real and imaginary parts. As in Apple's vDSP, the stride of interleaved numbers counts
/// floats: dense numbers have stride 2.
public func vDSP_ctoz(
    _ c: UnsafePointer<DSPComplex>, _ cStride: vDSP_Stride, _ z: UnsafePointer<DSPSplitComplex>, _ zStride: vDSP_Stride,
    _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        (z.pointee.realp[i * zStride], z.pointee.imagp[i * zStride]) = (
            c[i * cStride / 2].real, c[i * cStride / 2].imag
        )
    }
}

/// The reverse of `vDSP_ctoz`.
public func vDSP_ztoc(
    _ z: UnsafePointer<DSPSplitComplex>, _ zStride: vDSP_Stride, _ c: UnsafeMutablePointer<DSPComplex>,
    _ cStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        c[i * cStride / 2] = DSPComplex(real: z.pointee.realp[i * zStride], imag: z.pointee.imagp[i * zStride])
    }
}

/// Splits complex numbers. The stride of interleaved numbers counts doubles: dense numbers have stride 2.
public func vDSP_ctozD(
    _ c: UnsafePointer<DSPDoubleComplex>, _ cStride: vDSP_Stride, _ z: UnsafePointer<DSPDoubleSplitComplex>,
    _ zStride: vDSP_Stride,
    _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        (z.pointee.realp[i * zStride], z.pointee.imagp[i * zStride]) = (
            c[i * cStride / 2].real, c[i * cStride / 2].imag
        )
    }
}

/// The reverse of `vDSP_ctozD`.
public func vDSP_ztocD(
    _ z: UnsafePointer<DSPDoubleSplitComplex>, _ zStride: vDSP_Stride, _ c: UnsafeMutablePointer<DSPDoubleComplex>,
    _ cStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        c[i * cStride / 2] = DSPDoubleComplex(real: z.pointee.realp[i * zStride], imag: z.pointee.imagp[i * zStride])
    }
}
