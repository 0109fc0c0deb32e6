import Accelerate
import XCTest

/// The Swift forms of vDSP and vForce, on each kind of vector, compared with formulas.
final class AccelerateFormsTests: XCTestCase {
    private let a: [Float] = [1, -2, 3.5, 0.25], b: [Float] = [4, 0.5, -1, 8]

    func testPairs() {
        XCTAssertEqual(vDSP.add(a, b), [5, -1.5, 2.5, 8.25])
        XCTAssertEqual(vDSP.subtract(a, b), [-3, -2.5, 4.5, -7.75])
        XCTAssertEqual(vDSP.multiply(a, b), [4, -1, -3.5, 2])
        XCTAssertEqual(vDSP.divide(a, b), [0.25, -4, -3.5, 0.03125])
        XCTAssertEqual(vDSP.maximum(a, b), [4, 0.5, 3.5, 8])
        XCTAssertEqual(vDSP.minimum(a, b), [1, -2, -1, 0.25])
        XCTAssertEqual(vDSP.hypot([3.0, 5], [4.0, 12]), [5, 13])
        XCTAssertEqual(vDSP.add(multiplication: (a: a, b: 2), b), [6, -3.5, 6, 8.5])
        XCTAssertEqual(vDSP.add(multiplication: (a: a, b: b), a), [5, -3, 0, 2.25])
    }

    func testScalars() {
        XCTAssertEqual(vDSP.add(1, a), [2, -1, 4.5, 1.25])
        XCTAssertEqual(vDSP.multiply(2, a), [2, -4, 7, 0.5])
        XCTAssertEqual(vDSP.divide(a, 2), [0.5, -1, 1.75, 0.125])
        XCTAssertEqual(vDSP.divide(2, b), [0.5, 4, -2, 0.25])
        XCTAssertEqual(vDSP.clip(a, to: -1...2), [1, -1, 2, 0.25])
    }

    func testSingles() {
        XCTAssertEqual(vDSP.absolute(a), [1, 2, 3.5, 0.25])
        XCTAssertEqual(vDSP.negative(a), [-1, 2, -3.5, -0.25])
        XCTAssertEqual(vDSP.square(a), [1, 4, 12.25, 0.0625])
        XCTAssertEqual(vDSP.signedSquare(a), [1, -4, 12.25, 0.0625])
        XCTAssertEqual(vDSP.ramp(in: 0...1.0, count: 3), [0, 0.5, 1])
        XCTAssertEqual(vDSP.ramp(withInitialValue: Float(1), increment: 2, count: 3), [1, 3, 5])
        XCTAssertEqual(vDSP.floatToDouble(a), [1, -2, 3.5, 0.25])
        XCTAssertEqual(vDSP.doubleToFloat([1.5, 2]), [1.5, 2])
    }

    func testReductions() {
        XCTAssertEqual(vDSP.sum(a), 2.75)
        XCTAssertEqual(vDSP.mean(a), 0.6875)
        XCTAssertEqual(vDSP.sumOfSquares(a), 17.3125)
        XCTAssertEqual(vDSP.sumOfMagnitudes(a), 6.75)
        XCTAssertEqual(vDSP.meanSquare(a), 4.328125)
        XCTAssertEqual(vDSP.meanMagnitude(a), 1.6875)
        XCTAssertEqual(vDSP.rootMeanSquare([3.0, 3]), 3)
        XCTAssertEqual(vDSP.dot(a, b), 1.5)
        XCTAssertEqual(vDSP.distanceSquared([1.0, 2], [4.0, 6]), 25)
        XCTAssertEqual(vDSP.maximumMagnitude(a), 3.5)
        XCTAssertEqual(vDSP.minimumMagnitude(a), 0.25)
        XCTAssertTrue(vDSP.indexOfMaximum(a) == (2, 3.5))
        XCTAssertTrue(vDSP.indexOfMinimum(a) == (1, -2))
    }

    /// Slices, contiguous arrays and buffer pointers, and forms that store in them.
    func testKindsOfVectors() {
        var stored = [Float](repeating: 0, count: 3)
        vDSP.add(a[1...], ContiguousArray(b.prefix(3)), result: &stored)
        XCTAssertEqual(stored, [2, 4, -0.75])
        var pointer = UnsafeMutableBufferPointer<Float>.allocate(capacity: 3)
        defer { pointer.deallocate() }
        vDSP.multiply(2, stored, result: &pointer)
        XCTAssertEqual(Array(pointer), [4, 8, -1.5])
        stored.withUnsafeBufferPointer { vDSP.square($0, result: &pointer) }
        XCTAssertEqual(Array(pointer), [4, 16, 0.5625])
        vDSP.fill(&stored, with: 7)
        XCTAssertEqual(stored, [7, 7, 7])
        vDSP.clear(&stored[1...])
        XCTAssertEqual(stored, [7, 0, 0])
        vDSP.reverse(&stored)
        XCTAssertEqual(stored, [0, 0, 7])
    }

    func testFunctions() {
        let x: [Double] = [0.5, 1, 2.25]
        let functions: [([Double], (Double) -> Double)] = [
            (vForce.exp(x), exp), (vForce.log(x), log), (vForce.sin(x), sin), (vForce.cos(x), cos),
            (vForce.tanh(x), tanh), (vForce.sqrt(x), { $0.squareRoot() }), (vForce.rsqrt(x), { 1 / $0.squareRoot() }),
            (vForce.reciprocal(x), { 1 / $0 }), (vForce.floor(x), floor), (vForce.ceil(x), ceil),
            (vForce.nearestInteger(x), rint), (vForce.log1p(x), log1p), (vForce.expm1(x), expm1),
        ]
        for (values, formula) in functions { XCTAssertEqual(values, x.map(formula)) }
        XCTAssertEqual(vForce.pow(bases: x, exponents: [2, 3, 0.5]), [0.25, 1, 1.5])
        XCTAssertEqual(vForce.atan2(x: [1.0], y: [2.0]), [atan2(2, 1)])
        var stored: [Float] = [0, 0]
        vForce.exp([0, 1] as [Float], result: &stored)
        XCTAssertEqual(stored, [1, Float(exp(1.0))])
    }
}
