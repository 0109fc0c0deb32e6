// vDSP's complex transforms of powers of 2, and arithmetic on split complex vectors: for float, and for double if the
// name ends in D.
import Foundation

public struct DSPSplitComplex {
    public var realp: UnsafeMutablePointer<Float>
    public var imagp: UnsafeMutablePointer<Float>

    public init(realp: UnsafeMutablePointer<Float>, imagp: UnsafeMutablePointer<Float>) {
        (self.realp, self.imagp) = (realp, imagp)
    }
}

public struct DSPDoubleSplitComplex {
    public var realp: UnsafeMutablePointer<Double>
    public var imagp: UnsafeMutablePointer<Double>

    public init(realp: UnsafeMutablePointer<Double>, imagp: UnsafeMutablePointer<Double>) {
        (self.realp, self.imagp) = (realp, imagp)
    }
}

public typealias FFTRadix = Int32
public typealias FFTDirection = Int32
public let kFFTRadix2 = 0
public let kFFTDirection_Forward = 1
public let kFFTDirection_Inverse = -1
public let FFT_FORWARD = 1
public let FFT_INVERSE = -1

/// The largest length that the setup supports.
private final class Setup {
    let log2n: UInt
    init(_ log2n: UInt) { self.log2n = log2n }
}

public typealias FFTSetup = OpaquePointer
public typealias FFTSetupD = OpaquePointer

/// Returns nil for a radix other than 2.
public func vDSP_create_fftsetup(_ log2n: vDSP_Length, _ radix: FFTRadix) -> FFTSetup? {
    radix == kFFTRadix2 ? OpaquePointer(Unmanaged.passRetained(Setup(log2n)).toOpaque()) : nil
}
public func vDSP_create_fftsetupD(_ log2n: vDSP_Length, _ radix: FFTRadix) -> FFTSetupD? {
    vDSP_create_fftsetup(log2n, radix)
}
public func vDSP_destroy_fftsetup(_ setup: FFTSetup?) {
    if let setup { Unmanaged<Setup>.fromOpaque(UnsafeRawPointer(setup)).release() }
}
public func vDSP_destroy_fftsetupD(_ setup: FFTSetupD?) { vDSP_destroy_fftsetup(setup) }

struct Complex {
    var re: Double, im: Double
}

/// Σ_k x_k e^(∓2πijk/n) without a factor, by halves; computed in double.
func transformed(_ x: [Complex], _ sign: Double) -> [Complex] {
    if x.count <= 1 { return x }
    let half = x.count / 2
    let even = transformed((0..<half).map { x[2 * $0] }, sign)
    let odd = transformed((0..<half).map { x[2 * $0 + 1] }, sign)
    var result = x
    for k in 0..<half {
        let angle = sign * 2 * Double.pi * Double(k) / Double(x.count), (c, s) = (cos(angle), sin(angle))
        let term = Complex(re: c * odd[k].re - s * odd[k].im, im: c * odd[k].im + s * odd[k].re)
        result[k] = Complex(re: even[k].re + term.re, im: even[k].im + term.im)
        result[k + half] = Complex(re: even[k].re - term.re, im: even[k].im - term.im)
    }
    return result
}

/// Ends the program if the transform is longer than the setup allows.
func requireSetup(_ setup: FFTSetup, _ log2n: vDSP_Length) {
    let most = Unmanaged<Setup>.fromOpaque(UnsafeRawPointer(setup)).takeUnretainedValue().log2n
    precondition(log2n <= most, "vDSP_fft: the setup is for at most 2^\(most) elements (got 2^\(log2n))")
}

private func transform(
    _ setup: FFTSetup, _ log2n: vDSP_Length, _ direction: FFTDirection, get: (Int) -> Complex,
    set: (Int, Complex) -> Void
) {
    requireSetup(setup, log2n)
    let result = transformed((0..<1 << Int(log2n)).map(get), direction == kFFTDirection_Forward ? -1 : 1)
    for (k, value) in result.enumerated() { set(k, value) }
}

