import MetalRuntime
import XCTest

/// Constructs that Apple's compiler accepts and clang's modes spell differently: each compiles in both passes, and
/// gives the right results.
final class SpellingTests: CheckerTestCase {
    /// Returns what four threads of `f` write, where thread i has `x[i]` = i + 1.
    private func numbers(_ declarations: String, _ statement: String, checked: Bool = false) throws -> [Float] {
        try withSetting("check", checked ? "1" : "0") {
            let function = try KernelLibrary(
                """
                \(declarations)
                kernel void f(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) { (void)x; \(statement) }
                """
            ).function("f")
            let y = TestBuffer([Float](repeating: -1, count: 4)), x = TestBuffer((0..<64).map { Float($0 + 1) })
            try function.run([y, x], grid: 4, group: 4)
            return y.array()
        }
    }

    private func assertBoth(
        _ declarations: String, _ statement: String, _ expected: [Float], line: UInt = #line
    ) throws {
        for checked in [false, true] {
            XCTAssertEqual(try numbers(declarations, statement, checked: checked), expected, line: line)
        }
        XCTAssertEqual(takeFindings().map(\.description), [], line: line)
    }

    // MARK: Names

    /// OpenCL's keywords and types, later keywords of C++, and internal names of the library are all free names in
    /// Metal. Each is used in every role that a name can have, in a random order.
    func testNamesThatOtherLanguagesReserve() throws {
        let words = [
            "global", "local", "generic", "read_only", "write_only", "read_write", "pipe", "queue_t", "event_t",
            "sampler_t", "vec_step", "clk_event_t", "reserve_id_t", "ndrange_t", "image2d_t", "image3d_t",
            "atomic_size_t", "channel", "printf",
            "work_group", "get_global_id", "convert_float", "as_float", "concept", "requires", "co_await", "char8_t",
            "module", "import", "unix", "linux", "clamped", "runtime", "current_thread", "launch", "mrt_group", "lane",
            "self", "interrupt", "device_ptr", "checker", "vector",
            "image1d_buffer_t", "constant_value", "uniform_value", "ballot", "stage", "kernel_name",
        ]
        var random = SplitMix64(3307)
        var names = words
        while names.count >= 8 {
            names.shuffle(using: &random)
            let n = Array(names.suffix(8))
            names.removeLast(8)
            try assertBoth(
                """
                struct \(n[0]) { float \(n[1]); };
                enum class \(n[2]) { \(n[3]) };
                template <typename \(n[4])> \(n[4]) \(n[5])(\(n[4]) \(n[6])) { return \(n[6]); }
                """,
                """
                threadgroup float \(n[7])[4];
                \(n[7])[i] = \(n[5])(x[i]);
                \(n[0]) \(n[6]){\(n[7])[i] + float(int(\(n[2])::\(n[3])))};
                threadgroup \(n[0]) \(n[3]);
                if (i == 0) \(n[3]).\(n[1]) = 2;
                threadgroup_barrier(mem_flags::mem_threadgroup);
                float \(n[4]) = \(n[3]).\(n[1]);
                y[i] = \(n[6]).\(n[1]) * \(n[4]);
                """, [2, 4, 6, 8])
        }
    }

    // MARK: bfloat

    private let twin = "struct C { float v; operator bool() const { return v != 0; } };"

    func testABfloatConvertsAsAScalar() throws {
        try assertBoth(
            twin,
            """
            bfloat b = bfloat(x[i]); uint u = b; C c{x[i] - 1}; bfloat d = c; bfloat4 v; v[i] = 0;
            y[i] = u * 10 + d + v[i];
            """,
            [10, 21, 31, 41])
    }

    func testABfloatCountsUpAndDown() throws {
        try assertBoth(
            "",
            """
            bfloat b[2] = {bfloat(x[i]), bfloat(0)}; uint u = b[0]; b[1]++; ++b[1]; b[1]--; ++b[0];
            for (bfloat k = 0; k < b[0]; k++) u++;
            y[i] = float(b[0]) * 100 + float(b[1]) * 10 + u;
            """, [213, 315, 417, 519])
    }

    func testABfloatIsCastFromAndToAHalf() throws {
        for cast in [
            "half(b)", "(half)b", "static_cast<half>(b)", "convert<half>(b)", "2 * (half)b / 2",
            "(half)(bfloat)(half)b",
        ] {
            try assertBoth(
                "template <typename T, typename U> T convert(U u) { return T(u); }",
                "bfloat b = bfloat(x[i]); uint u = b; half h = \(cast); b = bfloat(h); b = (bfloat)h; y[i] = b + u;",
                [2, 4, 6, 8])
        }
    }

    // MARK: members and functions

    func testConstTwins() throws {
        try assertBoth(
            """
            template <typename T, int N> struct Fragment {
              T v[N];
              thread T &operator[](int i) thread { return v[i]; }
              T operator[](int i) const thread { return v[i]; }
              threadgroup T *data() threadgroup { return v; }
              const threadgroup T *data() const threadgroup { return v; }
              device T &at(int i) device { return v[i]; }
              T at(int i) const device { return v[i]; }
            };
            """,
            """
            threadgroup Fragment<float, 4> t; t.data()[i] = x[i]; Fragment<float, 2> a; a[0] = 10; a[1] = x[i];
            const Fragment<float, 2> b = a;
            y[i] = b[0] + a[1] + t.data()[i] + ((device const Fragment<float, 4> *)x)->at(0);
            """, [13, 15, 17, 19])
    }

