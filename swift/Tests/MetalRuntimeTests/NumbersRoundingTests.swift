import XCTest

/// half and bfloat round after each operation (MSL 2.1); there is never a wider intermediate value.
final class NumbersRoundingTests: XCTestCase {
    /// Returns x rounded to `bits` significant bits (nearest, ties to even), for values in the normal range, without
    /// using any conversion.
    private func rounded(_ x: Double, bits: Int) -> Double {
        if x == 0 { return x }
        let unit = Double(sign: .plus, exponent: Int(x.exponent) - (bits - 1), significand: 1)
        return (x / unit).rounded(.toNearestOrEven) * unit
    }

    private func half(_ bits: UInt16) -> Double {
        let exponent = Int(bits >> 10 & 31), fraction = Double(bits & 1023)
        return (bits >> 15 == 1 ? -1 : 1) * (1 + fraction / 1024) * pow(2, Double(exponent - 15))
    }

    private func bfloat(_ bits: UInt16) -> Double { Double(Float(bitPattern: UInt32(bits) << 16)) }

    /// 2000 random values with exponents near 1, so that no result leaves the normal range.
    private func operands(_ seed: UInt64, exponents: Range<UInt16>, shift: UInt16) -> [UInt16] {
        var generator = SplitMix64(seed)
        return (0..<2000).map { _ in
            UInt16.random(in: exponents, using: &generator) << shift
                | UInt16.random(in: 0..<(1 << shift), using: &generator)
        }
    }

    private func check(_ type: String, bits: Int, exponents: Range<UInt16>, shift: UInt16, value: (UInt16) -> Double)
        throws
    {
        let xs = operands(1, exponents: exponents, shift: shift), zs = operands(2, exponents: exponents, shift: shift)
        let round = { self.rounded($0, bits: bits) }
        let cases: [(String, (Double, Double) -> Double)] = [
            ("x + z", { round($0 + $1) }),
            ("x * z", { round($0 * $1) }),
            ("x / z", { round($0 / $1) }),
            ("x * z + x", { round(round($0 * $1) + $0) }),
            ("x * x * z", { round(round($0 * $0) * $1) }),
            ("x + z + z + x", { round(round(round($0 + $1) + $1) + $0) }),
        ]
        for (expression, expected) in cases {
            let got: [UInt16] = try evaluate(expression, of: xs, zs, from: type, to: type)
            for i in xs.indices where value(got[i]) != expected(value(xs[i]), value(zs[i])) {
                return XCTFail(
                    """
                    \(type) \(expression), x = \(value(xs[i])), z = \(value(zs[i])): got \(value(got[i])), \
                    expected \(expected(value(xs[i]), value(zs[i])))
                    """)
            }
        }
    }

    func testHalfRoundsAtEachOperation() throws {
        try check("half", bits: 11, exponents: 13..<17, shift: 10, value: half)
    }

    func testBfloatRoundsAtEachOperation() throws {
        try check("bfloat", bits: 8, exponents: 124..<130, shift: 7, value: bfloat)
    }

    func testFmaOfHalfRoundsOnce() throws {
        let xs = operands(3, exponents: 10..<20, shift: 10), zs = operands(4, exponents: 10..<20, shift: 10)
        let got: [UInt16] = try evaluate("fma(x, z, x)", of: xs, zs, from: "half", to: "half")
        for i in xs.indices { XCTAssertEqual(half(got[i]), rounded(half(xs[i]) * half(zs[i]) + half(xs[i]), bits: 11)) }
    }

    func testFmaOfHalfIsNotRoundedToFloatFirst() throws {
        // (1 - 2^-10)(1 + 2^-10) 2^-11 = 2^-11 - 2^-31: plus 1 + 2^-10, it is just below the midpoint of two halves,
        // and in float exactly on it.
        let got = try integers(
            1, "out[0] = as_type<ushort>(fma(half(1 - 0x1p-10f), half((1 + 0x1p-10f) * 0x1p-11f), half(1 + 0x1p-10f)));"
        )
        XCTAssertEqual(got, [0x3c01])
    }

    func testFloatToBfloatRoundsToNearestEvenAndKeepsNaN() throws {
        let bits: [UInt32] = [
            0x3f80_8000, 0x3f81_8000, 0x3f80_8001, 0x3f80_7fff, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0xffff_ffff,
        ]
        let got: [UInt16] = try evaluate("bfloat(x)", of: bits, from: "float", to: "bfloat")
        XCTAssertEqual(got[0..<6], [0x3f80, 0x3f82, 0x3f81, 0x3f80, 0x7f80, 0x7f80])
        for nan in got[6...] { XCTAssertTrue(bfloat(nan).isNaN) }
    }

    /// Metal allows contraction by default (MSL 1.6.3): with it x * y + z rounds once, without it twice.
    func testContractionIsChosenByTheSetting() throws {
        let x: Float = 1 + 0x1p-12,
            kernel = try KernelLibrary(
                """
                kernel void f(device const float *x, device float *y) { y[0] = x[0] * x[0] + x[1]; }
                """
            ).function("f")
        for (contract, expected) in [("0", x * x - 1), ("1", Float(-1).addingProduct(x, x))] {
            let y = TestBuffer(length: 4)
            _ = try withSetting("contract", contract) { try kernel.run([TestBuffer([x, -1]), y], grid: 1, group: 1) }
            XCTAssertEqual(y.array(Float.self), [expected], contract)
        }
        XCTAssertNotEqual(x * x - 1, Float(-1).addingProduct(x, x))
    }

    func testHalfDenormalsSurvive() throws {
        XCTAssertEqual(
            try evaluate("x * half(0.5)", of: [0x0400, 0x0002, 0x0003] as [UInt16], from: "half", to: "half"),
            [0x0200, 0x0001, 0x0002] as [UInt16])
    }
}
