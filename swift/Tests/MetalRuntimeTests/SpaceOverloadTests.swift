import MetalRuntime
import XCTest

/// Declarations that differ only in address spaces remain distinct in the build that runs, and calls choose between
/// them as MSL's overload resolution does.
final class SpaceOverloadTests: CheckerTestCase {
    /// A kernel of four threads with index `i`: `x` is 0, 1, 2, …, and so is the threadgroup's `t`; `c` is 100, 101, …
    /// in constant memory. Thread 0 writes four numbers.
    private func numbers(_ declarations: String, _ statement: String) throws -> [Float] {
        let function = try KernelLibrary(
            """
            \(declarations)
            kernel void f(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                          constant float *c [[buffer(2)]], uint i [[thread_position_in_grid]]) {
              threadgroup float t[32];
              for (uint k = i; k < 32; k += 4) t[k] = k;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              thread float l[4] = {200, 201, 202, 203};
              (void)c; (void)l; (void)x;
              if (i == 0) { \(statement) }
            }
            """
        ).function("f")
        let y = TestBuffer([Float](repeating: -1, count: 4))
        let x = TestBuffer((0..<32).map(Float.init)), c = TestBuffer((100..<132).map(Float.init))
        try function.run([y, x, c], grid: 4, group: 4)
        return y.array()
    }

    // MARK: functions and templates

    func testFunctionsOfEachSpace() throws {
        XCTAssertEqual(
            try numbers(
                """
                float f(device const float *p) { return p[4]; }
                float f(threadgroup const float *p) { return p[8]; }
                float f(constant float *p) { return p[1]; }
                float f(thread const float *p) { return p[2]; }
                """, "y[0] = f(x); y[1] = f(t); y[2] = f(c); y[3] = f(l);"), [4, 8, 101, 202])
    }

    func testTemplatesWhoseStridesDiffer() throws {
        for order in [0, 1] {
            let both = [
                "template <typename T> T f(device const T *p, uint i) { return p[i * 4]; }",
                "template <typename T> T f(threadgroup const T *p, uint i) { return p[i * 8]; }",
            ]
            XCTAssertEqual(
                try numbers(both[order] + both[1 - order], "y[0] = f(x, 2); y[1] = f(t, 2); y[2] = 0; y[3] = 0;"),
                [8, 16, 0, 0])
        }
    }

    func testReferencesAndArrays() throws {
        XCTAssertEqual(
            try numbers(
                """
                float f(device const float &v) { return v + 10; }
                float f(threadgroup const float &v) { return v + 20; }
                float f(thread const float &v) { return v + 30; }
                template <int N> float g(threadgroup float (&v)[N]) { return N; }
                float g(device const float *v) { return v[1]; }
                float h(constant const float v[2], uint k) { return v[k]; }
                """, "y[0] = f(x[1]); y[1] = f(t[1]); y[2] = f(l[1]) + g(t); y[3] = g(x) + h(c, 1);"),
            [11, 21, 263, 102])
    }

    /// Only one of them accepts the pointer, although the other is a better match for the number.
    func testASpaceOutweighsAnotherArgument() throws {
        XCTAssertEqual(
            try numbers(
                """
                float f(device const float *p, ushort n) { return 1; }
                float f(threadgroup const float *p, int n) { return 2; }
                float g(device const float *p, int n) { return 1; }
                float g(threadgroup const float *p, ushort n) { return 2; }
                """, "y[0] = f(x, 3); y[1] = f(t, 3); y[2] = g(x, 3); y[3] = g(t, 3);"), [1, 2, 1, 2])
    }

