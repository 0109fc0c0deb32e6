import XCTest

/// Functions as values: lambdas, from Metal 3.2 on, and pointers to functions as PyTorch's kernels pass them; and the
/// C++ version of each language version.
final class CompilerFunctionTests: XCTestCase {
    private let metal31: UInt32 = 0x30001, metal32: UInt32 = 0x30002, metal40: UInt32 = 0x40000

    private func compile(_ body: String, declarations: String = "", version: UInt32) -> String? {
        do {
            _ = try KernelLibrary(
                "\(declarations)kernel void f(device float *y, uint i [[thread_position_in_grid]]) {\n  \(body)\n}",
                version: version)
            return nil
        } catch { return "\(error)" }
    }

    // MARK: lambdas

    /// Each lambda, with the column of its bracket.
    private let lambdas = [
        (17, "auto square = [](float x) { return x * x; }; y[i] = square(3);"),
        (23, "float a = 2; y[i] = [a](float x) { return x + a; }(1);"),
        (27, "float a = 2; auto add = [&](float x) -> float { return x + a; }; y[i] = add(1);"),
        (14, "auto one = [] { return 1.0f; }; y[i] = one();"),
        (21, "y[i] = (i == 0) ? [=]() mutable { return 1.0f; }() : 0.0f;"),
    ]

    func testLambdasNeedMetal32() {
        for (column, lambda) in lambdas {
            XCTAssertNil(compile(lambda, version: metal32), lambda)
            let refused = compile(lambda, version: metal31) ?? "compiled"
            XCTAssertTrue(
                refused.contains("program_source:2:\(column): error: lambda expressions need Metal 3.2 or newer"),
                "\(lambda): \(refused)")
        }
    }

    func testBracketsThatAreNoLambdasAreTakenBefore32() {
        for body in [
            "float t[2] = {1, 2}; y[i] = t[(i + 1) % 2] + (&t[0])[1];",
            "float t[2][2] = {}; y[t[0][0] > 0 ? 1 : 0] = 1; (void)t[0][1];",
            "[[maybe_unused]] float a = 1; if (i == 0) [[likely]] { y[i] = 1; }",
            "device float *p = y; y[i] = p[i] * 2, p[0];",
        ] {
            XCTAssertNil(compile(body, version: metal31), body)
        }
    }

    func testWhatLambdasGive() throws {
        XCTAssertEqual(
            try floats(
                8,
                """
                float a = 2, b = 10, c = 100;
                auto add = [=](float x) { return x + a; };
                auto count = [&b](float x) { b += x; return b; };
                auto apply = [](auto f, float x) { return f(f(x)); };
                out[0] = add(1); out[1] = count(5); out[2] = b; out[3] = apply(add, 1); out[4] = apply(count, 1);
                auto both = [=, &b](float x) { b = x; return a + c; };
                auto kept = [a, twice = 2 * c] { return a + twice; };
                auto mixed = [&, a](float x) { c = x; return a; };
                a = 50; out[5] = both(7) + b; out[6] = kept(); out[7] = mixed(3) + c;
                """), [3, 15, 15, 5, 32, 109, 202, 5])
    }

    /// A variable captured by value is constant, which the strict pass does not check.
    func testACapturedValueIsConstant() {
        let text =
            compile("float a = 2; auto f = [a](float x) { a = x; return a; }; y[i] = f(1);", version: metal32)
            ?? "compiled"
        XCTAssertTrue(
            text.contains("program_source:2:")
                && text.contains("cannot assign to a variable captured by copy in a non-mutable lambda"), text)
    }

    // MARK: pointers to functions

    /// A reduction as a template argument that is passed to a helper: a compare-exchange loop on the two halves of a
    /// word.
    func testAReductionAsAFunctionPointer() throws {
        let library = try KernelLibrary(
            """
            struct Reduce {
              template <typename T> static T product(T a, T b) { return a * b; }
              template <typename T> static T most(T a, T b) { return max(a, b); }
            };
            template <typename T> struct Cell {
              static void update(device atomic_uint *data, uint offset, T value, T (*reduce)(T, T)) {
                device atomic_uint *word = data + offset / 2;
                uint old = atomic_load_explicit(word, memory_order_relaxed);
                union { uint word; T parts[2]; } next;
                do {
                  next.word = old;
                  next.parts[offset & 1] = reduce(next.parts[offset & 1], value);
                } while (!atomic_compare_exchange_weak_explicit(word, &old, next.word, memory_order_relaxed, \
            memory_order_relaxed));
              }
            };
            template <typename T, T (*reduce)(T, T)>
            kernel void scatter(device atomic_uint *data, device const uint *targets, device const T *values, \
            uint i [[thread_position_in_grid]]) {
              Cell<T>::update(data, targets[i], values[i], reduce);
            }
            #define REGISTER(op) template [[host_name("scatter_" #op)]] kernel void scatter<half, Reduce::op<half>>( \\
              device atomic_uint *, device const uint *, device const half *, uint);
            REGISTER(product)
            REGISTER(most)
            """)
        let targets = TestBuffer([UInt32](arrayLiteral: 0, 1, 1, 3, 1, 0)),
            values = TestBuffer([2, 3, 0.5, 5, 4, 8] as [Float16])
        for (name, expected) in [("scatter_product", [16, 6, 1, 5]), ("scatter_most", [8, 4, 1, 5])]
            as [(String, [Float16])]
        {
            let data = TestBuffer([1, 1, 1, 1] as [Float16])
            try library.function(name).run([data, targets, values], grid: 6, group: 6)
            XCTAssertEqual(data.array(Float16.self), expected, name)
        }
    }

    func testFunctionPointersInVariablesAndTypes() throws {
        XCTAssertEqual(
            try floats(
                4,
                """
                Unary pick = negate;
                float (*other)(float) = &twice;
                out[0] = pick(3); out[1] = other(3); out[2] = call(twice, 4);
                pick = other;
                out[3] = pick(5);
                """,
                declarations: """
                    typedef float (*Unary)(float);
                    static float negate(float x) { return -x; }
                    static float twice(float x) { return 2 * x; }
                    template <typename F> float call(F f, float x) { return f(x); }
                    """), [-3, 6, 8, 10])
    }

    // MARK: C++14 and C++17

    func testTemplatesOfAutoNeedMetal4() {
        let declarations = "template <auto n> float value() { return n; }\n"
        XCTAssertNil(compile("y[i] = value<3>();", declarations: declarations, version: metal40))
        let refused = compile("y[i] = value<3>();", declarations: declarations, version: metal32) ?? "compiled"
        XCTAssertTrue(
            refused.contains("program_source:1:11: error: 'auto' not allowed in template parameter before Metal 4"),
            refused)
        XCTAssertNil(
            compile("if constexpr (sizeof(half) == 2) { y[i] = 1; }", version: metal31),
            "an extension that Metal's compiler takes")
    }
}
