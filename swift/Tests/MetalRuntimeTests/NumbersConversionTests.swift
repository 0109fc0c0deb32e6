import XCTest

/// Conversions between scalars (MSL 2.1, 2.25): float to integer truncates, converts NaN to 0 and saturates, however
/// the conversion is written; integer to float rounds to nearest.
final class NumbersConversionTests: XCTestCase {
    private let edges: [Float] = [
        0, -0.0, 0.99, -0.99, 1.5, -1.5, 126.9, 127.5, 128, -128.5, -129, 255.5, 256, 32767.5, 32768, -32769, 65535.5,
        65536,
        2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296, 9.2233715e18, 9.223372e18,
        -9.223372e18, -1e19,
        1.8446743e19, 1.8446744e19, 1e30, -1e30, .infinity, -.infinity, .nan,
    ]

    /// The specification's rule, computed by exact comparison with the type's bounds.
    private func saturated<I: FixedWidthInteger>(_ x: Float, _: I.Type) -> I {
        if x.isNaN { return 0 }
        return I(exactly: x.rounded(.towardZero)) ?? (x < 0 ? I.min : I.max)
    }

    private func check<I: FixedWidthInteger>(_ type: String, _: I.Type) throws {
        let spellings = [
            "\(type)(x)", "(\(type))x", "static_cast<\(type)>(x)", "x", "metal::vec<\(type), 2>(metal::float2(x)).y",
        ]
        let stores = spellings.enumerated().map { "out[\($0.offset) * \(edges.count) + i] = \($0.element);" }
        let kernel = try KernelLibrary(
            """
            kernel void convert(device const float* xs [[buffer(0)]], device \(type)* out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              const float x = xs[i];
              \(stores.joined(separator: "\n"))
            }
            """
        ).function("convert")
        let out = TestBuffer(length: spellings.count * edges.count * MemoryLayout<I>.size)
        try kernel.run([TestBuffer(edges), out], grid: edges.count, group: 32)
        let got = out.array(I.self), expected = edges.map { saturated($0, I.self) }
        for (index, spelling) in spellings.enumerated() {
            XCTAssertEqual(
                Array(got[(index * edges.count)..<((index + 1) * edges.count)]), expected, "\(spelling) of \(edges)")
        }
    }

    func testFloatToEachIntegerTypeTruncatesAndSaturates() throws {
        try check("char", Int8.self)
        try check("uchar", UInt8.self)
        try check("short", Int16.self)
        try check("ushort", UInt16.self)
        try check("int", Int32.self)
        try check("uint", UInt32.self)
        try check("long", Int64.self)
        try check("ulong", UInt64.self)
    }

    func testHalfToIntegerSaturates() throws {
        // 1.5 -1.5 65504 -65504 inf -inf NaN
        let halves: [UInt16] = [0x3e00, 0xbe00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00]
        XCTAssertEqual(
            try evaluate("char(x)", of: halves, from: "half", to: "char"), [1, -1, 127, -128, 127, -128, 0] as [Int8])
        XCTAssertEqual(
            try evaluate("ushort(x)", of: halves, from: "half", to: "ushort"),
            [1, 0, 65504, 0, 65535, 0, 0] as [UInt16])
    }

    func testIntegerToFloatRoundsToNearestEven() throws {
        let ints: [Int32] = [16777217, 16777219, -16777217, 2147483647, -2147483648, 33554434, 33554435]
        XCTAssertEqual(try evaluate("float(x)", of: ints, from: "int", to: "float"), ints.map { Float($0) })
        let longs: [UInt64] = [.max, 1 << 63, (1 << 40) + 1, 0xffff_ff7f_ffff_ffff]
        XCTAssertEqual(try evaluate("float(x)", of: longs, from: "ulong", to: "float"), longs.map { Float($0) })
    }

    func testAnUnsuffixedLiteralIsAFloat() throws {
        // 0.1 in double precision plus 0.2 is 0.30000000000000004; in float it is 0.3.
        XCTAssertEqual(try integers(2, "out[0] = sizeof(0.1); out[1] = 0.1 + 0.2 == 0.3f;"), [4, 1])
    }

    func testLiteralsOfHalfAndBfloatRoundOnce() throws {
        XCTAssertEqual(
            try integers(
                4,
                """
                out[0] = as_type<ushort>(1.5h); out[1] = as_type<ushort>(0.1h);
                out[2] = as_type<ushort>(1.5bf); out[3] = as_type<ushort>(0.1bf);
                """),
            [0x3e00, 0x2e66, 0x3fc0, 0x3dcd])
    }

