import Accelerate
import XCTest

/// Accelerate's functions on strided operands with random values, compared with formulas on arrays.
final class AccelerateTests: XCTestCase {
    private let count = 17
    private var seed: UInt32 = 33

    /// Multiples of 1/8 below 8, so that products and sums are exact in any order.
    private func drawn(_ count: Int) -> [Float] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Float(Int(seed >> 16) % 127 - 63) / 8
        }
    }

    /// Every `stride`-th element.
    private func every(_ stride: Int, of values: [Float]) -> [Float] { (0..<count).map { values[$0 * stride] } }

    func testPairsOfStridedVectors() {
        let a = drawn(2 * count), b = drawn(3 * count)
        let x = every(2, of: a), y = every(3, of: b)
        let pairs: [(BinaryVector<Float>, (Float, Float) -> Float)] = [
            (vDSP_vadd, { $0 + $1 }), (vDSP_vmul, { $0 * $1 }), (vDSP_vsub, { $1 - $0 }), (vDSP_vdiv, { $1 / $0 }),
            (vDSP_vmax, { max($0, $1) }), (vDSP_vmin, { min($0, $1) }),
        ]
        for (call, formula) in pairs {
            var c = [Float](repeating: 9, count: 2 * count)
            call(a, 2, b, 3, &c, 2, vDSP_Length(count))
            XCTAssertEqual(every(2, of: c).map(\.bitPattern), zip(x, y).map(formula).map(\.bitPattern))
            XCTAssertEqual(c[1], 9, "between the elements nothing is written")
        }
    }

    func testVectorsAndScalars() {
        let a = drawn(count), length = vDSP_Length(count)
        var c = [Float](repeating: 0, count: count), scalar: Float = 2.5
        vDSP_vsadd(a, 1, &scalar, &c, 1, length)
        XCTAssertEqual(c, a.map { $0 + 2.5 })
        vDSP_vsmul(a, 1, &scalar, &c, 1, length)
        XCTAssertEqual(c, a.map { $0 * 2.5 })
        vDSP_vsdiv(a, 1, &scalar, &c, 1, length)
        XCTAssertEqual(c, a.map { $0 / 2.5 })
        vDSP_svdiv(&scalar, a.map { abs($0) + 1 }, 1, &c, 1, length)
        XCTAssertEqual(c, a.map { 2.5 / (abs($0) + 1) })
        vDSP_vma(a, 1, a, 1, a.map { -$0 }, 1, &c, 1, length)
        XCTAssertEqual(c, a.map { $0 * $0 - $0 })
        vDSP_vsma(a, 1, &scalar, a, 1, &c, 1, length)
        XCTAssertEqual(c, a.map { $0 * 2.5 + $0 })
        var step: Float = 0.5
        vDSP_vramp(&scalar, &step, &c, 1, length)
        XCTAssertEqual(c, (0..<count).map { 2.5 + Float($0) / 2 })
        vDSP_vfill(&scalar, &c, 1, length)
        XCTAssertEqual(Set(c), [2.5])
        vDSP_vclr(&c, 1, length)
        XCTAssertEqual(Set(c), [0])
        var down = a
        vDSP_vsort(&down, length, -1)
        XCTAssertEqual(down, a.sorted(by: >))
        var wide = [Double](repeating: 0, count: count)
        vDSP_vspdp(a, 1, &wide, 1, length)
        XCTAssertEqual(wide, a.map(Double.init))
    }

    func testReductions() {
        let a = drawn(3 * count), x = every(3, of: a), y = drawn(count), length = vDSP_Length(count)
        let reductions: [(VectorReduction<Float>, Float)] = [
            (vDSP_sve, x.reduce(0, +)), (vDSP_svesq, x.reduce(0) { $0 + $1 * $1 }),
            (vDSP_svemg, x.reduce(0) { $0 + abs($1) }), (vDSP_maxv, x.max()!), (vDSP_minv, x.min()!),
            (vDSP_maxmgv, x.map(abs).max()!), (vDSP_minmgv, x.map(abs).min()!),
            (vDSP_meanv, x.reduce(0, +) / Float(count)),
            (vDSP_measqv, x.reduce(0) { $0 + $1 * $1 } / Float(count)),
            (vDSP_rmsqv, (x.reduce(0) { $0 + $1 * $1 } / Float(count)).squareRoot()),
        ]
        for (index, (call, expected)) in reductions.enumerated() {
            var result: Float = -1
            call(a, 3, &result, length)
            XCTAssertEqual(result, expected, "reduction \(index)")
        }
        var result: Float = 0, at: vDSP_Length = 0
        vDSP_dotpr(a, 3, y, 1, &result, length)
        XCTAssertEqual(result, zip(x, y).reduce(0) { $0 + $1.0 * $1.1 })
        vDSP_distancesq(a, 3, y, 1, &result, length)
        XCTAssertEqual(result, zip(x, y).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) })
        vDSP_maxvi(a, 3, &result, &at, length)
        XCTAssertEqual([Int(at), Int(result * 8)], [3 * x.firstIndex(of: x.max()!)!, Int(x.max()! * 8)])
    }

    func testMatrices() {
        let a = drawn(6), b = drawn(12)
        func product(
            _ m: Int, _ n: Int, _ k: Int, _ left: (Int, Int) -> Float, _ right: (Int, Int) -> Float
        ) -> [Float] {
            (0..<m * n).map { at in (0..<k).reduce(0) { $0 + left(at / n, $1) * right($1, at % n) } }
        }
        var c = [Float](repeating: 1, count: 8)
        vDSP_mmul(a, 1, b, 1, &c, 1, 2, 4, 3)
        let plain = product(2, 4, 3, { a[$0 * 3 + $1] }, { b[$0 * 4 + $1] })
        XCTAssertEqual(c, plain)
        c = [Float](repeating: 1, count: 8)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 4, 3, 2, a, 3, b, 4, 0.5, &c, 4)
        XCTAssertEqual(c, plain.map { 2 * $0 + 0.5 })
        c = [Float](repeating: .nan, count: 8)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasTrans, 2, 4, 3, 1, a, 2, b, 3, 0, &c, 4)
        XCTAssertEqual(c, product(2, 4, 3, { a[$1 * 2 + $0] }, { b[$1 * 3 + $0] }), "where beta is 0, NaN is gone")
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 2, 4, 3, 1, a, 2, b, 3, 0, &c, 2)
        let byColumns = product(2, 4, 3, { a[$1 * 2 + $0] }, { b[$1 * 3 + $0] })
        XCTAssertEqual(c, (0..<8).map { byColumns[$0 % 2 * 4 + $0 / 2] })
        var y: [Float] = [1, 2, 3]
        cblas_sgemv(CblasRowMajor, CblasTrans, 2, 3, 1, a, 3, [5, 0, 7], 2, 1, &y, -1)
        let expected = (0..<3).map { (i: Int) -> Float in
            let sum: Float = 5 * a[2 - i] + 7 * a[5 - i]
            return Float(i + 1) + sum
        }
        XCTAssertEqual(y, expected)
        var turned = [Float](repeating: 0, count: 6), moved = [Float](repeating: 0, count: 10)
        vDSP_mtrans(a, 1, &turned, 1, 3, 2)
        XCTAssertEqual(turned, [a[0], a[3], a[1], a[4], a[2], a[5]])
        vDSP_mmov(a, &moved, 2, 2, 3, 5)
        XCTAssertEqual(moved, [a[0], a[1], 0, 0, 0, a[3], a[4], 0, 0, 0])
    }

    func testVectorsOfBLASAndFunctions() {
        let x = drawn(count), n = Int32(count)
        var y = x
        cblas_saxpy(n, 2, x, 1, &y, 1)
        XCTAssertEqual(y, x.map { 3 * $0 })
        cblas_sscal(n, 0.5, &y, 1)
        XCTAssertEqual(y, x.map { 1.5 * $0 })
        cblas_scopy(n, x, -1, &y, 1)
        XCTAssertEqual(y, x.reversed())
        XCTAssertEqual(cblas_sdot(n, x, 1, y, -1), x.reduce(0) { $0 + $1 * $1 })
        XCTAssertEqual(cblas_sasum(n, x, 1), x.reduce(0) { $0 + abs($1) })
        XCTAssertEqual(cblas_dnrm2(2, [3, 4], 1), 5)
        var count = n
        vvexpf(&y, x, &count)
        XCTAssertEqual(y, x.map { exp($0) })
        vvpowf(&y, [Float](repeating: 2, count: self.count), x, &count)
        XCTAssertEqual(y, x.map { pow($0, 2) })
    }

    func testClippedAndScaledVectors() {
        let a = drawn(count)
        var c = [Float](repeating: 0, count: count), low: Float = -2, high: Float = 3.5
        vDSP_vclip(a, 1, &low, &high, &c, 1, vDSP_Length(count))
        XCTAssertEqual(c, a.map { $0 < -2 ? -2 : $0 > 3.5 ? 3.5 : $0 })
        vDSP_vsmsa(a, 1, &low, &high, &c, 1, vDSP_Length(count))
        XCTAssertEqual(c, a.map { $0 * -2 + 3.5 })
        let powers = a.map { abs($0) + 1 }
        var zero: Float = 2
        vDSP_vdbcon(powers, 1, &zero, &c, 1, vDSP_Length(count), 0)
        for (each, power) in zip(c, powers) { XCTAssertEqual(each, 10 * log10(power / 2), accuracy: 1e-5) }
        vDSP_vdbcon(powers, 1, &zero, &c, 1, vDSP_Length(count), 1)
        for (each, power) in zip(c, powers) { XCTAssertEqual(each, 20 * log10(power / 2), accuracy: 1e-5) }
    }

    /// Compares the transform with its defining sum in double.
    func testTransforms() throws {
        let setup = try XCTUnwrap(vDSP_create_fftsetup(6, FFTRadix(kFFTRadix2)))
        defer { vDSP_destroy_fftsetup(setup) }
        XCTAssertNil(vDSP_create_fftsetup(6, 1))
        for log2n in [0, 1, 3, 6] {
            let n = 1 << log2n
            var re = drawn(n), im = drawn(n), outRe = re, outIm = im
            let (x, y) = (re.map(Double.init), im.map(Double.init))
            for (direction, sign) in [(kFFTDirection_Forward, -1.0), (kFFTDirection_Inverse, 1.0)] {
                re.withUnsafeMutableBufferPointer { re in
                    im.withUnsafeMutableBufferPointer { im in
                        outRe.withUnsafeMutableBufferPointer { outRe in
                            outIm.withUnsafeMutableBufferPointer { outIm in
                                var a = DSPSplitComplex(realp: re.baseAddress!, imagp: im.baseAddress!)
                                var c = DSPSplitComplex(realp: outRe.baseAddress!, imagp: outIm.baseAddress!)
                                vDSP_fft_zop(
                                    setup, &a, 1, &c, 1, vDSP_Length(log2n), FFTDirection(direction))
                            }
                        }
                    }
                }
                for j in 0..<n {
                    var sum = (re: 0.0, im: 0.0)
                    for k in 0..<n {
                        let angle = sign * 2 * Double.pi * Double(j * k) / Double(n)
                        sum.re += x[k] * cos(angle) - y[k] * sin(angle)
                        sum.im += x[k] * sin(angle) + y[k] * cos(angle)
                    }
                    XCTAssertEqual(Double(outRe[j]), sum.re, accuracy: 1e-5 * Double(n))
                    XCTAssertEqual(Double(outIm[j]), sum.im, accuracy: 1e-5 * Double(n))
                }
            }
            var magnitudes = [Float](repeating: 0, count: n)
            re.withUnsafeMutableBufferPointer { re in
                im.withUnsafeMutableBufferPointer { im in
                    var a = DSPSplitComplex(realp: re.baseAddress!, imagp: im.baseAddress!)
                    vDSP_zvmags(&a, 1, &magnitudes, 1, vDSP_Length(n))
                }
            }
            XCTAssertEqual(magnitudes, zip(re, im).map { $0 * $0 + $1 * $1 })
        }
    }
}
