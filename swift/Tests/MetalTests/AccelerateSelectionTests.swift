import Accelerate
import XCTest

/// Selections, conversions and functions of Accelerate on random vectors, compared with formulas on arrays.
final class AccelerateSelectionTests: XCTestCase {
    private var seed: UInt32 = 71

    /// Multiples of 1/8 between -8 and 8.
    private func drawn(_ count: Int) -> [Double] {
        (0..<count).map { _ in
            seed = seed &* 1_664_525 &+ 1_013_904_223
            return Double(Int(seed >> 16) % 127 - 63) / 8
        }
    }

    func testLimits() {
        for count in [1, 2, 19] {
            let a = drawn(count), n = vDSP_Length(count)
            var c = a, low = -2.0, high = 3.5
            vDSP_vthrD(a, 1, &low, &c, 1, n)
            XCTAssertEqual(c, a.map { max($0, -2) })
            vDSP_vthresD(a, 1, &low, &c, 1, n)
            XCTAssertEqual(c, a.map { $0 >= -2 ? $0 : 0 })
            vDSP_viclipD(a, 1, &low, &high, &c, 1, n)
            XCTAssertEqual(c, a.map { $0 <= -2 || $0 >= 3.5 ? $0 : $0 < 0 ? -2 : 3.5 })
            vDSP_vlimD(a, 1, &low, &high, &c, 1, n)
            XCTAssertEqual(c, a.map { $0 >= -2 ? 3.5 : -3.5 })
            var below: vDSP_Length = 9, above: vDSP_Length = 9
            vDSP_vclipcD(a, 1, &low, &high, &c, 1, n, &below, &above)
            XCTAssertEqual(c, a.map { min(max($0, -2), 3.5) })
            XCTAssertEqual([Int(below), Int(above)], [a.filter { $0 < -2 }.count, a.filter { $0 > 3.5 }.count])
            let b = drawn(count)
            vDSP_vmaxmgD(a, 1, b, 1, &c, 1, n)
            XCTAssertEqual(c, zip(a, b).map { max(abs($0), abs($1)) })
            vDSP_vminmgD(a, 1, b, 1, &c, 1, n)
            XCTAssertEqual(c, zip(a, b).map { min(abs($0), abs($1)) })
            var mean = 0.0
            vDSP_meamgvD(a, 1, &mean, n)
            XCTAssertEqual(mean, a.map(abs).reduce(0, +) / Double(count), accuracy: 1e-14)
        }
    }

    func testOrders() {
        for (count, stride) in [(1, 1), (8, 1), (9, 2)] {
            let a = drawn(count * stride), n = vDSP_Length(count)
            var reversed = a
            vDSP_vrvrsD(&reversed, stride, n)
            let every = (0..<count).map { $0 * stride }
            XCTAssertEqual(every.map { reversed[$0] }, every.reversed().map { a[$0] })
            XCTAssertEqual(
                a.indices.filter { $0 % stride != 0 }.map { reversed[$0] },
                a.indices.filter { $0 % stride != 0 }.map { a[$0] })
            var indices = (0..<count).map { vDSP_Length($0) }
            vDSP_vsortiD(a, &indices, nil, n, -1)
            XCTAssertEqual(indices.map { a[Int($0)] }, a[0..<count].sorted(by: >))
            var gathered = [Double](repeating: 0, count: count)
            vDSP_vgathrD(a, indices.map { $0 + 1 }, 1, &gathered, 1, n)
            XCTAssertEqual(gathered, a[0..<count].sorted(by: >))
            var kept = [Double](repeating: 0, count: count)
            let gate = (0..<count).map { Double($0 % 3) }
            vDSP_vcmprsD(a, 1, gate, 1, &kept, 1, n)
            let expected = (0..<count).filter { $0 % 3 != 0 }.map { a[$0] }
            XCTAssertEqual(Array(kept[0..<expected.count]), expected)
        }
    }

    func testNormalizationConvolutionAndWindows() {
        let a = drawn(23), n = vDSP_Length(23)
        var c = a, mean = 0.0, deviation = 0.0
        vDSP_normalizeD(a, 1, &c, 1, &mean, &deviation, n)
        let average = a.reduce(0, +) / 23
        let spread = (a.map { ($0 - average) * ($0 - average) }.reduce(0, +) / 23).squareRoot()
        XCTAssertEqual(mean, average, accuracy: 1e-14)
        XCTAssertEqual(deviation, spread, accuracy: 1e-14)
        for (each, value) in zip(c, a) { XCTAssertEqual(each, (value - average) / spread, accuracy: 1e-14) }
        let filter = drawn(4)
        var filtered = [Double](repeating: 0, count: 20)
        vDSP_convD(a, 1, filter, 1, &filtered, 1, 20, 4)
        XCTAssertEqual(filtered, (0..<20).map { i in (0..<4).reduce(0) { $0 + a[i + $1] * filter[$1] } })
        filter.withUnsafeBufferPointer { vDSP_convD(a, 1, $0.baseAddress! + 3, -1, &filtered, 1, 20, 4) }
        XCTAssertEqual(filtered, (0..<20).map { i in (0..<4).reduce(0) { $0 + a[i + $1] * filter[3 - $1] } })
        var window = [Float](repeating: -1, count: 8)
        vDSP_hann_window(&window, 8, Int32(vDSP_HANN_DENORM))
        for (i, value) in window.enumerated() {
            XCTAssertEqual(Double(value), pow(sin(.pi * Double(i) / 8), 2), accuracy: 1e-7)
        }
        vDSP_hann_window(&window, 8, vDSP_HANN_NORM)
        XCTAssertEqual(window[2], Float(2.0 / 3).squareRoot(), accuracy: 1e-7)
        window = [Float](repeating: -1, count: 8)
        vDSP_hamm_window(&window, 8, vDSP_HALF_WINDOW)
        XCTAssertEqual(window[0], 0.08, accuracy: 1e-7)
        XCTAssertEqual(window[2], 0.54, accuracy: 1e-7)
        XCTAssertEqual(window[4], -1, "a half window writes half of the values")
        vDSP_blkman_window(&window, 8, 0)
        XCTAssertEqual(window[4], 1, accuracy: 1e-6)
    }

