import XCTest

/// Functions of integers and of the parts of a float, and the behavior for NaN and for a type's limits.
final class NumbersFunctionTests: XCTestCase {
    // MARK: integers (MSL 6.4)

    func testIntegerFunctions() throws {
        let cases: [(String, Int64)] = [
            ("abs(-5)", 5), ("abs(char(-128))", -128), ("absdiff(-2147483647, 2147483647)", 4294967294),
            ("absdiff(uchar(3), uchar(250))", 247),
            ("addsat(2147483647, 1)", 2147483647), ("addsat(uchar(200), uchar(100))", 255),
            ("addsat(char(-100), char(-100))", -128),
            ("subsat(3u, 5u)", 0), ("subsat(-2147483647 - 1, 1)", -2147483648),
            ("subsat(9223372036854775807l, -1l)", .max),
            ("clamp(7, 1, 5)", 5), ("clamp(-7, 1, 5)", 1), ("clz(1u)", 31), ("clz(0)", 32), ("clz(uchar(1))", 7),
            ("clz(1ul)", 63), ("clz(short(-1))", 0),
            ("ctz(8)", 3), ("ctz(0u)", 32), ("ctz(ushort(0))", 16), ("popcount(0xff00ffu)", 16),
            ("popcount(char(-1))", 8), ("popcount(-1l)", 64),
            ("hadd(2147483647, 2147483645)", 2147483646), ("hadd(-3, 0)", -2), ("rhadd(1, 2)", 2),
            ("rhadd(uchar(255), uchar(254))", 255),
            ("mulhi(0x40000000, 16)", 4), ("mulhi(-1, 1)", -1), ("mulhi(0xffffffffu, 0xffffffffu)", 0xffff_fffe),
            ("mulhi(1ul << 63, 6ul)", 3),
            ("madhi(0x40000000, 16, 5)", 9), ("madsat(1 << 30, 4, 0)", 2147483647), ("mad24(1000, 1000, 7)", 1000007),
            ("mul24(-3, 5)", -15),
            ("mul24(0x1000003u, 2u)", 6), ("max(-1, 1)", 1), ("max(uint(-1), 1u)", 4294967295),
            ("min(char(-1), char(1))", -1),
            ("max3(1, 7, 3)", 7), ("min3(4, 2, 9)", 2), ("median3(9, 2, 5)", 5), ("rotate(0x80000001u, 4u)", 0x18),
            ("rotate(uchar(0x81), uchar(1))", 3),
            ("rotate(5, 32)", 5), ("reverse_bits(1u)", 0x8000_0000), ("reverse_bits(uchar(0x13))", 0xc8),
            ("extract_bits(0xabcdu, 4u, 8u)", 0xbc), ("extract_bits(0xabcd, 4u, 8u)", -68),
            ("extract_bits(0xf0, 4u, 4u)", -1), ("extract_bits(0xf0u, 4u, 4u)", 15), ("extract_bits(-1, 0u, 32u)", -1),
            ("extract_bits(123u, 5u, 0u)", 0), ("insert_bits(0xffffu, 0u, 4u, 8u)", 0xf00f),
            ("insert_bits(0, -1, 0u, 32u)", -1), ("insert_bits(5, 9, 8u, 0u)", 5),
            ("max(int3(1, 5, 2), int3(4, 3, 2)).y", 5), ("popcount(uint2(3, 7)).y", 3),
            ("clamp(uint2(9), 1u, 4u).x", 4),
        ]
        let kernel = try KernelLibrary(
            """
            kernel void integers(device long* out [[buffer(0)]]) {
              \(cases.enumerated().map { "out[\($0.offset)] = \($0.element.0);" }.joined(separator: "\n"))
            }
            """
        ).function("integers")
        let out = TestBuffer(length: 8 * cases.count)
        try kernel.run([out], grid: 1, group: 1)
        for (got, (expression, expected)) in zip(out.array(Int64.self), cases) {
            XCTAssertEqual(got, expected, expression)
        }
    }

    func testShiftsOfVectorsTakeTheLowBitsOfTheirAmount() throws {
        XCTAssertEqual(try integers(2, "out[0] = (int2(1) << int2(33)).x; out[1] = (int2(-8) >> 1).y;"), [2, -4])
    }

    // MARK: floats (MSL 6.3, 6.5, 6.6)

    func testNaNInMinMaxAndClamp() throws {
        let values = try floats(
            9,
            """
            const float n = out[0] - out[0] + NAN;
            out[0] = precise::min(n, 1.0f); out[1] = precise::max(2.0f, n); out[2] = precise::clamp(n, 3.0f, 4.0f);
            out[3] = fmin(n, 5.0f); out[4] = fmax(6.0f, n); out[5] = saturate(n); out[6] = fmin(n, n);
            out[7] = precise::max3(n, 7.0f, 6.0f); out[8] = max(float2(n, 8), 1.0f).x;
            """)
        XCTAssertEqual(Array(values[0..<6]), [1, 2, 3, 5, 6, 0])
        XCTAssertTrue(values[6].isNaN)
        XCTAssertEqual(Array(values[7...]), [7, 1])
    }

