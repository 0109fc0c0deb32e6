import XCTest

/// Vectors accessed through pointers that are aligned only for their elements.
final class CheckerAlignmentTests: CheckerTestCase {
    private static let elements = [
        ("bool", 1), ("char", 1), ("uchar", 1), ("short", 2), ("ushort", 2), ("int", 4), ("uint", 4), ("long", 8),
        ("ulong", 8), ("half", 2),
        ("float", 4), ("bfloat", 2),
    ]
    private let bytes = TestBuffer([UInt8](repeating: 0, count: 256), label: "bytes")
    private let out = TestBuffer([UInt8](repeating: 0, count: 256), label: "out")

    private func kernel(_ body: [String], before: String = "") -> String {
        ([
            "#include <metal_stdlib>", "using namespace metal;", before,
            "kernel void k(device uchar *bytes [[buffer(0)]], device uchar *out [[buffer(1)]], threadgroup uchar "
                + "*scratch [[threadgroup(0)]]) {",
            "  for (int i = 0; i < 256; i++) scratch[i] = 0;",
        ] + body + ["}"]).joined(separator: "\n")
    }

    private func found(_ source: String) throws -> [Finding] {
        try findings(source, [bytes, out], grid: 1, group: 1, lengths: [256])
    }

    func testEveryVectorTypeReadAndWritten() throws {
        let types = Self.elements.flatMap { element, size in
            (2...4).map { (name: "\(element)\($0)", size: size, alignment: ($0 == 2 ? 2 : 4) * size) }
        }
        func source(_ step: (_ size: Int, _ alignment: Int) -> Int) -> String {
            kernel(
                types.flatMap { type in
                    let step = step(type.size, type.alignment)
                    return [
                        "  { \(type.name) v = *(device \(type.name) *)(bytes + \(step));  // READ \(type.name)",
                        "  *(device \(type.name) *)(out + \(step)) = v; }  // WRITE \(type.name)",
                    ]
                })
        }
        let broken = source { size, _ in size }
        let found = try found(broken)
        XCTAssertEqual(found.count, 2 * types.count)
        for type in types {
            let expected = "not a multiple of \(type.alignment)"
            assertFound(
                found, "misaligned", in: broken, at: "READ \(type.name)", thread: [0, 0, 0], buffer: "bytes",
                offset: type.size, says: expected)
            assertFound(
                found, "misaligned", in: broken, at: "WRITE \(type.name)", thread: [0, 0, 0], buffer: "out",
                offset: type.size, says: expected)
        }
        assertSilent(try self.found(source { _, alignment in alignment }))
    }

    /// Each statement is on a separate line.
    func testEveryWayToUseAVector() throws {
        let before = """
            struct Pair { float4 a; float b; };
            float first(float4 v) { return v.x; }
            float last(device const float4 &v) { return v.w; }
            """
        func source(_ step: Int) -> (text: String, markers: [String]) {
            let statements = [
                "y[0] = p[0];", "y[0].x = dot(p[0], y[0]);", "y[0].x = first(p[0]);", "y[0].x = last(p[0]);",
                "y[0] = p[0] * 2;", "y[0] = 2 + p[0];",
                "y[0] = -p[0];", "p[1] += y[0];", "p[1] *= 0;", "p[1] = 0;", "y[0] = fma(y[0], y[0], p[0]);",
                "y[0] = max(p[0], y[0]);", "y[0].xy = p[0].zw;",
                "p[0].xy = y[0].zw;", "y[0] = select(p[0], y[0], y[0] > 0);", "y[0].x = all(p[0] == y[0]);",
                "y[0] = y[0].x < 0 ? y[1] : p[0];",
                "y[0] = float4(as_type<uint4>(p[0]));", "y[0] = float4(half4(p[0]));", "y[0] = float4(p[0].xyz, 1);",
                "y[0] = simd_broadcast(p[0], 0);",
                "y[0] = t[0];", "t[0] = y[0];", "*(device float4x4 *)y = *(device float4x4 *)p;",
                "*(device Pair *)y = *(device Pair *)p;",
                "y[0] = ((device Pair *)p)->a;", "y[0] = *(device float4x4 *)p * y[0];", "p[1] = packed_float4(y[0]);",
                "y[0] = float4(packed_float4(p[0]));",
                "thread float4 mine = p[0]; y[0] = mine;", "thread float4 mine[2] = {y[0], p[0]}; y[0] = mine[1];",
            ]
            let lines = statements.enumerated().map { "  { \($1) }  // USE \($0)" }
            let pointers = [
                "  device float4 *p = (device float4 *)(bytes + \(step)); device float4 *y = (device float4 *)out;",
                "  threadgroup float4 *t = (threadgroup float4 *)(scratch + \(step));",
            ]
            return (kernel(pointers + lines, before: before), statements.indices.map { "USE \($0)" })
        }
        let broken = source(4)
        let found = try found(broken.text)
        for marker in broken.markers {
            assertFound(found, "misaligned", in: broken.text, at: marker, says: "not a multiple of 16")
        }
        assertSilent(try self.found(source(16).text))
    }

    func testPackedVectorsNeedTheAlignmentOfTheirElements() throws {
        func source(_ step: Int) -> String {
            kernel([
                "  device packed_float4 *p = (device packed_float4 *)(bytes + \(step)); device packed_float3 *y = "
                    + "(device packed_float3 *)(out + 4);",
                "  packed_float4 v = p[0]; float4 w = p[1];",
                "  y[0] = v.xyz; y[1] = float3(w.xyz) * 2; ((device packed_half2 *)(out + 2))[0] = half2(1);",
            ])
        }
        assertSilent(try found(source(4)))
    }

    /// A union can't contain a class with a nontrivial copy.
    func testUnionsOfVectorsStillWork() throws {
        let source = kernel([
            "  union Both { float4 v; uint u[4]; } both; both.v = float4(1); Both copy = both;",
            "  *(device uint *)out = copy.u[3];",
        ])
        assertSilent(try found(source))
        XCTAssertEqual(out.array(UInt32.self)[0], Float(1).bitPattern)
    }

    #if arch(x86_64)
    /// The plain build does not check, but the processor requires aligned vectors; the error says so.
    func testThePlainBuildSaysWhatWasWrong() throws {
        let source = kernel(["  device float4 *y = (device float4 *)out;", "  y[0] = *(device float4 *)(bytes + 4);"])
        let function = try KernelLibrary(source).function("k")
        XCTAssertThrowsError(
            try withSetting("check", "0") {
                try function.run([bytes, out], grid: 1, group: 1, threadgroupLengths: [256])
            }
        ) { error in
            XCTAssertTrue("\(error)".contains("used a vector through a misaligned pointer"), "\(error)")
        }
        XCTAssertEqual(takeFindings().map(\.kind), ["misaligned"])
    }
    #endif
}
