import XCTest

import MetalRuntime

/// Constructs in other projects' programs that Apple's compiler accepts: they compile in both passes, and give C++'s
/// results.
final class ForeignProgramTests: CheckerTestCase {
    /// Returns what one threadgroup of four threads writes to `y`, in the plain and the checked build. `x[i]` is i + 1.
    private func results(_ declarations: String, _ statement: String, line: UInt = #line) throws -> [Float] {
        let source = """
            \(declarations)
            kernel void k(device float *y [[buffer(0)]], device const float *x [[buffer(1)]],
                          constant float &c [[buffer(2)]], uint i [[thread_position_in_grid]]) { \(statement) }
            """
        var all: [[Float]] = []
        for check in ["0", "1"] {
            try withSetting("check", check) {
                let y = TestBuffer([Float](repeating: -1, count: 4)), x = TestBuffer([1, 2, 3, 4] as [Float])
                try KernelLibrary(source).function("k").run([y, x, TestBuffer([Float(10)])], grid: 4, group: 4)
                all.append(y.array())
            }
        }
        XCTAssertEqual(all[0], all[1], line: line)
        XCTAssertEqual(takeFindings().map(\.description), [], line: line)
        return all[0]
    }

    func testXcodesEnumerations() throws {
        let declarations = """
            #define NS_ENUM(_type, _name) enum _name : _type _name; enum _name : _type
            typedef metal::int32_t EnumBackingType;
            typedef NS_ENUM(EnumBackingType, BufferIndex) { BufferIndexA = 2, BufferIndexB = 5 };
            typedef NS_ENUM(uchar, Small) { SmallOne = 1, SmallLast = 255 };
            """
        let y = try results(
            declarations, "BufferIndex b = BufferIndexB; Small s = SmallLast; y[i] = b + s + sizeof(Small) * 1000;")
        XCTAssertEqual(y, [1260, 1260, 1260, 1260])
    }

    /// The type of a variable as a template argument: it has no address space, but keeps references and constness.
    func testTypesOfVariables() throws {
        let declarations = """
            template <int N> struct Number { static constant constexpr int value = N; };
            template <typename A, int M> struct Tile { A a; int get() const { return A::value * M; } };
            template <typename T> struct Holder { T value; T twice() const { return value + value; } };
            template <typename T> T both(T a) { const T b = a; Holder<decltype(a)> h{b}; return h.twice(); }
            template <typename T> struct is_pointer_to_device { enum { value = 0 }; };
            template <typename T> struct is_pointer_to_device<device const T *> { enum { value = 1 }; };
            """
        let y = try results(
            declarations,
            """
            constexpr auto n = Number<3>{};
            constexpr Number<4> m{};
            auto other = Number<5>{};
            device const float *p = x + i;
            float v = *p;
            Tile<decltype(n), 2> t;
            Tile<decltype(other), decltype(m)::value> u;
            decltype(v) w = v + 1;
            y[i] = t.get() + u.get() + both(w) + 100 * is_pointer_to_device<decltype(p)>::value;
            """)
        XCTAssertEqual(y, [130, 132, 134, 136])
    }

    /// A temporary bound to `const thread T &`: for functions, methods and callable objects, with explicit and deduced
    /// types.
    func testTemporariesByReference() throws {
        let declarations = """
            float both(const thread float &a, const thread float &b) { return a * 10 + b; }
            float first(const thread float2 &a, const thread half &b);
            float first(const thread float2 &a, const thread half &b) { return a.x + float(b); }
            template <typename T> T deduced(const thread T &a, const thread T &b) { return a * T(10) + b; }
            struct Plain { float f(const thread float &a, const thread float &b) const { return a * 10 + b; } };
            template <typename T> struct Op {
              T operator()(const thread T &a, const thread T &b) const { return a * T(10) + b; }
            };
            template <typename T, typename F> T apply(F f, const thread T &a) { return f(a, T(7)) - f(T(0), T(0)); }
            """
        var random = SplitMix64(3310)
        let calls = ["both", "deduced", "Plain().f", "Op<float>()", "deduced<float>"]
        let values: [(String, (Float) -> Float)] = [
            ("x[i] + 1", { $0 + 1 }), ("float(x[i])", { $0 }), ("v", { $0 }), ("3.0f", { _ in 3 }),
            ("x[i] * x[i]", { $0 * $0 }), ("-v", { -$0 }), ("(float)2", { _ in 2 }), ("float{v}", { $0 }),
            ("static_cast<float>(x[i] - c)", { $0 - 10 }), ("fabs(v)", { $0 }),
        ]
        for _ in 0..<12 {
            let call = calls.randomElement(using: &random)!
            let a = values.randomElement(using: &random)!, b = values.randomElement(using: &random)!
            let y = try results(declarations, "float v = x[i]; y[i] = \(call)(\(a.0), \(b.0));")
            XCTAssertEqual(y, [1, 2, 3, 4].map { a.1($0) * 10 + b.1($0) }, "\(call)(\(a.0), \(b.0))")
        }
        XCTAssertEqual(
            try results(declarations, "y[i] = apply(Op<float>(), x[i] + 1) + first(float2(x[i]), half(1));"),
            [29, 40, 51, 62])
    }

