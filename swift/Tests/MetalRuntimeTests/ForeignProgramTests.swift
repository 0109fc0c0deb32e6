import MetalRuntime
import XCTest

/// What kernels of other projects have, each as the smallest program that has it.
final class ForeignProgramTests: CheckerTestCase {
    /// Four numbers of a kernel with one buffer, run as one thread.
    private func numbers(_ declarations: String, _ body: String, parameters: String = "") throws -> [Float] {
        let function = try KernelLibrary(
            "\(declarations)\nkernel void f(device float *y [[buffer(0)]]\(parameters)) { \(body) }", version: 0x30002
        ).function("f")
        let y = TestBuffer([Float](repeating: -1, count: 4))
        try function.run([y], grid: 1, group: 1)
        return y.array()
    }

    /// A file draws and computes: what draws is left out, whatever it calls.
    func testFunctionsThatRenderAreLeftOut() throws {
        let library = try KernelLibrary(
            """
            struct Corner { float4 place [[position]]; float2 at; };
            vertex Corner corner(uint id [[vertex_id]], constant float2 *at [[buffer(0)]]) {
              return {float4(at[id], 0, 1), at[id]};
            }
            fragment float4 paint(Corner in [[stage_in]], texture2d_ms<float> t [[texture(0)]]) {
              if (in.at.x < 0) discard_fragment();
              return t.read(uint2(in.at), 0) * dfdx(in.at.x);
            }
            [[fragment]] half4 other() { return half4(1.5h); }
            float two() { return 2; }
            kernel void f(device float *y [[buffer(0)]]) { y[0] = two(); }
            """)
        XCTAssertTrue(
            library.warnings.contains("program_source:5:17: warning: 'fragment' function 'paint' is left out"))
        XCTAssertTrue(library.warnings.contains("'vertex' function 'corner' is left out"), library.warnings)
        XCTAssertTrue(library.warnings.contains("'fragment' function 'other' is left out"), library.warnings)
        let y = TestBuffer([0] as [Float])
        try library.function("f").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(), [2] as [Float])
        XCTAssertThrowsError(try library.function("paint"))
    }

    func testListsOfNumbers() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename F, int... I> void each(F f, metal::integer_sequence<int, I...>) { (f(I), ...); }
                struct Nothing { nullptr_t p; };
                """,
                """
                each([&](int k) { y[k] = k * k; }, metal::make_integer_sequence<int, 3>{});
                y[3] = sizeof(Nothing) + index_sequence<4, 5>::size();
                """), [0, 1, 4, 10])
    }

    func testNamesOfApplesHeaders() throws {
        XCTAssertEqual(
            try numbers(
                "void add(threadgroup _atomic<uint> *n) { atomic_fetch_add_explicit(n, 3u, memory_order_relaxed); }",
                """
                threadgroup _atomic<uint> n;
                atomic_store_explicit(&n, 4u, memory_order_relaxed);
                add(&n);
                y[0] = atomic_load_explicit(&n, memory_order_relaxed);
                y[1] = numeric_limits<int2>::max().y - 2147483000;
                y[2] = float(HUGE_VALBF) == INFINITY && float(MAXBFLOAT) < INFINITY;
                y[3] = numeric_limits<float4>::lowest().w == -FLT_MAX;
                """), [7, 647, 1, 1])
    }

    /// As SPIRV-Cross writes coherent blocks.
    func testVectorsInVolatileMemory() throws {
        XCTAssertEqual(
            try numbers(
                "struct Block { float4 value; };",
                "volatile device Block &b = *(volatile device Block *)y; b.value = float4(20.0); "
                    + "float4 v = b.value + float4(0, 1, 2, 3); b.value = v; b.value.x = 5;"), [5, 21, 22, 23])
    }

    /// As SPIRV-Cross writes matrices in threadgroup memory: lists in braces, and assignments between all spaces.
    func testMatricesThatAreStoredElsewhere() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename T, int Cols, int Rows = Cols> struct Stored {
                  vec<T, Rows> columns[Cols];
                  Stored() thread = default;
                  thread Stored &operator=(initializer_list<vec<T, Rows>> list) thread {
                    size_t i = 0;
                    for (auto column = list.begin(); i < Cols; ++i, ++column) columns[i] = *column;
                    return *this;
                  }
                  Stored(const thread matrix<T, Cols, Rows> &m) thread {
                    for (size_t i = 0; i < Cols; ++i) columns[i] = m.columns[i];
                  }
                  thread Stored &operator=(const thread matrix<T, Cols, Rows> &m) thread {
                    for (size_t i = 0; i < Cols; ++i) columns[i] = m.columns[i];
                    return *this;
                  }
                  threadgroup Stored &operator=(const thread Stored &m) threadgroup {
                    for (size_t i = 0; i < Cols; ++i) columns[i] = m.columns[i] + 1;
                    return *this;
                  }
                  operator matrix<T, Cols, Rows>() const thread {
                    matrix<T, Cols, Rows> m;
                    for (int i = 0; i < Cols; ++i) m.columns[i] = columns[i];
                    return m;
                  }
                  operator matrix<T, Cols, Rows>() const threadgroup {
                    matrix<T, Cols, Rows> m;
                    for (int i = 0; i < Cols; ++i) m.columns[i] = columns[i] * 2;
                    return m;
                  }
                };
                """,
                """
                threadgroup Stored<float, 2> shared;
                Stored<float, 2> own(float2x2(float2(1, 2), float2(3, 4)));
                shared = own;
                float2x2 m = shared, n = own;
                y[0] = m[0][0]; y[1] = m[1][1]; y[2] = n[0][1]; y[3] = n[1][0];
                """), [4, 10, 2, 3])
    }

    func testTexturesWithACoherence() throws {
        XCTAssertNil(
            refusal(
                """
                kernel void f(texture2d<float, access::read_write, memory_coherence_device> t [[texture(0)]],
                              texture2d<float, access::write, memory_coherence_threadgroup> u [[texture(1)]]) {
                  u.write(t.read(uint2(0)), uint2(0));
                }
                """))
    }

    /// The strict pass takes a method that returns a reference to a member for wrong, which it is not; a call that
    /// could then mean its `const` twin is no mistake either.
    func testMethodsThatReturnReferencesToMembers() throws {
        XCTAssertEqual(
            try numbers(
                """
                template <typename T, int R> struct Tile {
                  typedef vec<T, 2> Fragment;
                  Fragment values[R] = {Fragment(0)};
                  constexpr thread Fragment &at(short i) { return values[i]; }
                  constexpr const thread Fragment &at(short i) const { return values[i]; }
                  thread T *elements() { return reinterpret_cast<thread T *>(values); }
                  const thread T *elements() const { return reinterpret_cast<const thread T *>(values); }
                  static void put(thread Fragment &f, T v) { f = v; }
                  template <typename P> void load(P p) { for (short i = 0; i < R; i++) put(at(i), p[i]); }
                };
                template <typename T> struct Product {
                  Tile<T, 2> c;
                  void store(device T *d) { for (int i = 0; i < 4; i++) c.elements()[i] += i, d[i] = c.elements()[i]; }
                  void store(device T *d, int n) { for (int i = 0; i < n; i++) d[i] = c.elements()[i]; }
                };
                """,
                """
                Product<float> p; Product<bfloat> q; bfloat b[2] = {bfloat(1), bfloat(2)};
                for (int i = 0; i < 2; i++) y[i] = 10 * i;
                p.c.load(y); q.c.load(b); p.store(y); p.store(y, 2); y[3] += q.c.elements()[3];
                """), [0, 1, 12, 15])
    }
}
