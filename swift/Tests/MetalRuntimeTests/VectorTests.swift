import XCTest

/// Vectors, packed vectors and matrices (MSL 2.2, 2.3).
final class VectorTests: XCTestCase {
    func testSizesAndAlignments() throws {
        // Table 2.3: a vector of 3 has the size of 4. Table 2.5: packed vectors have the alignment of their elements.
        let sizes: [(String, Int32)] = [
            ("bool", 1), ("char", 1), ("uchar", 1), ("short", 2), ("ushort", 2), ("int", 4), ("uint", 4), ("long", 8),
            ("ulong", 8),
            ("half", 2), ("bfloat", 2), ("float", 4),
        ]
        let names = sizes.flatMap { type, _ in
            [type] + ["\(type)2", "\(type)3", "\(type)4"] + ["packed_\(type)2", "packed_\(type)3", "packed_\(type)4"]
        }
        let got = try integers(
            2 * names.count,
            names.enumerated().map {
                "out[\(2 * $0.offset)] = sizeof(\($0.element)); out[\(2 * $0.offset + 1)] = alignof(\($0.element));"
            }.joined(separator: "\n"))
        for (index, (type, size)) in sizes.enumerated() {
            let expected = [1, 1, 2, 2, 4, 4, 4, 4, 2, 1, 3, 1, 4, 1].map { $0 * size }
            XCTAssertEqual(Array(got[(14 * index)..<(14 * index + 14)]), expected, type)
        }
    }

    func testMatrixSizes() throws {
        // Table 2.4: columns of 2, 3 and 4 components, with the alignment of such vectors.
        let got = try integers(
            8,
            """
            out[0] = sizeof(float2x2); out[1] = sizeof(float3x3); out[2] = sizeof(float4x4); out[3] = sizeof(float2x3);
            out[4] = alignof(float3x3); out[5] = sizeof(half3x3); out[6] = alignof(half2x2); out[7] = sizeof(half4x2);
            """)
        XCTAssertEqual(got, [16, 48, 64, 32, 16, 24, 4, 16])
    }

    func testConstructorsFromMixtures() throws {
        let forms = [
            "float4(1, 2, 3, 4)", "float4(float2(1, 2), 3, 4)", "float4(1, float2(2, 3), 4)",
            "float4(1, 2, float2(3, 4))",
            "float4(float2(1, 2), float2(3, 4))", "float4(float3(1, 2, 3), 4)", "float4(1, float3(2, 3, 4))",
            "float4(int4(1, 2, 3, 4))",
            "float4(half4(1, 2, 3, 4))", "float4(packed_float3(1, 2, 3), 4)", "float4(float3(1, float2(2, 3)), 4)",
            "(float4){1, 2, 3, 4}",
            "float4(1.5f) + float4(-0.5f, 0.5f, 1.5f, 2.5f)", "static_cast<float4>(uint4(1, 2, 3, 4))",
            "float4(packed_half4(1, 2, 3, 4))",
        ]
        let values = try floats(
            4 * forms.count,
            forms.enumerated().map {
                "{ float4 v = \($0.element); for (int i = 0; i < 4; ++i) out[\(4 * $0.offset) + i] = v[i]; }"
            }.joined(separator: "\n"))
        for (index, form) in forms.enumerated() {
            XCTAssertEqual(Array(values[(4 * index)..<(4 * index + 4)]), [1, 2, 3, 4], form)
        }
    }

    func testListsInBracesFillWithZeros() throws {
        let values = try floats(
            8,
            """
            const float a = out[0]; float4 v = {a, 2}; float3 w = {}; constexpr float4 c = {5, 6, 7}; float2 l[2] = \
            {{1, 2}, {3}};
            out[0] = v.x; out[1] = v.y; out[2] = v.w; out[3] = w.z; out[4] = c.z; out[5] = c.w; out[6] = l[1].x; \
            out[7] = l[1].y;
            """)
        XCTAssertEqual(values, [-1, 2, 0, 0, 7, 0, 3, 0])
    }

    func testVectorsOfDifferentTypesDoNotMix() {
        for statement in [
            "float4 v = int4(1);", "float4 v = float3(1);", "float4 v = float4(1) + int4(1);", "float2 v = half2(1);",
            "int4 v = int4(1) * 1.5f;", "float2 v; v.xx = float2(1);", "float2 v; out[0] = v.z;",
            "float4 v = float4(1, 2, 3);", "float2x2 m = float2x2(1, 2);",
        ] {
            XCTAssertNotNil(refusal("kernel void k(device float* out) { \(statement) }"), statement)
        }
    }