    /// Overloads that differ in a reference's type, as SPIRV-Cross writes them, with temporaries of either type.
    func testTemporariesOfOverloads() throws {
        let declarations = """
            struct A { float a; };
            struct B { float b; };
            static inline __attribute__((always_inline)) float f(thread const A &x) { return x.a; }
            static inline __attribute__((always_inline)) float f(thread const B &x) { return x.b * 10; }
            float g(const thread float &x) { return x; }
            float g(const thread int &x) { return x * 100; }
            float g(const thread float &x, const thread float &y) { return x - y; }
            A make_a(float x) { A a = {x}; return a; }
            B make_b(float x) { B b = {x}; return b; }
            """
        let y = try results(
            declarations,
            "A a = make_a(x[i]); B b = make_b(2); "
                + "y[i] = f(a) + f(b) + f(make_a(3)) + f(make_b(4)) + g(x[i] * 0.5f) + g(2) + g(half(7), 1);")
        XCTAssertEqual(y, [270.5, 272, 273.5, 275])
        XCTAssertThrowsError(
            try results(
                declarations + "\nfloat h(thread const A &x) { return x.a; }", "y[i] = h(make_b(1));"))
    }

    /// A named object in another address space is not a temporary.
    func testOtherSpacesAreNoTemporaries() throws {
        let functions = [
            "float f(const thread float &a, const thread float &b) { return a + b; }",
            "template <typename T> T f(const thread T &a, const thread T &b) { return a + b; }",
        ]
        for function in functions {
            for call in ["f(float(2), x[i])", "f(x[i], 2.0f)", "f(c, 2.0f)", "f(2.0f, c)", "f(x[i], x[i])"] {
                XCTAssertThrowsError(try results(function, "y[i] = \(call);"), "\(function) \(call)")
            }
        }
    }

    /// Methods of temporaries whose class is a template of a pointer. Objects in other address spaces remain illegal.
    func testTemporariesOfTemplatesOfPointers() throws {
        let declarations = """
            template <typename P> struct View {
              P base; int step;
              View from(int first) const thread { return {base + first, step}; }
              float at(int k) const { return base[k * step]; }
            };
            template <typename P> View<P> view(P base, int step) { return {base, step}; }
            """
        for pointer in ["x", "&own[0]", "&shared[0]", "&c - 1"] {
            let statement = """
                thread float own[4] = {x[0], x[1], x[2], x[3]}; threadgroup float shared[4]; shared[i] = x[i];
                threadgroup_barrier(mem_flags::mem_threadgroup);
                (void)own; y[i] = view(\(pointer), 1).from(1).at(0) + View<device const float *>{x, 2}.at(1);
                """
            let first: Float = pointer.contains("c") ? 10 : 2
            XCTAssertEqual(try results(declarations, statement), [Float](repeating: first + 3, count: 4), pointer)
        }
        for space in ["device", "threadgroup"] {
            let illegal = "\(declarations) void f(\(space) View<device float *> *v) { v->base[0] = v->at(1); }"
            XCTAssertThrowsError(try KernelLibrary("\(illegal) kernel void k() {}"), space)
        }
    }

    func testForwardedReferences() throws {
        let declarations = """
            template <typename A> float one(thread A &&a) { return float(a); }
            template <typename... A> float all(thread A &&...a) { return (one(a) + ... + 0.0f); }
            """
        XCTAssertEqual(
            try results(declarations, "int n = 100; y[i] = all(c, x[i], i, n, 1.0f);"), [112, 114, 116, 118])
    }

    func testConditionalsOfVectors() throws {
        let y = try results(
            "",
            "float4 v = x[i] - 2; half2 h = half2(x[i]); v = c > 0 ? fmax(v, 0) : v; h = c < 0 ? h : min(h, 2); "
                + "v = c > 0 ? clamp(v, 0, 1) : -v; y[i] = v.x * 10 + float(h.y);")
        XCTAssertEqual(y, [1, 2, 12, 12])
    }