    func testCommonFunctions() throws {
        let values = try floats(
            16,
            """
            out[13] = median3(3.0f, 9.0f, 5.0f); out[14] = fmedian3(9.0f, 5.0f, 3.0f); out[15] = max3(half(1), \
            half(3), half(2));
            out[0] = mix(2.0f, 4.0f, 0.25f); out[1] = step(1.0f, 0.5f); out[2] = step(1.0f, 1.0f); out[3] = \
            smoothstep(0.0f, 2.0f, 0.5f);
            out[4] = sign(-3.0f); out[5] = sign(NAN); out[6] = saturate(1.5f); out[7] = clamp(0.2f, 0.5f, 1.0f);
            out[8] = mix(float2(0), float2(10), 0.5f).y; out[9] = fract(-0.25f); out[10] = fract(-1e-9f);
            out[11] = float(fract(-as_type<half>(ushort(1)))); out[12] = select(1.0f, 2.0f, true);
            """)
        XCTAssertEqual(
            values, [2.5, 0, 1, 0.15625, -1, 0, 1, 0.5, 5, 0.75, Float(1).nextDown, Float(0x1.ffcp-1), 2, 5, 5, 3])
    }

    func testPartsOfAFloat() throws {
        let values = try floats(
            18,
            """
            int e; int2 e2; float whole, c; float2 wholes;
            out[0] = frexp(12.0f, e); out[1] = e; out[2] = frexp(0x1p-140f, e); out[3] = e; out[4] = ldexp(0.75f, 4); \
            out[5] = ldexp(1.0f, -149);
            out[6] = ldexp(1.0f, 128); out[7] = modf(-2.75f, whole); out[8] = whole; out[9] = modf(INFINITY, whole); \
            out[10] = ilogb(10.0f);
            out[11] = copysign(3.0f, -0.0f); out[12] = nextafter(1.0f, 2.0f); out[13] = frexp(float2(8, 3), e2).y; \
            out[14] = e2.x;
            out[15] = sincos(0.0f, c) + c; out[16] = modf(float2(1.5f, -1.5f), wholes).y + wholes.x; out[17] = \
            nextafter(0.0f, -1.0f);
            """)
        XCTAssertEqual(
            values,
            [
                0.75, 4, 0.5, -139, 12, .leastNonzeroMagnitude, .infinity, -0.75, -2, 0, 3, -3, Float(1).nextUp, 0.75,
                4, 1, 0.5, -.leastNonzeroMagnitude,
            ])
    }

    func testRelationalFunctions() throws {
        XCTAssertEqual(
            try integers(
                14,
                """
                out[0] = isnan(NAN); out[1] = isnan(INFINITY); out[2] = isinf(-INFINITY); out[3] = isfinite(FLT_MAX); \
                out[4] = isfinite(INFINITY);
                out[5] = isnormal(0x1p-127f); out[6] = isnormal(half(0x1p-14f)); out[7] = signbit(-0.0f); out[8] = \
                isordered(1.0f, NAN);
                out[9] = all(float2(1, 2) < float2(2, 3)); out[10] = any(int3(0, 0, 1) == 1); out[11] = \
                all(isnan(float2(NAN, 1)));
                out[12] = select(int2(1, 2), int2(3, 4), bool2(false, true)).y; out[13] = isnan(bfloat(NAN));
                """),
            [1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 4, 1])
    }

    func testLimits() throws {
        XCTAssertEqual(
            try floats(
                11,
                """
                out[0] = numeric_limits<float>::max(); out[1] = numeric_limits<half>::max(); out[2] = \
                numeric_limits<bfloat>::max();
                out[3] = numeric_limits<half>::lowest(); out[4] = numeric_limits<half>::epsilon(); out[5] = \
                numeric_limits<bfloat>::epsilon();
                out[6] = numeric_limits<half>::denorm_min(); out[7] = -numeric_limits<bfloat>::infinity(); out[8] = \
                numeric_limits<float>::min();
                out[9] = numeric_limits<char>::min(); out[10] = numeric_limits<ushort>::max();
                """),
            [
                .greatestFiniteMagnitude, 65504, Float(bitPattern: 0x7f7f_0000), -65504, 0x1p-10, 0x1p-7, 0x1p-24,
                -.infinity, .leastNormalMagnitude, -128, 65535,
            ])
    }

    func testTraitsAndUniforms() throws {
        XCTAssertEqual(
            try integers(
                9,
                """
                out[6] = is_floating_point_v<half2> && !is_scalar_v<half2>; out[7] = is_integral_v<int3> && \
                !is_integral_v<float3>;
                out[8] = is_scalar_v<bfloat> && !is_class_v<bfloat>;
                out[0] = is_same_v<make_unsigned_t<int3>, uint3>; out[1] = is_floating_point_v<bfloat>; out[2] = \
                is_same_v<decay_t<const int>, int>;
                out[3] = is_integral<half>::value; out[4] = sizeof(conditional_t<true, half, float>); out[5] = \
                make_uniform(3) * make_uniform(4);
                """),
            [1, 1, 1, 0, 2, 12, 1, 1, 1])
    }

    func testPackingOfComponents() throws {
        XCTAssertEqual(
            try integers(
                8,
                """
                out[0] = pack_float_to_unorm4x8(float4(0, 0.5f, 1, 2)); out[1] = pack_float_to_snorm4x8(float4(-1, 1, \
                0, -2));
                out[2] = pack_float_to_unorm2x16(float2(1, 0)); out[3] = pack_float_to_unorm10a2(float4(1, 0, 0, 1)); \
                out[4] = pack_float_to_unorm565(float3(1, 0, 1));
                out[5] = int(unpack_unorm4x8_to_float(0xff000033u).x * 10 + 0.5f); out[6] = \
                int(unpack_snorm2x16_to_float(0x80007fffu).y);
                out[7] = int(255 * unpack_unorm4x8_srgb_to_float(pack_float_to_srgb_unorm4x8(float4(0.2f))).x + 0.5f);
                """),
            [
                Int32(bitPattern: 0xffff_8000), Int32(bitPattern: 0x8100_7f81), 0xffff, Int32(bitPattern: 0xc000_03ff),
                0xf81f, 2, -1, 51,
            ])
    }
}
