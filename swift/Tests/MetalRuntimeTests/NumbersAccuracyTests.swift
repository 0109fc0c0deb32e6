import Foundation
import XCTest

/// Every function of Tables 8.1 (precise) and 8.2 (fast), compared with 80-bit arithmetic at thousands of points.
final class NumbersAccuracyTests: XCTestCase {
    private struct Function {
        let name: String
        let range: ClosedRange<Float>
        let logarithmic: Bool
        let preciseBound: Double
        /// The error bound of Table 8.2 in units in the last place, for argument x and result y; nil if the table gives
        /// a formula without a bound.
        let fastBound: ((Double, Double) -> Double)?
        let exact: (Float80) -> Float80

        init(
            _ name: String, _ range: ClosedRange<Float>, _ preciseBound: Double, logarithmic: Bool = false,
            fast: ((Double, Double) -> Double)? = nil, _ exact: @escaping (Float80) -> Float80
        ) {
            (self.name, self.range, self.preciseBound, self.logarithmic, fastBound, self.exact) =
                (name, range, preciseBound, logarithmic, fast, exact)
        }
    }

    private static let exponential: (Double, Double) -> Double = { x, _ in 3 + abs(2 * x).rounded(.down) }
    /// An absolute error of 2^-13, in ulps of y.
    private static let angle: (Double, Double) -> Double = { x, y in pow(2, -13) / Double(Float(y).ulp) }
    private static func reduced(_ x: Float80) -> Float80 { Float80.pi * (x - 2 * (x / 2).rounded()) }

    private let functions = [
        Function("sin", -3.14...3.14, 4, fast: angle) { sin($0) },
        Function("cos", -3.14...3.14, 4, fast: angle) { cos($0) },
        Function("tan", -1.5...1.5, 6) { tan($0) },
        Function("asin", -1...1, 4, fast: { _, _ in 5 }) { asin($0) },
        Function("acos", -1...1, 4, fast: { _, _ in 5 }) { acos($0) },
        Function("atan", -100...100, 5, fast: { _, _ in 5 }) { atan($0) },
        Function("sinh", -80...80, 4) { sinh($0) },
        Function("cosh", -80...80, 4) { cosh($0) },
        Function("tanh", -20...20, 5) { tanh($0) },
        Function("asinh", -1000...1000, 4) { asinh($0) },
        Function("acosh", 1...1000, 4) { acosh($0) },
        Function("atanh", -0.999...0.999, 5) { atanh($0) },
        Function("exp", -80...80, 4, fast: exponential) { exp($0) },
        Function("exp2", -120...120, 4, fast: exponential) { exp2($0) },
        Function("exp10", -35...35, 4, fast: { x, y in exponential(x * 3.33, y) }) { pow(10, $0) },
        Function("log", 1e-30...1e30, 4, logarithmic: true, fast: { _, _ in 4 }) { log($0) },
        Function("log2", 1e-30...1e30, 4, logarithmic: true, fast: { _, _ in 4 }) { log2($0) },
        Function("log10", 1e-30...1e30, 4, logarithmic: true, fast: { _, _ in 4 }) { log10($0) },
        Function("sqrt", 1e-30...1e30, 0.5, logarithmic: true, fast: { _, _ in 3 }) { $0.squareRoot() },
        Function("rsqrt", 1e-30...1e30, 0.5, logarithmic: true, fast: { _, _ in 2 }) { 1 / $0.squareRoot() },
        Function("sinpi", -1...1, 4, fast: angle) { sin(reduced($0)) },
        Function("cospi", -1...1, 4, fast: angle) { cos(reduced($0)) },
        Function("tanpi", -0.49...0.49, 6) { tan(Float80.pi * $0) },
        Function("floor", -1e6...1e6, 0) { $0.rounded(.down) },
        Function("ceil", -1e6...1e6, 0) { $0.rounded(.up) },
        Function("trunc", -1e6...1e6, 0) { $0.rounded(.towardZero) },
        Function("rint", -1e6...1e6, 0) { $0.rounded(.toNearestOrEven) },
        Function("round", -1e6...1e6, 0) { $0.rounded(.toNearestOrAwayFromZero) },
        Function("fabs", -1e6...1e6, 0) { abs($0) },
    ]

    private func points(_ function: Function, count: Int) -> [Float] {
        var generator = SplitMix64(7)
        return (0..<count).map { _ in
            guard function.logarithmic else { return Float.random(in: function.range, using: &generator) }
            let logarithms = log(function.range.lowerBound)...log(function.range.upperBound)
            return exp(Float.random(in: logarithms, using: &generator))
        }
    }

    /// Returns a library with one kernel for each function, in the given form.
    private func library(_ form: String, type: String = "float", _ names: [String]) throws -> KernelLibrary {
        try KernelLibrary(
            names.map {
                """
                kernel void evaluate_\($0)(device const \(type)* xs, device \(type)* ys, \
                uint i [[thread_position_in_grid]]) {
                  ys[i] = metal::\(form)::\($0)(xs[i]);
                }
                """
            }.joined(separator: "\n"))
    }

    private func ulps(_ got: Float, _ exact: Float80) -> Double {
        abs(Double(Float80(got) - exact)) / Double(max(Float(exact).ulp, .leastNonzeroMagnitude))
    }