    func testWhatIsCalledThroughAReference() throws {
        try assertBoth(
            """
            struct Twice { float operator()(float x) const { return x * 2; } };
            float next(float x) { return x + 1; }
            template <typename F> float one(thread F &&f, float x) { return f(x); }
            template <typename F> float two(const thread F &f, float x) { return f(x); }
            template <typename F, typename... A> float all(thread F &&f, A... a) { return f(a...); }
            """,
            """
            Twice twice;
            y[i] = one(next, x[i]) + two(next, x[i]) + one(twice, x[i]) + one(Twice(), x[i]) + all(next, x[i])
                 + one([](float v) { return v * 100; }, x[i]);
            """, [110, 217, 324, 431])
    }

    // MARK: types and parameters

    func testRestrict() throws {
        let function = try KernelLibrary(
            """
            void put(device float *__restrict y, float v) { *y = v; }
            kernel void f(device float *__restrict__ y [[buffer(0)]],
                          const device float *const __restrict x [[buffer(1)]],
                          constant float &__restrict s [[buffer(2)]], uint i [[thread_position_in_grid]]) {
              put(y + i, x[i] * s);
            }
            """
        ).function("f")
        let y = TestBuffer([Float](repeating: 0, count: 4))
        try function.run([y, TestBuffer([Float]([1, 2, 3, 4])), TestBuffer([Float(3)])], grid: 4, group: 4)
        XCTAssertEqual(y.array() as [Float], [3, 6, 9, 12])
    }

    func testPointersToPointers() throws {
        try assertBoth(
            """
            template <typename T> float sum(thread device const T* const* p, int n) {
              float s = 0;
              for (int k = 0; k < n; k++) s += p[k][0];
              return s;
            }
            float second(const device float *thread *p) { return p[1][0]; }
            float last(threadgroup float *thread *p) { return *p[0]; }
            """,
            """
            threadgroup float t[4]; t[i] = x[i]; threadgroup float *r[1] = {&t[i]};
            device const float *q[2] = {x + i, x + 10};
            y[i] = sum<float>(q, 2) * 100 + second(q) + last(r);
            """, [1212, 1313, 1414, 1515])
    }

    func testMembersOfAStructThatATypedefNames() throws {
        try assertBoth(
            """
            typedef struct Pair {
              float a, b;
              float sum() const device { return a + b; }
              float sum() const thread { return a + b; }
              float sum() const constant { return a + b; }
            } Pair;
            typedef struct {
              float a;
              float get() const device { return a; }
              float get() const thread { return a; }
            } One;
            """,
            """
            device const Pair *p = (device const Pair *)x; Pair q = p[1]; One o = *(device const One *)x;
            y[i] = p->sum() * 100 + q.sum() * 10 + o.get() + ((device const One *)x)[i].get();
            """, [372, 373, 374, 375])
    }

    func testUnsignedNumbersOfElements() throws {
        try assertBoth(
            """
            template <uint N> float total(vec<float, N> v) {
              float s = 0;
              for (uint k = 0; k < N; k++) s += v[k];
              return s;
            }
            template <typename T, unsigned N> T first(const thread vec<T, N> &v) { return v[0] * N; }
            template <typename T, size_t N> T last(array<T, N> v) { return v[N - 1]; }
            template <typename T, ushort N> struct Holder { vec<T, N> v; };
            """,
            """
            array<float, 3> a = {{1, 2, 3}}; float3 v(100); Holder<float, 3> h{float3(1)};
            y[i] = total(float4(1, 2, 3, 4)) + total<2>(float2(x[i])) + first(v) + last(a) + h.v.z;
            """, [316, 318, 320, 322])
    }

    func testObjectsWithoutANameByReference() throws {
        try assertBoth(
            """
            template <typename T, uint N> T total(const thread vec<T, N> &v) {
              T s = 0;
              for (uint k = 0; k < N; k++) s += v[k];
              return s;
            }
            template <typename T> T sum(thread const T &a, const thread T &b) { return a + b; }
            template <typename T, int R, int C> T corner(const thread matrix<T, R, C> &m) { return m[0][0]; }
            template <int K, typename T> inline T scaled(const thread T &v, float s) { return v * (K * s); }
            template <typename T> void put(thread T &to, const thread T &v) { to = v; }
            struct Sums { template <typename T> T of(const thread vec<T, 2> &v) const { return v.x + v.y; } };
            template <typename T> float one(const thread T &v) { return v; }
            template <typename T> float one(const device T &v) { return v * 10; }
            """,
            """
            float4 v(x[i]); float2x2 m(2.0f); float p; put(p, x[i] * 1); const Sums s;
            y[i] = total(v + 1) + total(v) + total(float2(1, 2)) + total(v.xyz) + sum(v, v * 2).x + sum(1.0f, p)
                 + corner(m * m) + scaled<2>(x[i] + 0, 1.0f) + s.of(float2(p, 1)) + one(p + 0) + one(p) + one(x[i]);
            """, [43, 73, 103, 133])
    }

