import MetalRuntime
import XCTest

/// A thread's variables that are declared without a value, and read on a path that does not write them.
final class CheckerVariableTests: CheckerTestCase {
    private func found(_ statements: String) throws -> (String, [Finding]) {
        let source = """
            #include <metal_stdlib>
            using namespace metal;
            static void both(thread float& a, thread float& b) { a = 1; b = 2; }
            template <typename T> static T largest(device const T* x) {
              T r;
              for (int j = 0; j < 3; j++) r = j ? max(r, x[j]) : x[0];
              return r;
            }
            kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              \(statements)
            }
            """
        let x = TestBuffer((0..<64).map { Float($0 % 7) + 0.5 }, label: "x")
        let y = TestBuffer([Float](repeating: 0, count: 8), label: "y")
        return (source, try findings(source, [x, y], grid: 8, group: 8))
    }

    func testMistakes() throws {
        let mistakes = [
            "float2 v;  // HERE\n v += float2(x[i], 1); y[i] = v.x;",
            "float m;  // HERE\n for (int j = 0; j < 4; j++) m = max(m, x[j]); y[i] = m;",
            "float a = 1, s;  // HERE\n for (int j = 0; j < 4; j++) s = fma(s, 2.0f, x[j]); y[i] = s + a;",
            "half4 h;  // HERE\n if (i > 2) h = half4(1); y[i] = h.x;",
            "uint n;  // HERE\n while (n < 3u) n++; y[i] = n;",
            "vec<float, 3> p;  // HERE\n p.x = 1; y[i] = p.x + p.z;",
        ]
        for mistake in mistakes {
            let (source, found) = try found(mistake)
            let errors = found.filter { $0.severity == "error" }
            XCTAssertEqual(Set(errors.map(\.kind)), ["uninitialized-read"], source)
            let line = sourceLine("HERE", source)
            for error in errors {
                XCTAssertTrue(error.line == line || error.line == line + 1, "line \(error.line) of\n\(source)")
                XCTAssertTrue(error.message.contains("initialize it where it is declared"), error.message)
            }
        }
    }

    /// The compiler has already reported this variable, so the checker does not.
    func testAMistakeIsToldOnce() throws {
        let (source, found) = try found("float s;\n for (int j = 0; j < 4; j++) s += x[j];  // HERE\n y[i] = s;")
        XCTAssertEqual(found.map(\.kind), ["uninitialized-read"])
        XCTAssertEqual(found.first?.line, sourceLine("HERE", source))
    }

    func testVariablesThatAreWrittenFirst() throws {
        let programs = [
            "float a, b; both(a, b); y[i] = a + b;",
            "half4 h; h[0] = 1; h[1] = 2; h[2] = 3; h[3] = 4; y[i] = h.w;",
            "float b, s = 0; if (x[i] > 3) { b = x[i]; } else { b = 0; s = 1; } y[i] = b + s;",
            "uint c; switch (i % 3) { case 0: c = 1; break; case 1: c = 2; break; default: c = 3; } y[i] = c;",
            "float m; if (i < 4) m = 2; y[i] = i < 4 ? m : 0.0f;",
            "packed_float3 p; p.x = 1; p.y = 2; p.z = 3; float3 q = p; y[i] = q.z;",
            "float e, f; e = f = 3; int n; e += frexp(4.0f, n); y[i] = e + f + n;",
            "ushort2 u; u.xy = ushort2(1, 2); y[i] = u.x;",
            "float s; for (int j = 0; j < 3; j++) { if (j == 0) s = x[j]; s += x[j]; } y[i] = s;",
            "float z[3], w; z[0] = z[1] = z[2] = 1; w = z[0]; y[i] = w;",
            "float l; auto set = [&](float v) { l = v; }; set(3); y[i] = l;",
            "int n; for (n = 0; n < 3; n++) y[i] = n;",
            "y[i] = largest<float>(x);",
        ]
        for program in programs {
            let (source, found) = try found(program)
            XCTAssertEqual(found.map(\.message), [], source)
        }
    }

    /// Only a value below all others changes the minimum: zero, for an unsigned type.
    func testTheLeastValue() throws {
        let source = """
            #include <metal_stdlib>
            using namespace metal;
            kernel void k(device const uint* x [[buffer(0)]], device uint* y [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              threadgroup atomic_uint least;
              atomic_fetch_min_explicit(&least, x[i], memory_order_relaxed);  // HERE
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (i == 0) y[0] = atomic_load_explicit(&least, memory_order_relaxed);
            }
            """
        let x = TestBuffer((0..<32).map { UInt32($0 + 5) }, label: "x"),
            y = TestBuffer([UInt32](repeating: 0, count: 1))
        assertFound(try findings(source, [x, y], grid: 32, group: 32), "uninitialized-read", in: source)
    }

    /// Kernel parameters that are references to arrays: the checker knows the bounds.
    func testReferencesToArrays() throws {
        let source = { (count: Int) in
            """
            #include <metal_stdlib>
            using namespace metal;
            kernel void k(constant float (&x)[4] [[buffer(0)]], device float (&y)[2][4] [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              y[i / 4][i % 4] = 2 * x[i % \(count)];  // HERE
            }
            """
        }
        let x = TestBuffer([Float]([1, 2, 3, 4]), label: "x"),
            y = TestBuffer([Float](repeating: 0, count: 8), label: "y")
        assertSilent(try findings(source(4), [x, y], grid: 8, group: 8))
        XCTAssertEqual(y.array(Float.self), [2, 4, 6, 8, 2, 4, 6, 8])
        assertFound(try findings(source(5), [x, y], grid: 8, group: 8), "out-of-bounds", in: source(5))
    }
}
