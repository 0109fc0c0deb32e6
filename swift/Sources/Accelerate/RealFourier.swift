// vDSP's transforms of 2^log2n real numbers, in the packed layout of half as many complex numbers: for float, and for
// double if the name ends in D. Packed numbers are elements 2i and 2i + 1. A packed spectrum has element k for 0 < k <
// n / 2, and in its first number the real elements 0 and n / 2.

private func transform(
    _ setup: FFTSetup, _ log2n: vDSP_Length, _ direction: FFTDirection, get: (Int) -> Complex,
    set: (Int, Complex) -> Void
) {
    requireSetup(setup, log2n)
    let n = 1 << Int(log2n), half = n / 2
    let packed = (0..<half).map(get)
    if direction == kFFTDirection_Forward {
        let x = packed.flatMap { [Complex(re: $0.re, im: 0), Complex(re: $0.im, im: 0)] }
        let spectrum = transformed(x, -1)  // vDSP's forward transform of reals is twice the usual one
        set(0, Complex(re: 2 * spectrum[0].re, im: 2 * spectrum[half].re))
        for k in 1..<max(half, 1) { set(k, Complex(re: 2 * spectrum[k].re, im: 2 * spectrum[k].im)) }
        return
    }
    var spectrum = [Complex](repeating: Complex(re: packed[0].re, im: 0), count: n)
    spectrum[half] = Complex(re: packed[0].im, im: 0)
    for k in 1..<max(half, 1) {
        spectrum[k] = packed[k]
        spectrum[n - k] = Complex(re: packed[k].re, im: -packed[k].im)
    }
    let x = transformed(spectrum, 1)
    for i in 0..<half { set(i, Complex(re: x[2 * i].re, im: x[2 * i + 1].re)) }
}

/// c = the transform of a: twice the usual sum in the forward direction, the plain sum in the inverse direction.
public func vDSP_fft_zrop(
    _ setup: FFTSetup, _ a: UnsafePointer<DSPSplitComplex>, _ aStride: vDSP_Stride, _ c: UnsafePointer<DSPSplitComplex>,
    _ cStride: vDSP_Stride, _ log2n: vDSP_Length, _ direction: FFTDirection
) {
    let (x, y) = (a.pointee, c.pointee)
    transform(
        setup, log2n, direction,
        get: { Complex(re: Double(x.realp[$0 * aStride]), im: Double(x.imagp[$0 * aStride])) },
        set: { (y.realp[$0 * cStride], y.imagp[$0 * cStride]) = (Float($1.re), Float($1.im)) })
}

/// Transforms a in place.
public func vDSP_fft_zrip(
    _ setup: FFTSetup, _ c: UnsafePointer<DSPSplitComplex>, _ stride: vDSP_Stride, _ log2n: vDSP_Length,
    _ direction: FFTDirection
) { vDSP_fft_zrop(setup, c, stride, c, stride, log2n, direction) }

/// c = the transform of a: twice the usual sum in the forward direction, the plain sum in the inverse direction.
public func vDSP_fft_zropD(
    _ setup: FFTSetupD, _ a: UnsafePointer<DSPDoubleSplitComplex>, _ aStride: vDSP_Stride,
    _ c: UnsafePointer<DSPDoubleSplitComplex>,
    _ cStride: vDSP_Stride, _ log2n: vDSP_Length, _ direction: FFTDirection
) {
    let (x, y) = (a.pointee, c.pointee)
    transform(
        setup, log2n, direction,
        get: { Complex(re: Double(x.realp[$0 * aStride]), im: Double(x.imagp[$0 * aStride])) },
        set: { (y.realp[$0 * cStride], y.imagp[$0 * cStride]) = (Double($1.re), Double($1.im)) })
}

/// Transforms a in place.
public func vDSP_fft_zripD(
    _ setup: FFTSetupD, _ c: UnsafePointer<DSPDoubleSplitComplex>, _ stride: vDSP_Stride, _ log2n: vDSP_Length,
    _ direction: FFTDirection
) { vDSP_fft_zropD(setup, c, stride, c, stride, log2n, direction) }