    func testShiftsByAnotherType() throws {
        try assertBoth(
            "",
            """
            int2 a = int2(1, -8) << uint2(i, 0); a >>= uint2(0, 1);
            uint4 b = uint4(1) << uint4(ushort4(i)); b <<= short4(1);
            uchar2 c = uchar2(200) >> int2(33, 1); ulong2 d = ulong2(1) << uint2(33);
            y[i] = a.x + a.y * 10 + b.w * 100 + c.x + c.y * 1000 + (d.x >> 33);
            """, [100262, 100463, 100865, 101669])
    }

    func testListsInBraces() throws {
        try assertBoth(
            """
            struct P { float2 a; uint n; };
            float4 make(float v) { return {v, 2, 3, 4}; }
            float sum(float4 v) { return v.x + v.y + v.z + v.w; }
            constant float4 table[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
            """,
            """
            float4 a = {float2(1, 2), float2(3, 4)}; float2x2 m = {{1, 2}, {3, 4}}; P p = {{1, 2}, 3};
            a = {4, 3, 2, x[i]};
            packed_float3 f = {1, 2, 3}; bool2 o = {true, false}; float4 l[2] = {{1, 2, 3, 4}, {9}};
            y[i] = sum(a) + m[1][0] + p.a.y + f.z + o.x + l[1].x + l[0].w + sum({1, 2, 3, 4}) + make(5).x + table[1].w;
            """, [55, 56, 57, 58])
    }

    // MARK: the asynchronous copy

    private let copies = """
        struct _simdgroup_event_t;
        thread _simdgroup_event_t *copy2(ulong, ulong, threadgroup void *to, ulong, ulong, ulong2, const device void *,
                                         ulong, ulong, ulong2, long2, int)
            __asm("air.simdgroup_async_copy_2d.p3i8.p1i8");
        thread _simdgroup_event_t *copy2(ulong, ulong, device void *to, ulong, ulong, ulong2, const threadgroup void *,
                                         ulong, ulong, ulong2, long2, int)
            __asm("air.simdgroup_async_copy_2d.p1i8.p3i8");
        thread _simdgroup_event_t *copy1(ulong, ulong, threadgroup void *, const device void *, ulong)
            __asm("air.simdgroup_async_copy_1d.p3i8.p1i8");
        void wait(int count, thread _simdgroup_event_t **) __asm("air.wait_simdgroup_events");
        kernel void f(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                      uint i [[thread_index_in_threadgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
          threadgroup float tile[64], row[8];
          if (group == 0) {
            thread _simdgroup_event_t *events[2] = {
              copy2(4, 4, tile, 8, 1, ulong2(8, 8), x, 16, 1, ulong2(5, 4), long2(0), 0), copy1(4, 4, row, x, 8)};
            WAIT
          }
          threadgroup_barrier(mem_flags::mem_threadgroup);
          if (i < 8) tile[63 - i] = row[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          if (group == 1) {
            thread _simdgroup_event_t *event =
              copy2(4, 4, y, 10, 1, ulong2(8, 7), tile, 8, 1, ulong2(8, 8), long2(0, 1), 0);
            wait(1, &event);
          }
        }
        """

    /// Row r of the tile is row r of x if that exists; the tile is stored to y from its second row on.
    private func copied() -> [Float] {
        var tile = [Float](repeating: 0, count: 64)
        for row in 0..<4 {
            for column in 0..<5 { tile[row * 8 + column] = Float(row * 16 + column) }
        }
        for at in 0..<8 { tile[63 - at] = Float(at) }
        var result = [Float](repeating: -1, count: 70)
        for row in 0..<7 {
            for column in 0..<8 { result[row * 10 + column] = tile[(row + 1) * 8 + column] }
        }
        return result
    }

    func testTheAsynchronousCopy() throws {
        let source = copies.replacingOccurrences(of: "WAIT", with: "wait(2, events);")
        for checked in ["0", "1"] {
            try withSetting("check", checked) {
                let y = TestBuffer([Float](repeating: -1, count: 70)), x = TestBuffer((0..<128).map(Float.init))
                try KernelLibrary(source).function("f").run([y, x], grid: 64, group: 64)
                XCTAssertEqual(y.array(), copied())
            }
        }
        XCTAssertEqual(takeFindings().map(\.description), [])
    }

    func testOtherNamesOfTheCompilerAreRefused() throws {
        let source = """
            int secret(int) __asm("air.get_secret");
            kernel void f(device int *y [[buffer(0)]]) { y[0] = secret(1); }
            """
        XCTAssertThrowsError(try KernelLibrary(source)) {
            XCTAssertTrue("\($0)".contains("function \"air.get_secret\" is not available"), "\($0)")
        }
        XCTAssertThrowsError(try KernelLibrary("kernel void f(device int *y [[buffer(0)]]) { __asm(\"nop\"); }"))
    }
}
