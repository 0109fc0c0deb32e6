import Accelerate
import XCTest

/// Complex vectors and transforms of real ones, compared with the formulas in double.
final class AccelerateComplexTests: XCTestCase {
    private var seed: UInt32 = 5

    private func drawn(_ count: Int) -> [Double] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Double(Int(seed >> 16) % 127 - 63) / 8
        }
    }

    /// A split vector that owns its memory and lends it to calls.
    private final class Split {
        var re: [Double], im: [Double]
        init(_ re: [Double], _ im: [Double]) { (self.re, self.im) = (re, im) }

        func with<Result>(_ body: (inout DSPDoubleSplitComplex) -> Result) -> Result {
            re.withUnsafeMutableBufferPointer { re in
                im.withUnsafeMutableBufferPointer { im in
                    var split = DSPDoubleSplitComplex(realp: re.baseAddress!, imagp: im.baseAddress!)
                    return body(&split)
                }
            }
        }
    }

    private func assertEqual(_ a: [Double], _ b: [Double], _ what: String) {
        XCTAssertEqual(a.count, b.count)
        for (x, y) in zip(a, b) { XCTAssertEqual(x, y, accuracy: 1e-12 * max(1, abs(y)), what) }
    }

    func testArithmetic() {
        let n = 9, count = vDSP_Length(9)
        let a = Split(drawn(n), drawn(n)), b = Split(drawn(n), drawn(n).map { abs($0) + 1 }),
            c = Split(drawn(n), drawn(n))
        func check(_ what: String, _ call: ComplexBinary<DSPDoubleSplitComplex>, _ formula: (Int) -> (Double, Double)) {
            a.with { a in b.with { b in c.with { c in call(&a, 1, &b, 1, &c, 1, count) } } }
            assertEqual(c.re, (0..<n).map { formula($0).0 }, what)
            assertEqual(c.im, (0..<n).map { formula($0).1 }, what)
        }
        check("add", vDSP_zvaddD) { (a.re[$0] + b.re[$0], a.im[$0] + b.im[$0]) }
        check("subtract", vDSP_zvsubD) { (a.re[$0] - b.re[$0], a.im[$0] - b.im[$0]) }
        check("multiply", { vDSP_zvmulD($0, $1, $2, $3, $4, $5, $6, 1) }) {
            (a.re[$0] * b.re[$0] - a.im[$0] * b.im[$0], a.re[$0] * b.im[$0] + a.im[$0] * b.re[$0])
        }
        check("multiply the conjugate", { vDSP_zvmulD($0, $1, $2, $3, $4, $5, $6, -1) }) {
            (a.re[$0] * b.re[$0] + a.im[$0] * b.im[$0], a.re[$0] * b.im[$0] - a.im[$0] * b.re[$0])
        }
        check("divide", { vDSP_zvdivD($2, $3, $0, $1, $4, $5, $6) }) {
            let square = b.re[$0] * b.re[$0] + b.im[$0] * b.im[$0]
            return (
                (a.re[$0] * b.re[$0] + a.im[$0] * b.im[$0]) / square,
                (a.im[$0] * b.re[$0] - a.re[$0] * b.im[$0]) / square
            )
        }
        let real = drawn(n)
        a.with { a in c.with { c in vDSP_zrvsubD(&a, 1, real, 1, &c, 1, count) } }
        assertEqual(c.re + c.im, zip(a.re, real).map { $0 - $1 } + a.im, "subtract reals")
        b.with { b in c.with { c in vDSP_zvconjD(&b, 1, &c, 1, count) } }
        assertEqual(c.re + c.im, b.re + b.im.map { -$0 }, "conjugate")
        var values = real
        a.with { a in vDSP_zvabsD(&a, 1, &values, 1, count) }
        assertEqual(values, zip(a.re, a.im).map { hypot($0, $1) }, "magnitude")
        a.with { a in vDSP_zvphasD(&a, 1, &values, 1, count) }
        assertEqual(values, zip(a.im, a.re).map { atan2($0, $1) }, "phase")
    }

    func testSplittingAndBack() {
        let numbers = (0..<5).map { DSPDoubleComplex(real: Double($0), imag: -Double($0) - 0.5) }
        let split = Split(drawn(5), drawn(5))
        split.with { split in vDSP_ctozD(numbers, 2, &split, 1, 5) }
        assertEqual(split.re + split.im, numbers.map(\.real) + numbers.map(\.imag), "split")
        var back = [DSPDoubleComplex](repeating: .init(), count: 5)
        split.with { split in vDSP_ztocD(&split, 1, &back, 2, 5) }
        assertEqual(back.map(\.real) + back.map(\.imag), numbers.map(\.real) + numbers.map(\.imag), "joined")
    }

    func testTransformsOfReals() throws {
        let setup = try XCTUnwrap(vDSP_create_fftsetupD(6, FFTRadix(kFFTRadix2)))
        defer { vDSP_destroy_fftsetupD(setup) }
        for log2n in 1...6 {
            let n = 1 << log2n, half = n / 2, x = drawn(n)
            let packed = Split((0..<half).map { x[2 * $0] }, (0..<half).map { x[2 * $0 + 1] })
            packed.with { vDSP_fft_zripD(setup, &$0, 1, vDSP_Length(log2n), FFTDirection(kFFTDirection_Forward)) }
            func sum(_ k: Int, _ part: (Double) -> Double) -> Double {
                let step: Double = -2 * Double.pi * Double(k) / Double(n)
                return x.enumerated().reduce(0.0) { $0 + 2 * $1.element * part(step * Double($1.offset)) }
            }
            XCTAssertEqual(packed.re[0], sum(0, cos), accuracy: 1e-10)
            XCTAssertEqual(packed.im[0], sum(half, cos), accuracy: 1e-10)
            for k in 1..<max(half, 1) {
                XCTAssertEqual(packed.re[k], sum(k, cos), accuracy: 1e-10)
                XCTAssertEqual(packed.im[k], sum(k, sin), accuracy: 1e-10)
            }
            packed.with { vDSP_fft_zripD(setup, &$0, 1, vDSP_Length(log2n), FFTDirection(kFFTDirection_Inverse)) }
            for i in 0..<half {
                XCTAssertEqual(packed.re[i], 2 * Double(n) * x[2 * i], accuracy: 1e-9)
                XCTAssertEqual(packed.im[i], 2 * Double(n) * x[2 * i + 1], accuracy: 1e-9)
            }
        }
    }
}
