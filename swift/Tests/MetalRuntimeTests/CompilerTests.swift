import MetalRuntime
import XCTest

/// Programs that must compile, and give the stated results.
final class CompilerTests: XCTestCase {
    private func run(
        _ source: String, _ name: String, _ inputs: [[Float]], count: Int, constants: [mrt_constant_value] = []
    ) throws -> [Float] {
        let buffers = inputs.map { TestBuffer($0) }, output = TestBuffer(length: count * 4)
        try KernelLibrary(source).function(name, constants: constants).run(
            buffers + [output], grid: count, group: min(count, 32))
        return output.array()
    }

    func testHostNames() throws {
        let library = try KernelLibrary(
            """
            template <typename T, int N> [[kernel]] void scale(device const T *x, device T *y, \
            uint i [[thread_position_in_grid]]) { y[i] = x[i] * T(N); }
            template [[host_name("scale_float_2")]] [[kernel]] void scale<float, 2>(device const float *x, \
            device float *y, uint i);
            template [[host_name("scale_int_3")]] [[kernel]] decltype(scale<int, 3>) scale<int, 3>;
            #define INSTANTIATE(name, type, \
            n) template [[host_name("scale_" #name "_" #n)]] kernel decltype(scale<type, n>) scale<type, n>;
            INSTANTIATE(half, half, 4)
            [[host_name("renamed")]] kernel void plain(device float *y) { y[0] = 1; }
            namespace inner { kernel void nested(device float *y) { y[0] = 2; } }
            """)
        XCTAssertEqual(library.functionNames, ["scale_float_2", "scale_int_3", "scale_half_4", "renamed", "nested"])
        let x = TestBuffer([Float](arrayLiteral: 1, 2, 3)), y = TestBuffer(length: 12)
        try library.function("scale_float_2").run([x, y], grid: 3, group: 3)
        XCTAssertEqual(y.array(Float.self), [2, 4, 6])
        try library.function("nested").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self)[0], 2)
    }

    func testAnInstantiationThatNamesItsKernelFromTheGlobalNamespace() throws {
        let library = try KernelLibrary(
            """
            namespace outer { namespace inner {
            struct Halve { template <typename T> T operator()(T x) { return x / T(2); } };
            template <typename T, typename F> kernel void apply(device T *y, \
            uint i [[thread_position_in_grid]]) { F f; y[i] = f(y[i]); }
            } }
            template [[host_name("halve_float")]] kernel void ::outer::inner::apply<float, \
            outer::inner::Halve>(device float *y, uint i);
            template [[host_name("halve_int")]] kernel void outer::inner::apply<int, \
            ::outer::inner::Halve>(device int *y, uint i);
            """)
        let y = TestBuffer([Float(5), 7]), whole = TestBuffer([Int32(5), 7])
        try library.function("halve_float").run([y], grid: 2, group: 2)
        try library.function("halve_int").run([whole], grid: 2, group: 2)
        XCTAssertEqual(y.array(Float.self), [2.5, 3.5])
        XCTAssertEqual(whole.array(Int32.self), [2, 3])
    }

    /// The array determines the element type, but not the address space.
    func testATemplateDeducesFromAnArrayParameter() throws {
        XCTAssertEqual(
            try run(
                """
                template <typename T> void powers(T out[3], T base) { out[0] = T(1); out[1] = base; out[2] = base * \
                base; }
                template <typename T> T total(const T values[3], thread const T &bias) { return values[0] + values[1] \
                + values[2] + bias; }
                kernel void f(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
                  float terms[3], bias = 0.5;
                  powers(terms, x[i]);
                  y[i] = total(terms, bias);
                }
                """, "f", [[2, 3]], count: 2), [7.5, 13.5])
    }

    func testATemplatesAutoVariableInAConditional() throws {
        for type in ["half", "bfloat", "Box<float>"] {
            let source = """
                template <typename T> struct Box { T value; Box() = default; Box(T x) : value(x) {} operator T() const \
                { return value; } };
                template <typename T> void blend(device T &target, float x, bool first) {
                  auto start = target;
                  start = first ? start : T(x * 2);
                  target = first ? T(x) : start;
                }
                kernel void f(device const float *x, device float *y, device \(type) *scratch, \
                uint i [[thread_position_in_grid]]) {
                  scratch[i] = \(type)(0.5f);
                  blend(scratch[i], x[i], i == 0);
                  \(type) blended = scratch[i];
                  y[i] = float(blended);
                }
                """
            let x = TestBuffer([Float(3), 4]), y = TestBuffer(length: 8), scratch = TestBuffer(length: 8)
            try KernelLibrary(source).function("f").run([x, y, scratch], grid: 2, group: 2)
            XCTAssertEqual(y.array(Float.self), [3, 8], type)
        }
    }

    func testDifferentTypesInAConditionalAreStillRefused() {
        XCTAssertThrowsError(
            try KernelLibrary(
                """
                struct A { float a; }; struct B { float b; };
                template <typename T> void f(device T &y, bool c) { auto a = y; y = c ? a : B(); }
                kernel void g(device A *y) { f(y[0], true); }
                """)
        ) { XCTAssertTrue("\($0)".contains("incompatible operand types"), "\($0)") }
    }

    func testAutomaticAndComputedIndices() throws {
        let function = try KernelLibrary(
            """
            #define BASE 3
            constant constexpr int later = 7;
            struct Sizes { int rows, columns; };
            kernel void f(device float *a, constant Sizes &sizes [[buffer(BASE + 1)]], device const half4 *b, \
            device int *c [[buffer(later)]],
                          threadgroup float *scratch [[threadgroup(2)]], threadgroup int *more, device float *d \
            [[buffer(0)]],
                          uint2 p [[thread_position_in_grid]]) {}
            """
        ).function("f")
        defer { withExtendedLifetime(function) {} }  // it owns the names
        let arguments = Array(UnsafeBufferPointer(start: function.info.arguments, count: function.info.argument_count))
        XCTAssertEqual(arguments.map { String(cString: $0.name) }, ["a", "sizes", "b", "c", "scratch", "more", "d"])
        XCTAssertEqual(arguments.map(\.index), [1, 4, 2, 7, 2, 0, 0])
        XCTAssertEqual(
            arguments.map { String(cString: $0.type_name) },
            ["float", "Sizes", "half4", "int", "float", "int", "float"])
        XCTAssertEqual(arguments.map(\.data_type), [3, 1, 19, 29, 3, 29, 3])
        XCTAssertEqual(arguments.map(\.element_size), [4, 8, 8, 4, 4, 4, 4])
        XCTAssertEqual(arguments.map(\.is_const), [false, true, true, false, false, false, false])
        XCTAssertEqual(arguments.map(\.is_reference), [false, true, false, false, false, false, false])
        XCTAssertEqual(arguments.map(\.space), [0, 1, 0, 0, 2, 2, 0])
    }

    func testAComputedIndexOutOfBoundsIsFoundWhenTheFunctionIsMade() throws {
        let library = try KernelLibrary(
            "constant constexpr int n = 30;\nkernel void f(device float *y [[buffer(n + 1)]]) {}")
        XCTAssertThrowsError(try library.function("f")) {
            XCTAssertTrue("\($0)".contains("must be between 0 and 30"), "\($0)")
        }
    }

    func testThreadgroupVariables() throws {
        let library = try KernelLibrary(
            """
            struct Pair { float a; int b; };
            template <typename T, int N> kernel void reverse(device const T *x, device T *y, \
            uint i [[thread_index_in_threadgroup]]) {
              constexpr int padded = N + 1;
              threadgroup T tile[2][padded], last;
              threadgroup Pair pair;
              tile[0][i] = x[i];
              if (i == 0) { last = T(100); pair.a = 0.5f; pair.b = 7; }
              threadgroup_barrier(mem_flags::mem_threadgroup);
              y[i] = tile[0][N - 1 - i] + last + T(pair.b);
            }
            template [[host_name("reverse8")]] kernel void reverse<float, 8>(device const float *, \
            device float *, uint);
            template [[host_name("reverse16")]] kernel void reverse<float, 16>(device const float *, \
            device float *, uint);
            kernel void none(device float *y) { threadgroup float *p = nullptr; if (p) y[0] = 1; }
            """)
        XCTAssertEqual(try library.function("reverse8").info.static_threadgroup_bytes, 2 * 9 * 4 + 4 + 8)
        XCTAssertEqual(try library.function("reverse16").info.static_threadgroup_bytes, 2 * 17 * 4 + 4 + 8)
        XCTAssertEqual(try library.function("none").info.static_threadgroup_bytes, 0)
        let x = TestBuffer((0..<8).map(Float.init)), y = TestBuffer(length: 32)
        try library.function("reverse8").run([x, y], grid: 8, group: 8)
        XCTAssertEqual(y.array(Float.self), (0..<8).map { Float(7 - $0) + 107 })
    }

    func testOverloadsByAddressSpace() throws {
        let result = try run(
            """
            template <typename T> T first(device const T *p) { return p[0]; }
            template <typename U> U first(threadgroup const U *q) { return q[0]; }
            template <typename T> T first(constant T *p) { return p[0]; }
            struct Value {
              float x;
              Value() thread : x(1) {}
              Value() threadgroup {}
              Value(float a) thread : x(a) {}
              float get() const thread { return x; }
              float get() const device { return x; }
              float get() const threadgroup { return x; }
              float get() const constant { return x; }
              operator float() const thread { return x; }
            };
            constant float table[2] = {10, 20};
            kernel void f(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
              threadgroup float shared[1];
              threadgroup Value held;
              if (i == 0) { shared[0] = 5; held.x = 3; }
              threadgroup_barrier(mem_flags::mem_threadgroup);
              Value own(2), made;
              y[i] = first(x) + first(shared) + first(table) + held.get() + own.get() + made + x[i];
            }
            """, "f", [[1, 2]], count: 2)
        XCTAssertEqual(result, [23, 24])
    }

    func testProgramScopeConstants() throws {
        let result = try run(
            """
            constant float scale = 2;
            constant constexpr int order[3] = {2, 0, 1};
            static constant float offsets[] = {0.5, 1.5, 2.5};
            struct Limits { static constant constexpr float top = 100; };
            template <typename T> struct Traits { static constexpr constant T one = T(1); };
            template <typename T> constexpr constant bool is_real = false;
            template <> constexpr constant bool is_real<float> = true;
            kernel void f(device float *y, uint i [[thread_position_in_grid]]) {
              y[i] = scale * offsets[order[i]] + Limits::top + Traits<float>::one + (is_real<float> ? 1000 : 0);
            }
            """, "f", [], count: 3)
        XCTAssertEqual(result, [1106, 1102, 1104])
    }

    func testLiteralsAreFloats() throws {
        // In double precision, the sum would keep the small term.
        let result = try run(
            "kernel void f(device float *y) { y[0] = 16777216.0 + 1.0 - 16777216.0; y[1] = 1.0h / 3.0h; y[2] = "
                + "2.5bf; }",
            "f", [], count: 3)
        XCTAssertEqual(result, [0, Float(Float16(1) / 3), 2.5])
    }

    func testEveryBuiltin() throws {
        let names = [
            "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid",
            "threads_per_grid", "threads_per_threadgroup",
            "threadgroups_per_grid", "dispatch_threads_per_threadgroup", "grid_size", "grid_origin",
        ]
        let scalars = [
            "thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
            "simdgroups_per_threadgroup",
            "dispatch_simdgroups_per_threadgroup", "threads_per_simdgroup", "thread_execution_width",
            "thread_index_in_quadgroup",
            "quadgroup_index_in_threadgroup", "quadgroups_per_threadgroup", "dispatch_quadgroups_per_threadgroup",
        ]
        let vectors = names.enumerated().map { "\($1 == "grid_size" ? "ushort3" : "uint3") v\($0) [[\($1)]]" }
        let numbers = scalars.enumerated().map { "\($0 % 2 == 0 ? "uint" : "ushort") s\($0) [[\($1)]]" }
        let stores =
            names.indices.map { "for (int k = 0; k < 3; k++) y[at++] = v\($0)[k];" }
            + scalars.indices.map { "y[at++] = s\($0);" }
        let library = try KernelLibrary(
            """
            kernel void f(device uint *y, \((vectors + numbers).joined(separator: ", "))) {
              if (v0.x != 67 || v0.y != 1) return;
              int at = 0; \(stores.joined(separator: " "))
            }
            kernel void two(device uint *y, uint2 p [[thread_position_in_grid]], ushort2 own \
            [[thread_position_in_threadgroup]]) { if (p.x == 3 && p.y == 1) y[0] = p.x + 10 * p.y + 100 * own.x; }
            """)
        let y = TestBuffer(length: 4 * (27 + 11))
        try library.function("f").run([y], grid: (70, 2, 1), group: (40, 2, 1))
        XCTAssertEqual(
            y.array(UInt32.self),
            [
                67, 1, 0, 27, 1, 0, 1, 0, 0, 70, 2, 1, 30, 2, 1, 2, 1, 1, 40, 2, 1, 70, 2, 1, 0, 0, 0,
                57, 25, 1, 2, 3, 32, 32, 1, 14, 15, 20,
            ])
        try library.function("two").run([y], grid: (4, 2, 1), group: (4, 2, 1))
        XCTAssertEqual(y.array(UInt32.self)[0], 3 + 10 + 300)
    }

    func testTheLimitOfThreadsMayDependOnTemplateParameters() throws {
        let library = try KernelLibrary(
            """
            template <int M, int N> [[kernel, max_total_threads_per_threadgroup(M * N * 32)]] void f(device float *y) \
            { y[0] = M; }
            template [[host_name("f_2_4")]] [[kernel]] decltype(f<2, 4>) f<2, 4>;
            kernel void g(device float *y) { y[0] = 1; }
            """)
        XCTAssertEqual(try library.function("f_2_4").info.max_total_threads, 256)
        XCTAssertEqual(try library.function("g").info.max_total_threads, 1024)
        withSetting("max_threads", "512") { XCTAssertEqual(try? library.function("g").info.max_total_threads, 512) }
    }

    func testTheLanguageOfPrograms() throws {
        let result = try run(
            """
            union Bits { float f; uint u; };
            enum class Mode { add, multiply };
            template <Mode mode> float apply(float a, float b) { if constexpr (mode == Mode::add) { return a + b; } \
            else { return a * b; } }
            typedef float (*Binary)(float, float);
            static float subtract(float a, float b) { return a - b; }
            template <Binary function> float call(float a, float b) { return function(a, b); }
            namespace outer { namespace { struct Vec { float x; }; thread Vec &operator+=(thread Vec &a, Vec b) { a.x \
            += b.x; return a; } } }
            using outer::Vec;
            static_assert(sizeof(Bits) == 4, "a union");
            kernel void f(device float *y, uint i [[thread_position_in_grid]]) {
              Bits bits; bits.f = 1; bits.u += 1u << 23;
              float total = 0;
              #pragma unroll
              for (int k = 0; k < 4; k++) total += k;
              _Pragma("unroll(2)") for (int k = 0; k < 2; k++) total += 1;
              auto square = [](float v) { return v * v; };
              Vec v = {1}; v += Vec{2};
              y[i] = bits.f + apply<Mode::add>(1, 2) + apply<Mode::multiply>(3, 4) + call<subtract>(9, 4) + total + \
            square(3) + v.x;
            }
            """, "f", [], count: 1)
        XCTAssertEqual(result, [42])
    }

    func testMacrosOfTheOptions() throws {
        let library = try KernelLibrary("kernel void f(device float *y) { y[0] = SCALE; }", macros: ["SCALE": "3.5f"])
        let y = TestBuffer(length: 4)
        try library.function("f").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self), [3.5])
    }

    func testTheLanguageVersion() throws {
        func compile(_ version: UInt32, _ source: String) -> Bool {
            var options = mrt_compile_options(
                language_version: version, math_mode: 0, math_functions: 1, macros: nil, macro_count: 0, max_threads: 0)
            guard let library = mrt_library_create("#include <metal_stdlib>\n" + source, &options, nil) else {
                return false
            }
            mrt_library_release(library)
            return true
        }
        let bfloat = "kernel void f(device bfloat *y) { y[0] = bfloat(1.0f); }"
        XCTAssertFalse(compile(0x30000, bfloat))
        XCTAssertTrue(compile(0x30001, bfloat))
        XCTAssertTrue(compile(0x30000, "static_assert(__METAL_VERSION__ == 300, \"3.0\");\nkernel void f() {}"))
        XCTAssertTrue(compile(0, "static_assert(__METAL_VERSION__ >= 320, \"newest\");\nkernel void f() {}"))
    }
}
