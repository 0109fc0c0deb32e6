import Accelerate
import XCTest

/// vDSP's combinations of several strided vectors with random values, compared with formulas on arrays.
final class AccelerateCombinationTests: XCTestCase {
    private let count = 13
    private var seed: UInt32 = 34

    /// Multiples of 1/8 below 8, so that products and sums are exact.
    private func drawn(_ count: Int) -> [Float] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Float(Int(seed >> 16) % 127 - 63) / 8
        }
    }

    private func every(_ stride: Int, of values: [Float]) -> [Float] { (0..<count).map { values[$0 * stride] } }

    private func assertThree(
        _ call: TernaryVector<Float>, line: UInt = #line, _ formula: (Float, Float, Float) -> Float
    ) {
        let a = drawn(2 * count), b = drawn(3 * count), c = drawn(count)
        var result = [Float](repeating: 0, count: 2 * count)
        call(a, 2, b, 3, c, 1, &result, 2, vDSP_Length(count))
        let expected: [Float] = (0..<count).map { formula(a[2 * $0], b[3 * $0], c[$0]) }
        XCTAssertEqual(every(2, of: result), expected, line: line)
    }

    private func assertFour(
        _ call: QuaternaryVector<Float>, line: UInt = #line, _ formula: (Float, Float, Float, Float) -> Float
    ) {
        let a = drawn(2 * count), b = drawn(3 * count), c = drawn(count), d = drawn(2 * count)
        var result = [Float](repeating: 0, count: 2 * count)
        call(a, 2, b, 3, c, 1, d, 2, &result, 2, vDSP_Length(count))
        let expected: [Float] = (0..<count).map { formula(a[2 * $0], b[3 * $0], c[$0], d[2 * $0]) }
        XCTAssertEqual(every(2, of: result), expected, line: line)
    }

    private func assertPair(
        _ call: BinaryVectorByScalar<Float>, line: UInt = #line, _ formula: (Float, Float) -> Float
    ) {
        let a = drawn(2 * count), b = drawn(3 * count)
        var result = [Float](repeating: 0, count: count), scalar: Float = 2.5
        call(a, 2, b, 3, &scalar, &result, 1, vDSP_Length(count))
        let expected: [Float] = (0..<count).map { formula(a[2 * $0], b[3 * $0]) }
        XCTAssertEqual(result, expected, line: line)
    }

    func testSeveralVectors() {
        assertThree(vDSP_vam) { ($0 + $1) * $2 }
        assertThree(vDSP_vsbm) { ($0 - $1) * $2 }
        assertThree(vDSP_vmsb) { $0 * $1 - $2 }
        assertFour(vDSP_vaam) { ($0 + $1) * ($2 + $3) }
        assertFour(vDSP_vsbsbm) { ($0 - $1) * ($2 - $3) }
        assertFour(vDSP_vmma) { $0 * $1 + $2 * $3 }
        assertFour(vDSP_vmmsb) { $0 * $1 - $2 * $3 }
        assertFour(vDSP_vpythg) { a, b, c, d in
            let x = a - c, y = b - d
            return (x * x + y * y).squareRoot()
        }
        assertPair(vDSP_vasm) { ($0 + $1) * 2.5 }
        assertPair(vDSP_vsbsm) { ($0 - $1) * 2.5 }
        assertPair(vDSP_vmsa) { $0 * $1 + 2.5 }
        assertPair(vDSP_vintb) { $0 + 2.5 * ($1 - $0) }
    }

    func testDistancesAndSignedSquares() {
        let a = drawn(count), b = drawn(count)
        var result = [Float](repeating: 0, count: count)
        vDSP_vdist(a, 1, b, 1, &result, 1, vDSP_Length(count))
        for i in 0..<count { XCTAssertEqual([result[i]], [(a[i] * a[i] + b[i] * b[i]).squareRoot()]) }
        vDSP_vssq(a, 1, &result, 1, vDSP_Length(count))
        for i in 0..<count { XCTAssertEqual([result[i]], [a[i] * abs(a[i])]) }
    }

    /// Running sums, with loops as formulas.
    func testSumsOfPositions() {
        let a = drawn(count + 3)
        var scalar: Float = 0.5, result = [Float](repeating: 9, count: count), expected = result
        func assertRunning(_ call: VectorByScalar<Float>, line: UInt = #line, _ term: (Int) -> Float) {
            var sum: Float = 0
            for i in 0..<count {
                if i > 0 { sum += term(i) }
                expected[i] = sum
            }
            call(a, 1, &scalar, &result, 1, vDSP_Length(count))
            XCTAssertEqual(result, expected, line: line)
        }
        assertRunning(vDSP_vrsum) { a[$0] / 2 }
        assertRunning(vDSP_vtrapz) { (a[$0 - 1] + a[$0]) / 4 }
        vDSP_vswsum(a, 1, &result, 1, vDSP_Length(count), 4)
        for i in 0..<count { XCTAssertEqual([result[i]], [a[i] + a[i + 1] + a[i + 2] + a[i + 3]]) }
        vDSP_vswmax(a, 1, &result, 1, vDSP_Length(count), 4)
        for i in 0..<count { XCTAssertEqual([result[i]], [max(a[i], a[i + 1], a[i + 2], a[i + 3])]) }
    }
}
