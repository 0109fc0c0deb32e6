import Foundation
import MetalRuntime
import XCTest

/// Function constants: one compilation for any number of specialized functions.
final class CompilerConstantTests: XCTestCase {
    private static let bool: UInt32 = 53, int: UInt32 = 29, float: UInt32 = 3, float2: UInt32 = 4  // MTLDataType

    private func value<T>(_ index: UInt32, _ type: UInt32, _ value: T) -> mrt_constant_value {
        var constant = mrt_constant_value()
        constant.index = index
        constant.type = type
        withUnsafeMutableBytes(of: &constant.value) { bytes in withUnsafeBytes(of: value) { bytes.copyMemory(from: $0) }
        }
        return constant
    }

    private func info(_ function: KernelFunction) -> [(name: String, index: UInt32, type: UInt32, required: Bool)] {
        UnsafeBufferPointer(start: function.info.constants, count: function.info.constant_count).map {
            (String(cString: $0.name), $0.index, $0.type, $0.required)
        }
    }

    /// Returns what a library reports about a function's constants before anything is compiled.
    private func declared(_ library: KernelLibrary, _ function: String) -> [String] {
        var count = 0
        let first = mrt_library_function_constants(library.handle, function, &count)
        return UnsafeBufferPointer(start: first, count: count).map {
            "\(String(cString: $0.name)) \($0.index) \($0.type) \($0.required)"
        }
    }

    private let source = """
        #define BASE 10
        constant bool has_bias [[function_constant(0)]];
        constant int count [[function_constant(BASE + 1)]];
        constant float2 both [[function_constant(2)]];
        constant bool hasty [[function_constant(3)]];
        constant bool quick = is_function_constant_defined(hasty) ? hasty : true;
        constant int doubled = count * 2;
        namespace inner { constant float offset [[function_constant(4)]]; constant float shifted = offset + 1; }
        static float term(float x) { return has_bias ? x + 100 : x; }
        template <typename T> T clipped(T a, T b) { return a < b ? a : b; }
        kernel void sum(device const float *bias [[buffer(0), function_constant(has_bias)]], \
        device float *y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
          y[i] = term(both.x) + both.y + clipped(count, 7) + doubled + (quick ? 1000 : 0);
          if (has_bias) y[i] += bias[i];
        }
        kernel void shadow(device float *y [[buffer(1)]], \
        constant int &count [[buffer(0)]]) { int has_bias = 3; y[0] = count + has_bias; }
        kernel void nested(device float *y) { y[0] = inner::shifted; }
        """

    func testValuesReachTheKernelWithoutAnotherCompile() throws {
        let library = try KernelLibrary(source)
        let bias = TestBuffer([Float(5)]), y = TestBuffer(length: 4)
        let base = [value(11, Self.int, Int32(3)), value(2, Self.float2, SIMD2<Float>(0.5, 0.25))]
        let compiled = mrt_compile_stats_get().compiled
        let without = try library.function("sum", constants: base + [value(0, Self.bool, false)])
        let with = try library.function(
            "sum", constants: base + [value(0, Self.bool, true), value(3, Self.bool, false)])
        for _ in 0..<3 {  // alternating, on the same threads
            try without.run([bias, y], grid: 1, group: 1)
            XCTAssertEqual(y.array(Float.self), [0.75 + 3 + 6 + 1000])
            try with.run([bias, y], grid: 1, group: 1)
            XCTAssertEqual(y.array(Float.self), [0.75 + 100 + 3 + 6 + 5])
        }
        XCTAssertEqual(mrt_compile_stats_get().compiled, compiled)
    }

    func testALocalNameHidesAConstant() throws {
        let y = TestBuffer(length: 4)
        try KernelLibrary(source).function("shadow").run([TestBuffer([Int32(4)]), y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self), [7])
    }

    func testAConstantInANamespace() throws {
        let y = TestBuffer(length: 4)
        try KernelLibrary(source).function("nested", constants: [value(4, Self.float, Float(1.5))]).run(
            [y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self), [2.5])
    }