    func testSwizzlesReadInEveryOrder() throws {
        // Every pair, triple and quadruple of components, with both sets of names.
        for names in ["xyzw", "rgba"] {
            let letters = names.map(String.init)
            let pairs = letters.flatMap { a in letters.map { a + $0 } }
            let words =
                pairs + pairs.flatMap { a in letters.map { a + $0 } } + pairs.flatMap { a in pairs.map { a + $0 } }
            let code = { (word: String) in word.reduce(0) { $0 * 10 + letters.firstIndex(of: String($1))! + 1 } }
            let kernel = try KernelLibrary(
                """
                int digits(int2 v) { return 10 * v.x + v.y; }
                int digits(int3 v) { return 10 * digits(v.xy) + v.z; }
                int digits(int4 v) { return 10 * digits(v.xyz) + v.w; }
                kernel void swizzle(device int* out [[buffer(0)]], device const int4& v [[buffer(1)]]) {
                  \(words.enumerated().map { "out[\($0.offset)] = digits(v.\($0.element));" }.joined(separator: "\n"))
                }
                """
            ).function("swizzle")
            let out = TestBuffer(length: 4 * words.count)
            try kernel.run([out, TestBuffer([1, 2, 3, 4] as [Int32])], grid: 1, group: 1)
            for (got, word) in zip(out.array(Int32.self), words) { XCTAssertEqual(Int(got), code(word), word) }
        }
    }

    func testSwizzlesWrite() throws {
        let values = try floats(
            4,
            """
            float4 v = float4(1, 2, 3, 4);
            v.yx = v.xy; v.zw *= 10; v.a += 1; v.rg -= float2(0.5f); v.wzyx = v;
            for (int i = 0; i < 4; ++i) out[i] = v[i];
            """)
        XCTAssertEqual(values, [41, 30, 0.5, 1.5])
    }

    func testSwizzlesOfDeviceAndConstantMemory() throws {
        let kernel = try KernelLibrary(
            """
            constant float4 table[2] = {float4(1, 2, 3, 4), float4(5, 6, 7, 8)};
            struct Pair { float3 a; packed_float3 b; };
            kernel void k(device float4* v [[buffer(0)]], constant Pair& pair [[buffer(1)]], \
            constant float4* c [[buffer(2)]]) {
              v[0].xy = table[1].wz;
              v[0].zw = pair.a.yx;
              v[1].rgb = pair.b.zyx;
              v[1].w = c[0].bgra[0] + c[0][3];
            }
            """
        ).function("k")
        let v = TestBuffer([Float](repeating: 0, count: 8))
        let pair = TestBuffer([10, 11, 12, 0, 20, 21, 22, 0] as [Float]), c = TestBuffer([1, 2, 3, 4] as [Float])
        try kernel.run([v, pair, c], grid: 1, group: 1)
        XCTAssertEqual(v.array(Float.self), [8, 7, 11, 10, 22, 21, 20, 7])
    }

    func testOneComponentIsWrittenWithoutItsNeighbours() throws {
        // Two threads write two components of one vector: this is not a race, so the whole vector must not be written.
        let kernel = try KernelLibrary(
            """
            kernel void k(device float4* v [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              if (i == 0) v[0].x = 1; else if (i == 1) v[0].w = 2; else v[0].yz = float2(3, 4);
            }
            """
        ).function("k")
        let v = TestBuffer([Float](repeating: 0, count: 4))
        try kernel.run([v], grid: 3, group: 1)
        XCTAssertEqual(v.array(Float.self), [1, 3, 4, 2])
    }

    func testOperatorsAndTheirTypes() throws {
        let values = try integers(
            16,
            """
            int3 a = int3(7, -8, 9), b = int3(2, 3, 4);
            out[0] = (a + b).x; out[1] = (a - 1).y; out[2] = (2 * a).z; out[3] = (a / b).x; out[4] = (a % b).y; out[5] \
            = (a & 3).x;
            out[6] = (a | b).x; out[7] = (a ^ b).x; out[8] = (~a).x; out[9] = (-a).y; out[10] = is_same_v<decltype(a < \
            b), bool3>;
            out[11] = (!a).x; out[12] = (a > b && b > 2).z; a += b; a *= 2; a <<= 1; out[13] = a.x; ++a; out[14] = \
            (a++).y; out[15] = a.y;
            """)
        XCTAssertEqual(values, [9, -9, 18, 3, -2, 3, 7, 5, -8, 8, 1, 0, 1, 36, -19, -18])
        XCTAssertEqual(
            try integers(2, "uchar2 a = uchar2(200, 1); out[0] = (a + a).x; out[1] = (half2(1) * 2049.0f).x == 2048;"),
            [144, 1])
    }