    private func check(_ form: String, _ functions: [Function], bound: (Function, Double, Double) -> Double) throws {
        let library = try library(form, functions.map(\.name))
        for function in functions {
            let xs = points(function, count: 4000), ys = TestBuffer(length: 4 * xs.count)
            try library.function("evaluate_\(function.name)").run([TestBuffer(xs), ys], grid: xs.count, group: 256)
            let worst = zip(xs, ys.array(Float.self)).map {
                x, y -> (excess: Double, x: Float, y: Float, exact: Float80) in
                let exact = function.exact(Float80(x))
                return (ulps(y, exact) - bound(function, Double(x), Double(exact)), x, y, exact)
            }.max { $0.excess < $1.excess }!
            // Half a unit is the rounding itself; comparing with an 80-bit value leaves a small excess.
            XCTAssertLessThanOrEqual(
                worst.excess, 1e-3, "\(form)::\(function.name)(\(worst.x)) = \(worst.y), exactly \(worst.exact)")
        }
    }

    func testPreciseFunctionsKeepTable81() throws {
        try check("precise", functions) { function, _, _ in function.preciseBound }
    }

    func testPreciseFunctionsAreWithinOneUnit() throws {
        try check("precise", functions) { _, _, _ in 1 }
    }

    func testFastFunctionsKeepTable82() throws {
        try check("fast", functions.filter { $0.fastBound != nil }) { function, x, y in function.fastBound!(x, y) }
    }

    func testPowAndAtan2KeepTable81() throws {
        var generator = SplitMix64(8)
        let xs = (0..<4000).map { _ in Float.random(in: 0.01...50, using: &generator) }
        let zs = (0..<4000).map { _ in Float.random(in: -20...20, using: &generator) }
        for (expression, bound, exact) in [
            ("precise::pow(x, z)", 16.0, { (x: Float80, z: Float80) in pow(x, z) }),
            ("precise::powr(x, z)", 16.0, { pow($0, $1) }),
            ("precise::atan2(x, z)", 6.0, { atan2($0, $1) }),
            ("precise::fmod(x, z)", 0.0, { fmod($0, $1) }),
            ("precise::divide(x, z)", 0.501, { $0 / $1 }),
        ] {
            let ys: [Float] = try evaluate(expression, of: xs, zs, from: "float", to: "float")
            for i in xs.indices {
                let exact = exact(Float80(xs[i]), Float80(zs[i]))
                guard Float(exact).isNormal else { continue }
                XCTAssertLessThanOrEqual(ulps(ys[i], exact), bound, "\(expression), x = \(xs[i]), z = \(zs[i])")
            }
        }
    }

    func testHalfFunctionsAreWithinOneUnit() throws {
        let names = ["sin", "cos", "exp", "log", "sqrt", "rsqrt", "tanh"]
        let library = try library("precise", type: "half", names)
        // Every positive half from 2^-8 to 8.
        let bits = Array(UInt16(0x1c00)..<UInt16(0x4800)), xs = bits.map { halfValue($0) }
        for name in names {
            let ys = TestBuffer(length: 2 * bits.count)
            try library.function("evaluate_\(name)").run([TestBuffer(bits), ys], grid: bits.count, group: 256)
            let exact = functions.first { $0.name == name }!.exact
            for (x, y) in zip(xs, ys.array(UInt16.self)) {
                let expected = Double(exact(Float80(x)))
                guard expected != 0, abs(expected) < 65504 else { continue }
                let unit = pow(2, Double(max(expected.exponent, -14) - 10))
                XCTAssertLessThanOrEqual(abs(halfValue(y) - expected) / unit, 1, "half \(name)(\(x))")
            }
        }
    }

    private func halfValue(_ bits: UInt16) -> Double {
        let exponent = Int(bits >> 10 & 31), fraction = Double(bits & 1023) / 1024
        let magnitude = exponent == 0 ? fraction * pow(2, -14) : (1 + fraction) * pow(2, Double(exponent - 15))
        return bits >> 15 == 1 ? -magnitude : magnitude
    }

    // MARK: formulas of Table 8.2 with surprising results

    func testFastTanhOverflowsToNaN() throws {
        let values = try floats(
            3, "out[0] = fast::tanh(45.0f); out[1] = precise::tanh(45.0f); out[2] = fast::tanh(0.5f);")
        XCTAssertTrue(values[0].isNaN, "exp(90) is infinite, and infinity divided by infinity is NaN")
        XCTAssertEqual(values[1], 1)
        XCTAssertEqual(values[2], tanh(0.5), accuracy: 1e-6)
    }

    func testFastPowIsExp2OfLog2() throws {
        let values = try floats(
            4,
            """
            out[0] = fast::pow(-2.0f, 2.0f); out[1] = precise::pow(-2.0f, 2.0f);
            out[2] = fast::pow(0.0f, 0.0f); out[3] = precise::pow(0.0f, 0.0f);
            """)
        XCTAssertTrue(values[0].isNaN)
        XCTAssertEqual(values[1], 4)
        XCTAssertTrue(values[2].isNaN)
        XCTAssertEqual(values[3], 1)
    }

    func testFastSqrtHandlesItsSpecialCases() throws {
        let values = try floats(
            3, "out[0] = fast::sqrt(0.0f); out[1] = fast::sqrt(INFINITY); out[2] = fast::sqrt(-1.0f);")
        XCTAssertEqual(values[0], 0)
        XCTAssertEqual(values[1], .infinity)
        XCTAssertTrue(values[2].isNaN)
    }

    func testTheFastBuildTakesTheFastFormulas() throws {
        let source =
            "kernel void k(device float* out [[buffer(0)]]) { out[0] = tanh(45.0f); out[1] = metal::tanh(45.0f); }"
        for (precise, expectsNaN) in [(true, false), (false, true)] {
            let out = TestBuffer([Float](repeating: 0, count: 2))
            try KernelLibrary(source, mathMode: precise ? 0 : 2, precise: precise).function("k").run(
                [out], grid: 1, group: 1)
            for value in out.array(Float.self) { XCTAssertEqual(value.isNaN, expectsNaN, "precise \(precise)") }
        }
    }
}
