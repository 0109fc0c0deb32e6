import MetalRuntime
import XCTest

/// Programs that Metal's compiler rejects are rejected here, with its message, line and column.
final class CompilerRefusalTests: XCTestCase {
    private func messages(_ source: String, file: StaticString = #filePath, line: UInt = #line) -> String {
        do {
            _ = try KernelLibrary(source)
            XCTFail("compiled, but must be refused", file: file, line: line)
            return ""
        } catch { return "\(error)" }
    }

    private func assertRefused(
        _ source: String, _ expected: String..., file: StaticString = #filePath, line: UInt = #line
    ) {
        let text = messages(source, file: file, line: line)
        for part in expected { XCTAssertTrue(text.contains(part), "\(text)\nlacks: \(part)", file: file, line: line) }
    }

    /// The statement is on line 2, from column 3 on.
    private func assertStatementRefused(
        _ statement: String, at column: Int, _ message: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        assertRefused(
            "kernel void f(device float *y, constant float *c, threadgroup float *t, uint i "
                + "[[thread_position_in_grid]]) {\n  \(statement)\n}",
            "program_source:2:\(column): error: \(message)", file: file, line: line)
    }

    func testADiagnosticHasItsLineAndACaret() {
        XCTAssertEqual(
            messages("kernel void f(device float *y [[buffer(0)]]) {\n  y[0] = missing + 1.0f;\n}"),
            "program_source:2:10: error: use of undeclared identifier 'missing'\n  y[0] = missing + 1.0f;\n         ^\n"
        )
    }

    func testEveryDiagnosticIsReportedInTheOrderOfTheLinesAndOnce() {
        let text = messages(
            "kernel void f(device float *y) {\n  y[0] = one;\n  y[1] = two;\n}\nkernel void g(device float *y) { "
                + "y[0] = three; }"
        )
        let heads = text.split(separator: "\n").filter { $0.contains("error:") }
        XCTAssertEqual(
            heads,
            [
                "program_source:2:10: error: use of undeclared identifier 'one'",
                "program_source:3:10: error: use of undeclared identifier 'two'",
                "program_source:5:41: error: use of undeclared identifier 'three'",
            ])
    }

    func testTexturesThatTheDeviceHasNot() {
        for type in ["metal::texture2d_ms<half>", "texture2d_ms_array<float>", "depth2d_ms<float>"] {
            let name = type.replacingOccurrences(of: "metal::", with: "").prefix { $0 != "<" }
            assertRefused(
                "kernel void f(device float *y, \(type) t [[texture(0)]]) { y[0] = 1; }",
                "error: '\(name)' is not available: only a render pass writes textures of several samples a pixel")
        }
    }

    func testALineDirectiveNamesFileAndLine() {
        assertRefused(
            "#line 40 \"softmax.metal\"\nkernel void f(device float *y) {\n  y[0] = missing;\n}",
            "softmax.metal:41:10: error: use of undeclared identifier 'missing'\n  y[0] = missing;\n         ^")
    }

    func testAnErrorInAMacroPointsToItsUse() {
        assertRefused(
            "#define SET(x) y[0] = x\nkernel void f(device float *y) {\n  SET(missing);\n}", "program_source:3:",
            "undeclared identifier 'missing'\n  SET(missing);")
    }

    func testCommentsAndWideSpacesDoNotMoveTheColumn() {
        assertRefused(
            "kernel void f(device float *y) {\n  y[0]   = /* here */   missing;\n}",
            "program_source:2:25: error: use of undeclared identifier 'missing'")
    }

    func testNoPathOfThisMachineLeaks() {
        for source in [
            "#include \"nothing.h\"\n#include <metal_stdlib>\nkernel void f() {}",
            "kernel void f(device float *y) { y[0] = metal::max(1, 2, 3, 4); }",
        ] {
            let text = messages(source)
            XCTAssertFalse(text.contains("/"), text)
            XCTAssertFalse(text.contains("mrt_"), text)
        }
    }

    func testAnUnknownIncludeIsAnError() {
        assertRefused(
            "#include <metal_stdlib>\n#include \"utils.h\"\nkernel void f() {}",
            "program_source:2:10: error: 'utils.h' file not found")
    }

    func testKeywordsThatMetalLeavesOut() {
        assertStatementRefused("double d = 1;", at: 3, "'double' is not supported in Metal")
        assertStatementRefused("long long n = 1;", at: 3, "'long long' is not supported in Metal")
        assertStatementRefused("goto end; end:;", at: 3, "'goto' is not supported in Metal")
        assertStatementRefused("thread int *p = new int;", at: 19, "'new' is not supported in Metal")
        assertStatementRefused("thread int *p = nullptr; delete p;", at: 28, "'delete' is not supported in Metal")
        assertStatementRefused("try { t[0] = 1; } catch (...) {}", at: 3, "cannot use 'try' with exceptions disabled")
        assertStatementRefused(
            "thread int *p = dynamic_cast<thread int *>(nullptr);", at: 19, "use of dynamic_cast requires -frtti")
        assertStatementRefused("typeid(t[0]);", at: 3, "use of typeid requires -frtti")
        assertStatementRefused("throw 1;", at: 3, "cannot use 'throw' with exceptions disabled")
        assertStatementRefused(
            "thread_local int n;", at: 3, "thread-local storage is not supported for the current target")
        assertStatementRefused("__asm(\"nop\");", at: 3, "'asm' is not supported in Metal")
        assertRefused(
            "struct A { virtual void f(); };\nkernel void f() {}",
            "program_source:1:12: error: virtual functions are not supported in Metal")
    }