/// c = the transform of a, without a factor in either direction.
public func vDSP_fft_zop(
    _ setup: FFTSetup, _ a: UnsafePointer<DSPSplitComplex>, _ aStride: vDSP_Stride,
    _ c: UnsafePointer<DSPSplitComplex>, _ cStride: vDSP_Stride, _ log2n: vDSP_Length, _ direction: FFTDirection
) {
    let (x, y) = (a.pointee, c.pointee)
    transform(
        setup, log2n, direction,
        get: { Complex(re: Double(x.realp[$0 * aStride]), im: Double(x.imagp[$0 * aStride])) },
        set: { (y.realp[$0 * cStride], y.imagp[$0 * cStride]) = (Float($1.re), Float($1.im)) })
}
public func vDSP_fft_zopD(
    _ setup: FFTSetupD, _ a: UnsafePointer<DSPDoubleSplitComplex>, _ aStride: vDSP_Stride,
    _ c: UnsafePointer<DSPDoubleSplitComplex>, _ cStride: vDSP_Stride, _ log2n: vDSP_Length, _ direction: FFTDirection
) {
    let (x, y) = (a.pointee, c.pointee)
    transform(
        setup, log2n, direction, get: { Complex(re: x.realp[$0 * aStride], im: x.imagp[$0 * aStride]) },
        set: { (y.realp[$0 * cStride], y.imagp[$0 * cStride]) = ($1.re, $1.im) })
}

/// Transforms a in place.
public func vDSP_fft_zip(
    _ setup: FFTSetup, _ c: UnsafePointer<DSPSplitComplex>, _ stride: vDSP_Stride, _ log2n: vDSP_Length,
    _ direction: FFTDirection
) { vDSP_fft_zop(setup, c, stride, c, stride, log2n, direction) }
public func vDSP_fft_zipD(
    _ setup: FFTSetupD, _ c: UnsafePointer<DSPDoubleSplitComplex>, _ stride: vDSP_Stride, _ log2n: vDSP_Length,
    _ direction: FFTDirection
) { vDSP_fft_zopD(setup, c, stride, c, stride, log2n, direction) }

/// c = |a|²
public func vDSP_zvmags(
    _ a: UnsafePointer<DSPSplitComplex>, _ aStride: vDSP_Stride, _ c: UnsafeMutablePointer<Float>,
    _ cStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        let (re, im) = (a.pointee.realp[i * aStride], a.pointee.imagp[i * aStride])
        c[i * cStride] = re * re + im * im
    }
}
public func vDSP_zvmagsD(
    _ a: UnsafePointer<DSPDoubleSplitComplex>, _ aStride: vDSP_Stride, _ c: UnsafeMutablePointer<Double>,
    _ cStride: vDSP_Stride, _ count: vDSP_Length
) {
    for i in 0..<Int(count) {
        let (re, im) = (a.pointee.realp[i * aStride], a.pointee.imagp[i * aStride])
        c[i * cStride] = re * re + im * im
    }
}

/// c = 10 log₁₀(a / zero) for powers (flag 0), or 20 log₁₀(a / zero) for amplitudes (flag 1).
public func vDSP_vdbcon(
    _ a: UnsafePointer<Float>, _ aStride: vDSP_Stride, _ zero: UnsafePointer<Float>, _ c: UnsafeMutablePointer<Float>,
    _ cStride: vDSP_Stride, _ count: vDSP_Length, _ flag: UInt32
) { for i in 0..<Int(count) { c[i * cStride] = (flag == 0 ? 10 : 20) * log10(a[i * aStride] / zero.pointee) } }
public func vDSP_vdbconD(
    _ a: UnsafePointer<Double>, _ aStride: vDSP_Stride, _ zero: UnsafePointer<Double>,
    _ c: UnsafeMutablePointer<Double>, _ cStride: vDSP_Stride, _ count: vDSP_Length, _ flag: UInt32
) { for i in 0..<Int(count) { c[i * cStride] = (flag == 0 ? 10 : 20) * log10(a[i * aStride] / zero.pointee) } }