    func testWhatATemplateDeduces() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename P> struct kind { static constexpr constant int value = 0; };
                template <typename T> struct kind<device T *> { static constexpr constant int value = 1; };
                template <typename T> struct kind<threadgroup T *> { static constexpr constant int value = 2; };
                template <typename P> int kind_of(P p) { return kind<P>::value; }
                """, "y[0] = kind_of(x); y[1] = kind_of(t); y[2] = kind_of(c); y[3] = kind_of(&l[0]);"), [1, 2, 0, 0])
    }

    /// A specialization or comparison for a type in one address space does not apply to all address spaces.
    func testALoneSpecialization() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename P> struct is_shared { static constexpr constant bool value = false; };
                template <typename T> struct is_shared<threadgroup T *> {
                  static constexpr constant bool value = true;
                };
                template <typename P> float f(P p) { return is_shared<P>::value ? 1 : 2; }
                """, "y[0] = f(x); y[1] = f(t); y[2] = f(c); y[3] = f(&l[0]);"), [2, 1, 2, 2])
        XCTAssertEqual(
            try numbers(
                "template <typename P> float f(P p) { return is_same_v<P, threadgroup float *> ? 1 : 2; }",
                "y[0] = f(x); y[1] = f(&t[0]); y[2] = f(c); y[3] = f(&l[0]);"), [2, 1, 2, 2])
    }

    // MARK: members

    /// Like MLX's tiles, which load themselves.
    func testMethodsThatTakePointers() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename T, int N> struct Tile {
                  T values[N];
                  template <typename U> void load(device const U *p, int stride) {
                    for (int k = 0; k < N; k++) values[k] = p[k * stride];
                  }
                  template <typename U> void load(threadgroup const U *p) {
                    for (int k = 0; k < N; k++) values[k] = p[k];
                  }
                  void store(threadgroup T *p) const { for (int k = 0; k < N; k++) p[k] = values[k] + 100; }
                  void store(device T *p) const { for (int k = 0; k < N; k++) p[k] = values[k]; }
                  static float place(device const T *p, int k) { return p[k]; }
                  static float place(threadgroup const T *p, int k) { return p[2 * k]; }
                };
                """,
                "Tile<float, 3> a, b; a.load(x, 5); b.load(t); b.store(&t[0]); b.store(y); "
                    + "y[0] = a.values[2]; y[1] = t[1]; "
                    + "y[3] = Tile<float, 3>::place(x, 3) + Tile<float, 3>::place(t, 4);"
            ), [10, 101, 2, 11])
    }

    /// With identical bodies they are a single method; their objects are in every address space.
    func testMethodsOfObjectsInEachSpace() throws {
        XCTAssertEqual(
            try numbers(
                """
                struct Pair {
                  float a, b;
                  float sum() const thread { return a + b; }
                  float sum() const device { return a + b; }
                  float sum() const threadgroup { return a + b; }
                  float sum() const constant { return a + b; }
                };
                float f(device const Pair *p) { return p->sum(); }
                float f(threadgroup const Pair *p) { return 2 * p->sum(); }
                float f(constant Pair *p) { return 3 * p->sum(); }
                float f(thread const Pair *p) { return 4 * p->sum(); }
                """,
                "Pair p = {1, 2}; y[0] = f((device const Pair *)x); y[1] = f((threadgroup const Pair *)t); "
                    + "y[2] = f((constant Pair *)c); y[3] = f(&p);"), [1, 2, 603, 12])
    }

    // MARK: the library, the checker

    func testTheLibraryTakesBothSpaces() throws {
        let library = try KernelLibrary(
            """
            constant bool twice [[function_constant(0)]];
            template <typename T> void move(thread simdgroup_matrix<T, 8, 8> &m, device const T *p) {
              simdgroup_load(m, p, 8, ulong2(0), true);
            }
            template <typename T> void move(thread simdgroup_matrix<T, 8, 8> &m, threadgroup const T *p) {
              simdgroup_load(m, p);
            }
            struct Totals { atomic_uint count; packed_float3 place; float4 color; };
            void add(device Totals &totals, uint n) {
              atomic_fetch_add_explicit(&totals.count, n, memory_order_relaxed);
              totals.color += float4(1, 2, 3, 4);
              totals.color.yz *= 2;
              totals.place = packed_float3(totals.color.xyz);
            }
            void add(threadgroup atomic_uint &count, uint n) {
              atomic_fetch_add_explicit(&count, 2 * n, memory_order_relaxed);
            }
            kernel void f(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                          device Totals &totals [[buffer(2)]], uint i [[thread_index_in_threadgroup]]) {
              threadgroup float t[64];
              threadgroup atomic_uint count;
              if (i == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
              for (uint k = i; k < 64; k += 32) t[k] = x[k];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              simdgroup_float8x8 a, b;
              move(a, x); move(b, t);
              simdgroup_store(a, y); simdgroup_store(b, y + 64);
              add(count, i);
              if (i == 0) { totals.color = 0; add(totals, 7); }
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (i == 0) y[128] = atomic_load_explicit(&count, memory_order_relaxed) * (twice ? 2 : 1);
            }
            """)
        var value = mrt_constant_value()
        value.type = 53
        value.value.0 = 1
        let y = TestBuffer([Float](repeating: -1, count: 129)), x = TestBuffer((0..<64).map(Float.init))
        let totals = TestBuffer([UInt32](repeating: 0, count: 8))
        try library.function("f", constants: [value]).run([y, x, totals], grid: 32, group: 32)
        let result = y.array(Float.self)
        XCTAssertEqual(Array(result[0..<64]), (0..<64).map { Float($0 % 8 * 8 + $0 / 8) })
        XCTAssertEqual(Array(result[64..<128]), (0..<64).map(Float.init))
        XCTAssertEqual(result[128], 2 * 2 * 496)
        XCTAssertEqual(totals.array(UInt32.self)[0], 7)
        XCTAssertEqual(totals.array(Float.self)[1...], [1, 4, 6, 1, 4, 6, 4])
    }

    /// The lines and the memory in the checker's findings are as in any other program.
    func testTheCheckerSeesBothSpaces() throws {
        let source = """
            void put(device float *p, uint i, float v) { p[i] = v; }
            void put(threadgroup float *p, uint i, float v) { p[i / 2] = v; }
            kernel void f(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              threadgroup float t[8];
              put(t, i, i);
              put(y, i + 1, 1);
            }
            """
        try withSetting("check", "1") {
            let function = try KernelLibrary(source).function("f")
            _ = takeFindings()
            try function.run([TestBuffer([Float](repeating: 0, count: 8), label: "y")], grid: 8, group: 8)
            let findings = takeFindings().map { "\($0.kind) \($0.line)" }
            XCTAssertEqual(Set(findings), ["threadgroup-race 2", "out-of-bounds 1"])
        }
    }
}