    func testBitFields() throws {
        let declarations = """
            struct Flags { uint a : 3; uint b : 5; uint : 0; int c : 12; };
            union Word { struct { uint low : 4, high : 28; } parts; uint whole; };
            """
        let y = try results(
            declarations,
            """
            Flags f; f.a = i; f.b = 31; f.c = -1 - int(i); f.b += f.a;
            Word w; w.whole = 0x54u + i;
            threadgroup Flags shared; if (i == 0) { shared.a = 5; shared.b = 1; }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            y[i] = f.a + 10 * f.b + 1000 * w.parts.low + 10000 * w.parts.high + f.c + shared.a * 100000;
            """)
        for (i, value) in y.enumerated() {
            let fields = i + 10 * ((31 + i) % 32) - 1 - i, words = 1000 * (4 + i) + 50000
            XCTAssertEqual(Int(value), fields + words + 500_000)
        }
    }

    func testStructuresOfTheAPI() throws {
        let y = try results(
            "",
            """
            MTLDispatchThreadgroupsIndirectArguments a; a.threadgroupsPerGrid[2] = i;
            MTLDrawIndexedPrimitivesIndirectArguments d; d.baseVertex = -2; d.baseInstance = 7;
            MTLQuadTessellationFactorsHalf t; t.insideTessellationFactor[1] = 2.5h;
            y[i] = a.threadgroupsPerGrid[2] + d.baseVertex + d.baseInstance + float(t.insideTessellationFactor[1])
                 + 100 * sizeof(MTLDispatchThreadsIndirectArguments) + 1000 * sizeof(MTLQuadTessellationFactorsHalf);
            """)
        XCTAssertEqual(y, [14407.5, 14408.5, 14409.5, 14410.5])
    }

    /// A function's local name hides an input in program scope.
    func testInputsOfTheProgram() throws {
        let source = """
            uint2 position [[thread_position_in_grid]];
            uint lane [[thread_index_in_threadgroup]];
            namespace inner { ushort3 group [[threadgroup_position_in_grid]]; }
            struct Point { uint lane; };
            uint hidden(uint lane) { Point p{lane}; return p.lane + 1; }
            uint seen() { return lane * 100; }
            kernel void k(device uint *y [[buffer(0)]]) {
              const uint at = position.x + 4 * position.y;
              y[at] = position.x + 10 * position.y + seen() + 1000 * hidden(position.x);
              { uint2 position = uint2(0, 7); y[at] += 10000 * position.y; }
            }
            """
        let y = TestBuffer(length: 32)
        try KernelLibrary(source).function("k").run([y], grid: (4, 2, 1), group: (2, 2, 1))
        for (index, value) in y.array(UInt32.self).enumerated() {
            let column = index % 4, row = index / 4
            let lane = column % 2 + 2 * row
            XCTAssertEqual(Int(value), column + 10 * row + 100 * lane + 1000 * (column + 1) + 70000)
        }
        XCTAssertThrowsError(try KernelLibrary("uint2 position;\nkernel void k(device uint *y) { y[0] = position.x; }"))
    }

    /// A method that names no address space has its object in `thread` before Metal 4.1, and in any address space from
    /// then on.
    func testTheSpaceOfAnObjectByVersion() throws {
        let calls = [
            ("float get() const { return v; }", ".get()"), ("float twice(float x) { return v * x; }", ".twice(2.0f)"),
            ("template <typename T> T as(T x) const { return T(v) + x; }", ".as(1)"),
            ("float operator()(float x) const { return v + x; }", "(3.0f)"),
            ("float operator[](int x) const { return v + x; }", "[2]"),
        ]
        var random = SplitMix64(3312)
        for version in [0x30001, 0x30002, 0x40000, 0x40001] as [UInt32] {
            for space in ["device", "threadgroup", "thread"] {
                let (method, call) = calls.randomElement(using: &random)!
                let source = """
                    struct Box { float v; \(method) static float make() { return 1; } };
                    kernel void k(device Box *boxes [[buffer(0)]], device float *y [[buffer(1)]]) {
                      threadgroup Box shared;
                      shared.v = Box::make();
                      Box own = {2};
                      \(space) Box &box = \(["device": "*boxes", "threadgroup": "shared"][space] ?? "own");
                      y[0] = box\(call) + Box{3}\(call);
                    }
                    """
                let isLegal = space == "thread" || version >= 0x40001
                let program = "\(String(version, radix: 16)) \(space) \(method)"
                if isLegal {
                    XCTAssertNoThrow(try KernelLibrary(source, version: version), program)
                } else {
                    XCTAssertThrowsError(try KernelLibrary(source, version: version), program)
                }
            }
        }
    }

