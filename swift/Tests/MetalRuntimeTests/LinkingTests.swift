import MetalRuntime
import XCTest

/// A function may be declared in one file of a library and defined in another, as Xcode links the files of a target.
final class LinkingTests: XCTestCase {
    private static let caller = """
        #include <metal_stdlib>
        using namespace metal;
        float scaled(float x);
        kernel void k(device float* y, uint i [[thread_position_in_grid]]) { y[i] = scaled(float(i)); }
        """

    private func joined(_ files: [String], mark: String = "link") -> String {
        zip(["a", "b", "c"], files).map { "#line 1 \"\($0)\"\n\($1)\n" }.joined(separator: "#pragma orchard \(mark)\n")
    }

    private func results(_ files: [String], count: Int = 4) throws -> [Float] {
        let y = TestBuffer([Float](repeating: -1, count: count))
        try KernelLibrary(joined(files)).function("k").run([y], grid: count, group: count)
        return y.array()
    }

    private func message(_ files: [String], mark: String = "link") -> String {
        do {
            _ = try KernelLibrary(joined(files, mark: mark)).function("k")
            return ""
        } catch { return "\(error)" }
    }

    private static let header = "#include <metal_stdlib>\nusing namespace metal;\n"

    func testADefinitionBringsWhatItNeeds() throws {
        let definition = """
            struct Line { float slope, offset; };
            constant float slopes[] = {2, 3};
            enum Choice { first, second };
            typedef Line Map;
            template <typename T> T at(Map map, T x) { return map.slope * x + map.offset; }
            static float offset() { return 0.5; }
            namespace inner { inline float twice(float x) { return 2 * x; } }
            float scaled(const float value) {
              Map map = {slopes[second], inner::twice(offset())};
              return at(map, value);
            }
            float unused(float x) { return missing(x); }
            """
        XCTAssertEqual(try results([Self.caller, Self.header + definition]), [1, 4, 7, 10])
    }

    /// Names that are not visible in other files may be used again there, with another meaning.
    func testFilesMayUseANameTwice() throws {
        let caller = """
            constant float factor = 10;
            static float helper(float x) { return x + 1; }
            struct Pair { float a; };
            float scaled(float x);
            float other(float x);
            kernel void k(device float* y, uint i [[thread_position_in_grid]]) {
              Pair pair = {helper(float(i)) * factor};
              y[i] = scaled(pair.a) + other(1);
            }
            """
        let first = """
            constant float factor = 3;
            static float helper(float x) { return x * factor; }
            struct Pair { float a, b; };
            float scaled(float x) { Pair pair = {1, helper(x)}; return pair.b; }
            """
        let second =
            "namespace { float helper(float x) { return 100 * x; } }\nfloat other(float x) { return helper(x); }"
        XCTAssertEqual(
            try results([caller, first, second].map { Self.header + $0 }), (0..<4).map { Float(30 * ($0 + 1) + 100) })
    }

    func testADefinitionMayCallAThirdFileAndTheFirst() throws {
        let caller = """
            namespace math { float scaled(thread float& x); }
            float base() { return 7; }
            kernel void k(device float* y, uint i [[thread_position_in_grid]]) { float x = i; y[i] = math::scaled(x); }
            """
        let second =
            "float base();\nfloat tail(float);\nnamespace math { float scaled(thread float& x) { return tail(x); } }"
        let third = "float base();\nfloat tail(float x) { return x + base(); }"
        XCTAssertEqual(try results([caller, second, third].map { Self.header + $0 }), [7, 8, 9, 10])
    }

    /// Both files include the same text, as of a header.
    func testASharedHeaderIsKeptOnce() throws {
        let shared = """
            struct Item { float value; };
            inline float twice(Item item) { return 2 * item.value; }
            float scaled(float x);
            extern constant float shift;
            """
        let second = "constant float shift = 5;\nfloat scaled(float x) { Item item = {x}; return twice(item) + shift; }"
        let caller = "kernel void k(device float* y, uint i [[thread_position_in_grid]]) { y[i] = scaled(i) + shift; }"
        XCTAssertEqual(try results([caller, second].map { Self.header + shared + "\n" + $0 }), [10, 12, 14, 16])
    }

    func testInvisibleDefinitionsAreMissing() {
        for words in ["static", "inline", "constexpr", "template <typename T>"] {
            let text = message([Self.caller, Self.header + "\(words) float scaled(float x) { return x; }"])
            XCTAssertTrue(text.contains("undefined symbols: scaled(float): "), "\(words): \(text)")
        }
        let other = message([Self.caller, Self.header + "float scaled(int x) { return x; }"])
        XCTAssertTrue(other.contains("undefined symbols: scaled(float): "), other)
    }

    func testTwoDefinitionsAreAnError() {
        let definition = Self.header + "float scaled(float x) { return x; }"
        let called = message([Self.caller, definition, definition])
        XCTAssertTrue(called.contains("c:3:7: error: 'scaled(float)' is also defined at b:3, in another file"), called)
        let kernels = [
            "kernel void k(device float* y) { y[0] = 1; }", "float f() { return 1; }", "float f() { return 2; }",
        ]
        XCTAssertEqual(message(kernels.map { Self.header + $0 }), "", "only the definitions that are needed")
        let all = message(kernels.map { Self.header + $0 }, mark: "library")
        XCTAssertTrue(all.contains("c:3:7: error: 'f()' is also defined at b:3"), all)
        for words in ["static", "inline", "template <typename T>"] {
            let local = kernels.map { Self.header + $0.replacingOccurrences(of: "float f", with: "\(words) float f") }
            XCTAssertEqual(message(local, mark: "library"), "")
        }
    }

    func testAnErrorInADefinitionHasItsLine() {
        let text = message([Self.caller, Self.header + "\nfloat scaled(float x) {\n  return missing;\n}"])
        XCTAssertTrue(text.contains("b:5:10: error: use of undeclared identifier 'missing'\n  return missing;"), text)
    }
}