    func testReflection() throws {
        let library = try KernelLibrary(source)
        XCTAssertEqual(
            declared(library, "sum"), ["has_bias 0 53 true", "count 11 29 true", "both 2 4 true", "hasty 3 53 false"])
        let function = try library.function(
            "sum",
            constants: [
                value(0, Self.bool, false), value(11, Self.int, Int32(1)), value(2, Self.float2, SIMD2<Float>(0, 0)),
            ])
        XCTAssertEqual((0..<2).map { function.info.arguments[$0].is_active }, [false, true])
        XCTAssertEqual(
            info(try library.function("nested", constants: [value(4, Self.float, Float(0))])).map(\.name), ["offset"])
    }

    /// Twenty kernels form five parts, each of which is compiled when one of its kernels is first used.
    private func large(_ label: String) -> String {
        let kernels = (0..<20).map { "kernel void k\($0)(device float *y) { y[0] = (on ? width : 1) + \($0); }" }
        return
            "// \(label)\nconstant bool on [[function_constant(7)]];\nconstant uint width [[function_constant(1 << "
            + "3)]];\n"
            + kernels.joined(separator: "\n")
    }

    func testTheConstantsOfALargeLibraryAreKnownWithoutACompile() throws {
        let folder = NSTemporaryDirectory() + "/orchard-constants-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let y = TestBuffer(length: 4), values = [value(7, Self.bool, true), value(8, 33, UInt32(40))]
        try withSetting("cache", folder) {
            for expected in [1, 0] as [UInt64] {  // from the source, then from the record in the cache
                let library = try KernelLibrary(large(#function))
                let compiled = mrt_compile_stats_get().compiled
                for name in library.functionNames {
                    XCTAssertEqual(declared(library, name), ["on 7 53 true", "width 8 33 true"])
                }
                XCTAssertEqual(mrt_compile_stats_get().compiled, compiled, "the query compiled something")
                try library.function("k13", constants: values).run([y], grid: 1, group: 1)
                XCTAssertEqual(y.array(Float.self), [53])
                XCTAssertEqual(
                    mrt_compile_stats_get().compiled - compiled, expected, "the part that is used, and no other")
            }
        }
    }

    private func compilerWork() -> UInt64 {
        let statistics = mrt_compile_stats_get()
        return statistics.compiled + statistics.from_disk + statistics.from_memory
    }

    /// Each way to write an index and a type, compared with the compiler's results.
    func testDeclaredConstantsAreWhatTheCompilerSays() throws {
        let indices = [
            "7", "0x1F", "0b101u", "010", "600 + 1", "(1 << 5) | 3", "7 - 2 * 3", "100 / 7 % 5", "~0 & 9", "-(-12)",
            "1 + 2 << 3", "48 ^ 5 & 4", "first", "second + 1",
        ]
        let types = [
            "bool", "uint", "unsigned int", "metal::float4", "half", "bfloat", "char", "uchar3", "short2", "uint16_t",
            "int64_t", "ulong", "number", "couple",
        ]
        let names = indices.indices.map { "c\($0)" }
        let declarations = zip(names, zip(types, indices)).map {
            "constant \($1.0) \($0) [[function_constant(\($1.1))]];"
        }
        let uses = names.map { "touch(\($0))" }, numbers = uses.dropLast(2)
        let library = try KernelLibrary(
            """
            enum { first = 70 }; constexpr constant int second = 80; typedef float number; using couple = metal::int2;
            \(declarations.joined(separator: "\n"))
            template <typename T> void touch(T) {}
            kernel void all(device float *y) { \(uses.joined(separator: "; ")); y[0] = 1; }
            kernel void plain(device float *y) { \(numbers.joined(separator: "; ")); y[0] = 1; }
            """)
        let before = compilerWork()
        XCTAssertEqual(
            declared(library, "plain"), numbers.indices.map { "c\($0) \(Self.indices[$0]) \(Self.types[$0]) true" })
        XCTAssertEqual(compilerWork(), before, "a number and a type of Metal's were left to the compiler")
        let compiled = info(
            try library.function(
                "all", constants: names.indices.map { value(Self.indices[$0], Self.types[$0], UInt64(0)) }))
        XCTAssertEqual(declared(library, "all"), compiled.map { "\($0.name) \($0.index) \($0.type) \($0.required)" })
        XCTAssertEqual(compiled.map(\.index), Self.indices)
        XCTAssertEqual(compiled.map(\.type), Self.types)
    }

    // The values of those indices by the C++ standard, and the MTLDataType of those types.
    private static let indices: [UInt32] = [7, 31, 5, 8, 601, 35, 1, 4, 9, 12, 24, 52, 70, 81]
    private static let types: [UInt32] = [53, 33, 33, 6, 16, 121, 45, 51, 38, 41, 81, 85, 3, 30]

    func testAMissingOrWrongValueIsRefused() throws {
        let library = try KernelLibrary(source)
        XCTAssertThrowsError(try library.function("nested")) {
            XCTAssertTrue("\($0)".contains("function constant 'offset' (index 4) is used without a value"), "\($0)")
        }
        XCTAssertThrowsError(try library.function("nested", constants: [value(4, Self.int, Int32(1))])) {
            XCTAssertTrue(
                "\($0)".contains(
                    "function constant 'offset' (index 4) has MTLDataType 3 but its value was given as 29"), "\($0)")
        }
        XCTAssertThrowsError(try library.function("missing")) {
            XCTAssertEqual("\($0)", "Function missing was not found in the library")
        }
    }

    /// A kernel requires the constants of functions that it calls, but not those of another class's function with the
    /// same name.
    func testConstantsBelongToQualifiedNames() throws {
        let library = try KernelLibrary(
            """
            constant int a [[function_constant(0)]];
            constant int b [[function_constant(1)]];
            struct A { static int run() { return a; } int get() const { return a; } };
            struct B { static int run() { return b; } int get() const { return b; } };
            namespace n { constant int v [[function_constant(2)]]; int f() { return v; } }
            namespace m { constant int v [[function_constant(3)]]; int f() { return v; } }
            template <typename Op> kernel void of(device int *y) { y[0] = Op::run() + Op().get(); }
            template [[host_name("of_a")]] kernel void of<A>(device int *y);
            kernel void static_a(device int *y) { y[0] = A::run(); }
            kernel void member_b(device int *y) { B x; y[0] = x.get(); }
            kernel void in_n(device int *y) { y[0] = n::f(); }
            kernel void in_m(device int *y) { y[0] = m::f() + m::v; }
            kernel void of_neither(device int *y) { y[0] = 1; }
            """)
        let expected: [(String, [UInt32])] = [
            ("of_a", [0]), ("static_a", [0]), ("member_b", [1]), ("in_n", [2]), ("in_m", [3]), ("of_neither", []),
        ]
        for (name, indices) in expected {
            var count = 0
            let constants = mrt_library_function_constants(library.handle, name, &count)
            XCTAssertEqual((0..<count).map { constants![$0].index }, indices, name)
        }
        let derived = try KernelLibrary(
            """
            constant int b [[function_constant(1)]];
            struct B { static int run() { return b; } };
            struct D : B {};
            kernel void inherited(device int *y) { y[0] = D::run(); }
            """)
        var count = 0
        let inherited = mrt_library_function_constants(derived.handle, "inherited", &count)
        XCTAssertEqual((0..<count).map { inherited![$0].index }, [1])
    }

    /// A function also counts if the kernel calls it without naming it, such as an operator, or if one of the kernel's
    /// variables has the function's name in another scope.
    func testEveryWayToReachAConstant() throws {
        let library = try KernelLibrary(
            """
            constant uint width [[function_constant(0)]];
            inline uint parts() { return width; }
            namespace n { inline uint parts() { return width; } }
            template <typename T> T scaled(T x) { return x * width; }
            inline uint overloaded(uint x) { return x * width; }
            inline uint overloaded(bool x) { return overloaded(uint(x)); }
            struct Sizes { uint parts() const { return width; } };
            inline Sizes sizes() { return {}; }
            struct Functor { uint operator()() const { return width; } };
            struct Sum { uint v; Sum operator+(Sum o) const { return {v + o.v + width}; } };
            struct Number { operator uint() const { return width; } };
            struct Member { uint v = width; };
            struct Holder { Member member; };
            struct Derived : Member { };
            using Alias = Member;
            typedef Member Typedef;
            kernel void method(device uint *y) { Sizes s; uint parts = s.parts(); y[0] = parts; }
            kernel void method_of_const(device uint *y) { const Sizes s; uint parts = s.parts(); y[0] = parts; }
            kernel void method_of_result(device uint *y) { uint parts = sizes().parts(); y[0] = parts; }
            kernel void method_beside_parameter(device uint *y, constant uint &parts) { \
              Sizes s; y[0] = s.parts() + parts; }
            kernel void qualified(device uint *y) { uint parts = n::parts(); y[0] = parts; }
            kernel void global(device uint *y) { uint parts = ::parts(); y[0] = parts; }
            kernel void templated(device uint *y) { uint scaled = ::scaled<uint>(3); y[0] = scaled; }
            kernel void overload(device uint *y) { y[0] = overloaded(true); }
            kernel void before(device uint *y) { uint x = parts(); { uint parts = x; y[0] = parts; } }
            kernel void after(device uint *y) { { uint parts = 3; y[0] = parts; } y[0] = parts(); }
            kernel void after_loop(device uint *y) { \
              for (uint parts = 0; parts < 3; parts++) y[0] = parts; y[0] = parts(); }
            kernel void after_if(device uint *y) { if (uint parts = 3) { y[0] = parts; } y[0] = parts(); }
            kernel void in_do(device uint *y) { do parts(); while (y[0] > 1); }
            kernel void functor(device uint *y) { Functor f; y[0] = f(); }
            kernel void sum(device uint *y) { Sum a{1}, b{2}; y[0] = (a + b).v; }
            kernel void conversion(device uint *y) { Number x; y[0] = x; }
            kernel void member(device uint *y) { Member x; y[0] = x.v; }
            kernel void held(device uint *y) { Holder x; y[0] = x.member.v; }
            kernel void derived(device uint *y) { Derived x; y[0] = x.v; }
            kernel void aliased(device uint *y) { Alias x; y[0] = x.v; }
            kernel void typedefed(device uint *y) { Typedef x; y[0] = x.v; }
            """)
        for name in library.functionNames { XCTAssertEqual(declared(library, name), ["width 0 33 true"], name) }
        XCTAssertEqual(library.functionNames.count, 21)
    }

    /// If a name refers to the kernel's own variable, no value is required.
    func testAVariableHidesAConstantInItsScope() throws {
        let library = try KernelLibrary(
            """
            constant uint width [[function_constant(0)]];
            struct Sizes { uint parts() const { return width; } };
            struct Other { uint width; };
            kernel void variable(device uint *y) { uint width = 3; y[0] = width; }
            kernel void pointer(device uint *y) { device uint *width = y; width[0] = 1; }
            kernel void reference(device uint *y) { device uint &width = y[0]; width = 1; }
            kernel void elements(device uint *y) { uint width[2] = {1, 2}; y[0] = width[0] + width[1]; }
            kernel void parameter(device uint *width) { width[0] = 1; }
            kernel void loop(device uint *y) { for (uint width = 0; width < 3; width++) y[0] = width; }
            kernel void nested(device uint *y) { uint width = 3; { uint width = 4; y[0] = width; } y[1] = width; }
            kernel void field(device uint *y) { Other x; x.width = 4; y[0] = x.width; }
            template <uint width> inline uint twice() { return width * 2; }
            kernel void argument(device uint *y) { y[0] = twice<3>(); }
            """)
        for name in library.functionNames { XCTAssertEqual(declared(library, name), [], name) }
        XCTAssertEqual(library.functionNames.count, 9)
    }
}