    func testThreadBeforeValues() throws {
        let declarations = """
            class Sequence {
              thread float seed;
              unsigned step(const unsigned a, const unsigned b) { return a * b; }
            public:
              thread Sequence(const unsigned a, const unsigned b = 1);
              thread float next();
            };
            thread Sequence::Sequence(const unsigned a, const unsigned b) { this->seed = step(a, b); }
            thread float Sequence::next() { this->seed += 0.5f; return this->seed; }
            thread float2 joined(thread float a, thread const float b) { return float2(a, b); }
            thread float *first(thread float *a) { return a; }
            """
        let y = try results(
            declarations, "Sequence s(2, 3); s.next(); float v = s.next(); y[i] = joined(*first(&v), 1).x + x[i];")
        XCTAssertEqual(y, [8, 9, 10, 11])
    }

    func testQuotientsOfMatrices() throws {
        let y = try results(
            "",
            "float2x2 m = float2x2(x[i], 2, 3, x[i]) / 2.0f; m /= 2; half3x3 h = half3x3(4.0h) / 8; "
                + "y[i] = m[0][0] + m[1][1] + 100 * m[0][1] + h[2][2];")
        XCTAssertEqual(y, [51, 51.5, 52, 52.5])
    }

    func testAScalarBesideTwoComponents() throws {
        let y = try results(
            "", "float4 v = float4(float2(x[i], 2), 3); int4 w(int2(4), 5); y[i] = v.x + v.z * v.w + w.w;")
        XCTAssertEqual(y, [15, 16, 17, 18])
    }

    /// Functions that only render functions call may use features of rendering, and those of kernels may not.
    func testFunctionsOfRenderFunctions() throws {
        let declarations = """
            struct Out { float4 color [[color(0)]]; float depth [[depth(any)]]; };
            static float edge(float v) { return fwidth(v) + dfdx(v); }
            static float2 rate(constant rasterization_rate_map_data &data, float2 p) {
              rasterization_rate_map_decoder decoder(data);
              return decoder.map_screen_to_physical_coordinates(p);
            }
            template <typename T> T soft(T v) { return edge(v) * 2; }
            static float both(float v) { return v + 1; }
            fragment Out shade(float4 p [[position]]) { Out o; o.color = soft(p.x) + both(p.y); o.depth = 0; return o; }
            """
        XCTAssertEqual(try results(declarations, "y[i] = both(x[i]);"), [2, 3, 4, 5])
        XCTAssertThrowsError(try results(declarations, "y[i] = soft(x[i]);")) {
            XCTAssertTrue("\($0)".contains("use of undeclared identifier 'fwidth'"), "\($0)")
        }
    }

    func testRayTracingIsRefusedByASentence() {
        for line in ["using namespace raytracing;", "using namespace metal::raytracing;", "raytracing::ray r;"] {
            XCTAssertThrowsError(try results(line, "y[i] = 0;")) {
                XCTAssertTrue(
                    "\($0)".contains("error: 'raytracing' is not available: this device traces no rays"), "\($0)")
            }
        }
    }

    /// Members and elements that are copied from an object in the constant address space.
    func testAggregatesOfConstantObjects() throws {
        let declarations = """
            struct P { float a, b; };
            struct Q { P p; float sum() const { return p.a * 10 + p.b; } };
            struct R { Q q; float c; };
            constant P p = {1, 2};
            constant P ps[2] = {{3, 4}, {5, 6}};
            """
        let statement = """
            Q first = {p}, second{ps[i / 2]}; P all[2] = {p, ps[1]}; R r = {{ps[0]}, 7};
            y[i] = first.sum() + second.sum() * 100 + (all[0].b + all[1].a) * 10000 + (r.q.sum() + r.c) * 100000;
            """
        // 12, 100 times the second sum, 7 · 10⁴ and 41 · 10⁵.
        let total: (Float) -> Float = { 4_170_012 + 100 * $0 }
        XCTAssertEqual(try results(declarations, statement), [34, 34, 56, 56].map(total))
    }

    func testNamesOfSimdHeaders() throws {
        let declarations = """
            #include <simd/simd.h>
            __attribute__((swift_name("Number"))) typedef float number_t;
            [[maybe_unused]] typedef simd::float3 triple_t;
            __attribute__((swift_name("Pair"))) typedef struct { number_t a, b; } pair_t;
            """
        let statement = """
            simd_bool2 both = simd_bool2(x[i] > 2, true); pair_t pair = {simd::mix(x[i], c, 0.5f), simd::abs(-x[i])};
            triple_t v = triple_t(x[i], 0, 0); y[i] = simd::length(v) + simd::max(pair.a, pair.b);
            if (all(both)) y[i] += 100;
            """
        XCTAssertEqual(try results(declarations, statement), [6.5, 8, 109.5, 111])
    }
}