    /// Filters that are not symmetric.
    func testFiltersOfMatrices() {
        for (rows, columns, p, q) in [(5, 7, 3, 3), (6, 5, 5, 5), (7, 9, 3, 5), (2, 2, 3, 3)] {
            let a = drawn(rows * columns), kernel = drawn(p * q)
            var expected = [Double](repeating: 0, count: rows * columns)
            for row in 0..<rows where row >= p / 2 && row + p / 2 < rows {
                for column in 0..<columns where column >= q / 2 && column + q / 2 < columns {
                    for at in 0..<p * q {
                        let (j, k) = (row + at / q - p / 2, column + at % q - q / 2)
                        expected[row * columns + column] += a[j * columns + k] * kernel[at]
                    }
                }
            }
            let filtered = vDSP.convolve(
                a, rowCount: rows, columnCount: columns, withKernel: kernel, kernelRowCount: p, kernelColumnCount: q)
            XCTAssertEqual(filtered, expected, "\(p) x \(q)")
            var c = a
            let (m, n) = (vDSP_Length(rows), vDSP_Length(columns))
            vDSP_imgfirD(a, m, n, kernel, &c, vDSP_Length(p), vDSP_Length(q))
            XCTAssertEqual(c, expected)
            if (p, q) == (3, 3) {
                vDSP_f3x3D(a, m, n, kernel, &c)
                XCTAssertEqual(c, expected)
            }
            if (p, q) == (5, 5) {
                vDSP_f5x5D(a, m, n, kernel, &c)
                XCTAssertEqual(c, expected)
            }
        }
    }

    func testConversions() {
        let a = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, -300, .nan], n = vDSP_Length(9)
        var bytes = [Int8](repeating: 0, count: 9), words = [UInt16](repeating: 0, count: 9)
        vDSP_vfix8D(a, 1, &bytes, 1, n)
        XCTAssertEqual(bytes, [-2, -1, 0, 0, 1, 2, 127, -128, 0])
        vDSP_vfixr8D(a, 1, &bytes, 1, n)
        XCTAssertEqual(bytes, [-2, -2, 0, 0, 2, 2, 127, -128, 0])
        vDSP_vfixru16D(a, 1, &words, 1, n)
        XCTAssertEqual(words, [0, 0, 0, 0, 2, 2, 300, 0, 0])
        var back = [Float](repeating: 0, count: 9)
        vDSP_vfltu16(words, 1, &back, 1, n)
        XCTAssertEqual(back, [0, 0, 0, 0, 2, 2, 300, 0, 0])
    }

    func testFunctions() {
        let x = drawn(16), y = drawn(16).map { $0 == 0 ? 1 : $0 }
        var count: Int32 = 16, z = x, second = x
        let pairs: [(VectorPower<Double>, (Double, Double) -> Double)] = [
            (vvdiv, { $0 / $1 }), (vvfmod, { fmod($0, $1) }), (vvremainder, { remainder($0, $1) }),
            (vvcopysign, { $1 < 0 ? -abs($0) : abs($0) }), (vvatan2, { atan2($0, $1) }),
        ]
        for (index, (call, formula)) in pairs.enumerated() {
            call(&z, x, y, &count)
            XCTAssertEqual(z, zip(x, y).map(formula), "pair \(index)")
        }
        let functions: [(VectorFunction<Double>, (Double) -> Double)] = [
            (vvint, { $0.rounded(.towardZero) }), (vvnint, { $0.rounded(.toNearestOrEven) }), (vvsinh, sinh),
            (vvasinh, asinh), (vvatan, atan), (vvexp2, exp2), (vvexpm1, expm1), (vvcbrt, cbrt),
        ]
        for (index, (call, formula)) in functions.enumerated() {
            call(&z, x, &count)
            XCTAssertEqual(z, x.map(formula), "function \(index)")
        }
        vvsincos(&z, &second, x, &count)
        XCTAssertEqual([z, second], [x.map(sin), x.map(cos)])
        var exponent = 3.0
        vvpows(&z, &exponent, x, &count)
        XCTAssertEqual(z, x.map { pow($0, 3) })
    }

    func testVectorsOfBLAS() {
        let x = drawn(7)
        var y = drawn(7), old = y
        catlas_daxpby(7, 2, x, 1, -0.5, &y, 1)
        XCTAssertEqual(y, zip(x, old).map { 2 * $0 - 0.5 * $1 })
        old = y
        var other = x
        cblas_dswap(7, &other, 1, &y, -1)
        XCTAssertEqual([other, y], [old.reversed(), x.reversed()])
        XCTAssertEqual(Int(cblas_idamax(7, x, 1)), x.firstIndex { abs($0) == x.map(abs).max()! })
        catlas_dset(4, 5, &y, 2)
        XCTAssertEqual([y[0], y[2], y[4], y[6]], [5, 5, 5, 5])
    }
}