    func testAsTypeKeepsTheBits() throws {
        XCTAssertEqual(
            try integers(
                5,
                """
                out[0] = as_type<int>(1.0f); out[1] = as_type<ushort>(half(-2)); out[2] = as_type<uint2>(float2(1, \
                -1)).y;
                out[3] = as_type<int>(half2(1, 2)); out[4] = as_type<float4>(uint4(0x40000000)).w;
                """),
            [0x3f80_0000, 0xc000, Int32(bitPattern: 0xbf80_0000), 0x4000_3c00, 2])
    }

    func testBfloatConvertsImplicitlyToFloatOnly() throws {
        let program = { (statement: String) in
            "kernel void k(device bfloat* b, device float* f, device half* h, uint i [[thread_position_in_grid]]) { "
                + "\(statement) }"
        }
        for accepted in [
            "f[0] = b[0];", "b[0] = bfloat(f[0]);", "b[0] = static_cast<bfloat>(h[0]);", "b[0] = 0;",
            "b[0] = b[1] * b[2];",
            "f[0] = b[0] * f[1];", "b[0] = b[1] * 2;", "h[0] = half(b[0]);", "b[0] += b[1];",
        ] {
            XCTAssertNil(refusal(program(accepted)), accepted)
        }
        for refused in ["b[0] = f[0];", "b[0] = h[0];", "h[0] = b[0];", "b[0] = 0.0;", "bfloat x = 1.0f; b[0] = x;"] {
            XCTAssertNotNil(refusal(program(refused)), refused)
        }
    }

    func testMixedTypesAreAmbiguousAsInMetal() throws {
        let program = { (expression: String) in
            "kernel void k(device float* f, device half* h, device uint* u) { f[0] = \(expression); }"
        }
        for refused in ["max(f[1], 0)", "max(u[0], 1)", "min(f[1], h[0])", "sqrt(u[0])", "clamp(f[1], 0, 1)"] {
            XCTAssertTrue(refusal(program(refused))?.contains("ambiguous") ?? false, refused)
        }
        for accepted in [
            "max(f[1], 0.0f)", "max(f[1], 0.0)", "max(h[0], 0.0h)", "max(u[0], 1u)", "max(float2(f[1]), 0.0f).x",
        ] {
            XCTAssertNil(refusal(program(accepted)), accepted)
        }
    }

    /// Conversions that need the compiler's scalar type: a class that only converts to float does not support them.
    func testBfloatConvertsAsAScalar() throws {
        XCTAssertEqual(
            try floats(
                18,
                """
                bfloat4 v; v[0] = 0; v[1] = 1; v[2] = one; v.w = 3;
                bfloat b = bfloat(2.5f); uint u = b; int n = -b; bool t = b;
                out[0] = v[0]; out[1] = v[1] + v[2]; out[2] = v[3]; out[3] = u; out[4] = n; out[5] = t;
                bfloat w = one; w = one; out[6] = w;
                half h = convert<half>(b); out[7] = h; out[8] = convert<bfloat>(h) + float(h);
                out[9] = t ? b : 0; out[10] = b > 1 ? 1 : b; out[11] = max(b, 1) + min(1, b) + abs(-b);
                out[12] = b * 2 + 1; out[13] = b * 0.5f; b += 1; b += 1; out[14] = b; out[15] = exp(b - b);
                out[16] = half2(bfloat2(1.5bf, b)).y; out[17] = as_type<ushort>(bfloat(1.00390625f));
                """,
                declarations: """
                    struct One { operator bool() const { return true; } };
                    #define one One()
                    template <typename U, typename T> U convert(T x) { return static_cast<U>(x); }

                    """),
            [0, 2, 3, 2, -2, 1, 1, 2.5, 5, 2.5, 1, 6, 6, 1.25, 4.5, 1, 4.5, 0x3f80])
    }

    /// Both builds of bfloat round each operation to nearest, ties to even.
    func testTheScalarBfloatRoundsAsTheClass() throws {
        let body = "bfloat b = bfloat(x), c = b * bfloat(1.0703125f) + bfloat(x * 0.3f);"
        let operands = (0..<64).map { Float($0) * 0.337 - 9.1 } + [.infinity, .nan, Float(bitPattern: 0x1234), 3.4e38]
        var results: [[Float]] = []
        for scalar in ["", "uint u = b; (void)u;"] {
            results.append(
                try evaluate(
                    "f(x)", of: operands, from: "float", to: "float",
                    declarations: "float f(float x) { \(body) \(scalar) return c; }\n", as: Float.self))
        }
        XCTAssertEqual(results[0].map(\.bitPattern), results[1].map(\.bitPattern))
    }
}
