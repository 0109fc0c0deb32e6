import Accelerate
import XCTest

/// Lengths and quotients of floats whose squares overflow or underflow, compared with the formulas in double.
final class AccelerateExtremeTests: XCTestCase {
    private let count = 200
    private var seed: UInt32 = 71

    private func next() -> Int {
        seed = seed &* 1_664_525 &+ 1_013_904_223
        return Int(seed >> 16)
    }

    /// Floats of all exponents from the smallest subnormal number on.
    private func drawn() -> [Float] {
        (0..<count).map { _ in
            let significand: Float = 1 + Float(next()) / 65536
            return Float(sign: next() % 2 == 0 ? .plus : .minus, exponent: next() % 275 - 149, significand: significand)
        }
    }

    private func length(_ x: Float, _ y: Float) -> Double {
        let (a, b) = (Double(x), Double(y))
        return (a * a + b * b).squareRoot()
    }

    private func assertNear(_ result: [Float], _ exact: [Double], ulps: Float) {
        for (value, expected) in zip(result, exact) {
            guard abs(expected) < Double(Float.greatestFiniteMagnitude) else { continue }
            XCTAssertEqual(value, Float(expected), accuracy: ulps * max(Float(expected).ulp, .leastNonzeroMagnitude))
        }
    }

    func testLengths() {
        var x = drawn(), y = drawn(), result = [Float](repeating: 0, count: count)
        let exact: [Double] = (0..<count).map { length(x[$0], y[$0]) }
        vDSP_vdist(x, 1, y, 1, &result, 1, vDSP_Length(count))
        assertNear(result, exact, ulps: 2)
        assertNear(vDSP.hypot(x, y), exact, ulps: 2)
        x.withUnsafeMutableBufferPointer { x in
            y.withUnsafeMutableBufferPointer { y in
                var numbers = DSPSplitComplex(realp: x.baseAddress!, imagp: y.baseAddress!)
                vDSP_zvabs(&numbers, 1, &result, 1, vDSP_Length(count))
            }
        }
        assertNear(result, exact, ulps: 2)
        for i in 0..<count { assertNear([cblas_snrm2(2, [x[i], y[i]], 1)], [exact[i]], ulps: 2) }
    }

    func testLengthsOfInfinitiesAndNaN() {
        let x: [Float] = [.infinity, .nan, 3, .nan, 0, -0], y: [Float] = [1, -.infinity, .nan, .nan, 0, 0]
        var result = [Float](repeating: 0, count: 6)
        vDSP_vdist(x, 1, y, 1, &result, 1, 6)
        XCTAssertEqual(result.map(\.isNaN), [false, false, true, true, false, false])
        XCTAssertEqual([result[0], result[1], result[4], result[5]], [.infinity, .infinity, 0, 0])
    }

    func testQuotients() {
        var (re, im, ofRe, ofIm) = (drawn(), drawn(), drawn(), drawn())
        var (x, y) = ([Float](repeating: 0, count: count), [Float](repeating: 0, count: count))
        func lend(_ re: inout [Float], _ im: inout [Float], _ body: (inout DSPSplitComplex) -> Void) {
            re.withUnsafeMutableBufferPointer { re in
                im.withUnsafeMutableBufferPointer { im in
                    var numbers = DSPSplitComplex(realp: re.baseAddress!, imagp: im.baseAddress!)
                    body(&numbers)
                }
            }
        }
        lend(&re, &im) { b in
            lend(&ofRe, &ofIm) { a in lend(&x, &y) { c in vDSP_zvdiv(&a, 1, &b, 1, &c, 1, vDSP_Length(count)) } }
        }
        for i in 0..<count {
            let a = Double(re[i]), b = Double(im[i]), c = Double(ofRe[i]), d = Double(ofIm[i])
            let square: Double = c * c + d * d
            let quotient: Double = length(re[i], im[i]) / square.squareRoot()
            guard quotient < 1e38, quotient > 1e-30 else { continue }
            let exactRe: Double = (a * c + b * d) / square
            let exactIm: Double = (b * c - a * d) / square
            XCTAssertEqual(Double(x[i]), exactRe, accuracy: 1e-6 * quotient)
            XCTAssertEqual(Double(y[i]), exactIm, accuracy: 1e-6 * quotient)
        }
    }
}