    func testAPointerNamesItsAddressSpace() {
        let message = "pointer type must have explicit address space qualifier"
        assertStatementRefused("float *p = y;", at: 9, message)
        assertStatementRefused("y[i] = *(float *)y;", at: 18, message)
        assertRefused(
            "float first(const float *x) { return x[0]; }\nkernel void f() {}",
            "program_source:1:25: error: \(message)\nfloat first(const float *x) { return x[0]; }\n                  "
                + "      ^"
        )
        assertRefused("struct A { float *p; };\nkernel void f() {}", "program_source:1:18: error: \(message)")
        assertStatementRefused("y[i] = *static_cast<float *>(y);", at: 29, message)
        assertStatementRefused("auto first = [](float *x) { return x[0]; };", at: 25, message)
        assertStatementRefused("for (float *p = y; p; p = 0) y[i] = 1;", at: 14, message)
        assertStatementRefused("typedef float *P;", at: 17, message)
        assertStatementRefused(
            "float a = 1; float &r = a;", at: 22, "reference type must have explicit address space qualifier")
        assertRefused("using P = float *;\nkernel void f() {}", "program_source:1:17: error: \(message)")
        assertRefused(
            "void g(float &x) { x = 1; }\nkernel void f() {}",
            "program_source:1:14: error: reference type must have explicit address space qualifier")
    }

    func testAddressSpacesAreTypes() {
        assertStatementRefused(
            "device float *p = t;", at: 17,
            "cannot initialize a variable of type 'device float *thread' with an lvalue of type 'threadgroup float "
                + "*thread'"
        )
        assertStatementRefused("c[0] = 1;", at: 8, "read-only variable is not assignable")
        assertRefused(
            "void set(threadgroup float *p) { p[0] = 1; }\nkernel void f(device float *y) { set(y); }",
            "program_source:2:34: error: no matching function for call to 'set'",
            "program_source:1:6: note: candidate function not viable")
    }

    func testAProgramScopeVariableIsConstant() {
        assertStatementRefused(
            "static int calls = 0;", at: 3, "static local variable must reside in constant address space")
        XCTAssertNoThrow(
            try KernelLibrary(
                """
                kernel void f(device int *y) {
                  static constant int table[2] = {1, 2};
                  struct Local { static int twice(int x) { return 2 * x; } };
                  y[0] = Local::twice(table[1]);
                }
                """))
        assertRefused(
            "float scale = 2;\nkernel void f() {}",
            "program_source:1:7: error: program scope variable must reside in constant address space")
    }

    func testRulesOfKernels() {
        assertRefused(
            "kernel float f(device float *y) { return y[0]; }", "error: kernel function must have void return type")
        assertRefused(
            "kernel void f(device float *a [[buffer(31)]]) {}",
            "program_source:1:29: error: 'buffer' attribute parameter is out of bounds: must be between 0 and 30")
        assertRefused(
            "kernel void f(threadgroup float *a [[threadgroup(31)]]) {}",
            "program_source:1:34: error: 'threadgroup' attribute parameter is out of bounds: must be between 0 and 30")
        assertRefused(
            "kernel void f(device float *a [[buffer(1)]], device float *b [[buffer(1)]]) {}",
            "program_source:1:60: error: cannot reserve 'buffer' resource location at index 1")
        assertRefused(
            "kernel void f(float x) {}", "error: invalid type 'float' for input declaration in a kernel function")
        assertRefused("kernel void f(float4 p [[stage_in]]) {}", "attribute 'stage_in' is not supported")
        assertRefused(
            "[[host_name(\"f\")]] kernel void g(device float *y) {}\nkernel void f(device float *y) {}",
            "program_source:2:13: error: multiple kernel functions are named 'f'")
    }

    func testTheBodyOfATemplateIsCheckedForItsInstances() {
        assertRefused(
            """
            struct Pair { float a, b; };
            template <typename T> kernel void f(device T *y) {
              y[0] = y[0] * 2;
            }
            template [[host_name("f_pair")]] kernel void f<Pair>(device Pair *);
            """,
            "program_source:3:15: error: invalid operands to binary expression")
    }

    func testFunctionConstantsAreNumberedBelow65536() throws {
        let use = "kernel void f(device float *y) { y[0] = n; }"
        XCTAssertNoThrow(try KernelLibrary("constant int n [[function_constant(65535)]];\n" + use))
        assertRefused(
            "constant int n [[function_constant(65535 + 1)]];\n" + use, "program_source:1:",
            "'function_constant' index must be between 0 and 65535")
    }

    /// MSL excludes derived classes. Metal's compiler accepts those without members, such as traits.
    func testADerivedClassWithMembersIsAWarning() throws {
        let derived = try KernelLibrary(
            "struct A { int a; };\nstruct B : A { int b; };\nkernel void f(device int *y) { B b; b.a = 1; y[0] = b.a; }"
        )
        XCTAssertTrue(
            derived.warnings.contains(
                "program_source:2:8: warning: derived classes are not part of the Metal language"), derived.warnings)
        let traits = try KernelLibrary(
            """
            template <typename T> struct is_small : bool_constant<sizeof(T) < 4> {};
            template <> struct is_small<float> : true_type { static constexpr constant int bytes = 4; typedef float \
            type; };
            enum class Mode : uchar { one };
            kernel void f(device int *y) { y[0] = is_small<half>::value + int(Mode::one); }
            """)
        XCTAssertEqual(traits.warnings, "")
    }

    func testAnUnknownAttributeIsAWarning() throws {
        let library = try KernelLibrary("kernel void f(device float *y [[bufer(0)]]) { y[0] = 1; }")
        XCTAssertTrue(
            library.warnings.contains("program_source:1:33: warning: unknown attribute 'bufer' ignored"),
            library.warnings)
    }
}