    func testPackedVectors() throws {
        let kernel = try KernelLibrary(
            """
            kernel void k(device packed_float3* p [[buffer(0)]], constant packed_half4* h [[buffer(1)]]) {
              p[1] = p[0] * 2 + float3(1, 0, 0);
              p[1].y -= 1; p[2].xy = p[0].zx; p[2][2] = length(packed_float3(3, 4, 0)); p[3] = float3(float4(h[0]).wzy);
              p[3] += p[0]; float3 v = p[3]; p[4] = max(p[0], 2.5f) + cross(v, p[3]);
            }
            """
        ).function("k")
        let p = TestBuffer([1, 2, 3] + [Float](repeating: 0, count: 12))
        try kernel.run([p, TestBuffer([0x3c00, 0x4000, 0x4200, 0x4400] as [UInt16])], grid: 1, group: 1)
        XCTAssertEqual(p.array(Float.self), [1, 2, 3, 3, 3, 6, 3, 1, 5, 5, 5, 5, 2.5, 2.5, 3])
    }

    func testMatrices() throws {
        let values = try floats(
            20,
            """
            float2x3 m = float2x3(1, 2, 3, 4, 5, 6);
            float3 v = m * float2(10, 1); float2 w = float3(1, 0, 2) * m; float3x2 t = transpose(m); float2x2 p = t * m;
            out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = w.x; out[4] = w.y; out[5] = t[2].y; out[6] = p[0][0]; \
            out[7] = p[1][1];
            out[8] = determinant(float2x2(1, 2, 3, 4)); out[9] = determinant(float3x3(2, 0, 1, 1, 3, 0, 0, 1, 4));
            float4x4 d = float4x4(2.0f); d[3] = float4(1, 2, 3, 4); out[10] = determinant(d); out[11] = (d * \
            0.5f)[3].w; out[12] = (d - d)[1].y;
            half2x2 h = half2x2(p); out[13] = h[0][1]; out[14] = d == d; float3x3 c = float3x3(float3(1), float3(2), \
            float3(3)); out[15] = c[2].x;
            float4x4 s = float4x4(0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1); out[16] = determinant(s); c *= 2; \
            out[17] = c[1].z;
            out[18] = (float2x2(1, 2, 3, 4) * float2x2(0, 1, 1, 0))[0].x; out[19] = m[1].zyx.x;
            """)
        XCTAssertEqual(values, [14, 25, 36, 7, 16, 6, 14, 77, -2, 25, 32, 2, 0, 32, 1, 3, -1, 4, 3, 6])
    }

    func testGeometry() throws {
        let values = try floats(
            12,
            """
            float3 a = float3(1, 2, 2), b = float3(0, 1, 0);
            out[0] = dot(a, b); out[1] = length(a); out[2] = distance(a, b); out[3] = cross(a, b).x; out[4] = \
            normalize(float2(3, 4)).y;
            out[5] = reflect(float2(1, -1), float2(0, 1)).y; out[6] = refract(float2(0, -1), float2(0, 1), 0.5f).y; \
            out[7] = faceforward(b, a, b).y;
            out[8] = length_squared(a); out[9] = distance_squared(a, b); out[10] = refract(float2(1, 0), float2(0, 1), \
            2.0f).x; out[11] = dot(half2(1, 2), half2(3, 4));
            """)
        XCTAssertEqual(values, [2, 3, Float(6).squareRoot(), -2, 0.8, 1, -1, -1, 9, 6, 0, 11])
    }

    func testArraysAndUnionsOfVectors() throws {
        XCTAssertEqual(
            try floats(
                4,
                """
                metal::array<float, 3> a = {{1, 2, 3}}; union Both { float4 v; float f[4]; } both; both.v = float4(4, \
                5, 6, 7);
                out[0] = a[1] + a.size(); out[1] = both.f[2]; float sum = 0; for (float f : a) sum += f; out[2] = sum; \
                out[3] = as_type<float4>(both.v).y;
                """),
            [5, 6, 6, 5])
    }
}
