import Accelerate
import XCTest

/// vDSP's filters, interpolations and generators with random values, compared with formulas on arrays.
final class AccelerateInterpolationTests: XCTestCase {
    private let count = 11
    private var seed: UInt32 = 35

    /// Multiples of 1/8 below 8, so that products and sums are exact.
    private func drawn(_ count: Int) -> [Float] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Float(Int(seed >> 16) % 127 - 63) / 8
        }
    }

    private var length: vDSP_Length { vDSP_Length(count) }
    private var zeros: [Float] { [Float](repeating: 0, count: count) }

    func testFilters() {
        let a = drawn(3 * count + 4), filter = drawn(4)
        var c = zeros
        vDSP_desamp(a, 3, filter, &c, length, 4)
        XCTAssertEqual(c, (0..<count).map { i in (0..<4).reduce(0) { $0 + a[3 * i + $1] * filter[$1] } })

        let b: [Float] = [1, 0.5, -2, 0.5, 0.25]
        var y = [Float](repeating: 1, count: 2 * (count + 2))
        vDSP_deq22(a, 1, b, &y, 2, length)
        var expected: [Float] = [1, 1]
        for n in 2..<count + 2 {
            let forward = a[n] * b[0] + a[n - 1] * b[1] + a[n - 2] * b[2]
            expected.append(forward - expected[n - 1] * b[3] - expected[n - 2] * b[4])
        }
        XCTAssertEqual((0..<count + 2).map { y[2 * $0] }, expected)
    }

    func testInterpolations() {
        let a = drawn(9), positions = (0..<count).map { Float($0) * 0.75 }
        var c = zeros
        vDSP_vlint(a, positions, 1, &c, 1, length, 9)
        let linear: [Float] = positions.map { p in
            let n = Int(p)
            return n == 8 ? a[8] : a[n] + (p - Float(n)) * (a[n + 1] - a[n])
        }
        XCTAssertEqual(c, linear)
        vDSP_vlint([5], [0], 1, &c, 1, 1, 1)
        XCTAssertEqual(c[0], 5, "a whole position needs no next element")

        // The parabola of x² through three of its points is x² itself.
        vDSP_vqint((0..<10).map { Float($0 * $0) }, positions, 1, &c, 1, length, 10)
        XCTAssertEqual(c, positions.map { $0 * $0 })
        vDSP_vindex(a, positions, 1, &c, 1, length)
        XCTAssertEqual(c, positions.map { a[Int($0)] })

        var scale: Float = 2, offset: Float = -3
        vDSP_vtabi(positions, 1, &scale, &offset, a, 9, &c, 1, length)
        let table: [Float] = positions.map { p in
            let at = min(max(2 * p - 3, 0), 8), n = Int(at)
            return n == 8 ? a[8] : a[n] + (at - Float(n)) * (a[n + 1] - a[n])
        }
        XCTAssertEqual(c, table)
        vDSP_vgenp([2, 4, 0], 1, [1, 3, 7], 1, &c, 1, length, 3)
        XCTAssertEqual(c, [2, 2, 3, 4, 3, 2, 1, 0, 0, 0, 0])
    }

    func testPolynomialsRampsAndMixtures() {
        let a = drawn(count), b = drawn(count)
        var c = zeros, d = zeros
        vDSP_vpoly([2, 0, -1], 1, a, 1, &c, 1, length, 2)
        XCTAssertEqual(c, a.map { 2 * $0 * $0 - 1 })
        var first: Float = 3, last: Float = 8
        vDSP_vgen(&first, &last, &c, 1, length)
        XCTAssertEqual(c, (0..<count).map { 3 + Float($0) / 2 })
        vDSP_vtmerg([Float](repeating: 0, count: count), 1, [Float](repeating: 5, count: count), 1, &c, 1, length)
        XCTAssertEqual(c[0], 0)
        XCTAssertEqual(c[count - 1], 5)
        XCTAssertEqual(c[count / 2], 2.5)
        var start: Float = 1, step: Float = 0.25
        vDSP_vrampmul(a, 1, &start, &step, &c, 1, length)
        XCTAssertEqual(c, (0..<count).map { (1 + Float($0) / 4) * a[$0] })
        XCTAssertEqual(start, 1 + Float(count) / 4)
        d = b
        start = 1
        vDSP_vrampmuladd(a, 1, &start, &step, &d, 1, length)
        XCTAssertEqual(d, zip(b, c).map { $0 + $1 })
        var earlier: Float = 3
        d = b
        vDSP_vavlin(a, 1, &earlier, &d, 1, length)
        XCTAssertEqual(d, (0..<count).map { (3 * b[$0] + a[$0]) / 4 })
        vDSP_vaddsub(a, 1, b, 1, &c, 1, &d, 1, length)
        XCTAssertEqual(c, zip(a, b).map { $1 + $0 })
        XCTAssertEqual(d, zip(a, b).map { $1 - $0 })
        (c, d) = (a, b)
        vDSP_vswap(&c, 1, &d, 1, length)
        XCTAssertEqual(c, b)
        XCTAssertEqual(d, a)
    }

    /// Simpson's rule is exact for x².
    func testIntegralBySimpson() {
        var c = zeros, step: Float = 3
        vDSP_vsimps((0..<count).map { Float($0 * $0) }, 1, &step, &c, 1, length)
        for n in stride(from: 0, to: count, by: 2) { XCTAssertEqual(c[n], Float(n * n * n), accuracy: 1e-4) }
        XCTAssertEqual(c[1], 1.5)
    }
}
