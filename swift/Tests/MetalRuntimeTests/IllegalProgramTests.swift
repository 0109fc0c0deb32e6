import MetalRuntime
import XCTest

/// Programs that the Metal Shading Language rejects are rejected here, and similar legal programs are not: the device
/// is as strict as Metal's compiler wherever the specification, or a report about that compiler, says so.
final class IllegalProgramTests: XCTestCase {
    /// Line numbers count from the program's first line.
    private func errors(_ source: String) -> [Substring] {
        do {
            _ = try KernelLibrary("#include <metal_stdlib>\nusing namespace metal;\n#line 1\n" + source)
            return []
        } catch { return "\(error)".split(separator: "\n").filter { $0.contains("error:") } }
    }

    private func program(_ statement: String, number: Int) -> String {
        "kernel void probe\(number)(\(probeParameters)) { \(probeVariables) { \(statement) } }"
    }

    private static let statements =
        languageProbes + vectorProbes + operatorProbes + spaceProbes + functionProbes + textureProbes + furtherProbes

    /// There is one statement per line, so the lines of the errors are the numbers of the probes.
    func testLegalStatementsCompile() throws {
        let source = Self.statements.enumerated().map { program($1.legal, number: $0) }.joined(separator: "\n")
        for error in errors(source) {
            let probe = Self.statements[(Self.line(error) ?? 1) - 1]
            XCTFail("\(probe.section): \(probe.legal)\n\(error)")
        }
    }

    /// Errors of one phase of the compiler hide those of later phases, so statements without an error are compiled
    /// again without the others, and the remaining ones one by one.
    func testIllegalStatementsAreRefused() {
        var left = Array(Self.statements.enumerated())
        var reported = Set<Int>()
        repeat {
            let source = left.map { program($1.illegal, number: $0) }.joined(separator: "\n")
            reported = Set(errors(source).compactMap(Self.line))
            left = zip(1..., left).filter { !reported.contains($0.0) }.map(\.1)
        } while reported.count > 4
        for (number, probe) in left where errors(program(probe.illegal, number: number)).isEmpty {
            XCTFail("\(probe.section): accepted, but Metal refuses it: \(probe.illegal)")
        }
    }

    /// Returns the line of an error such as "program_source:3:14: error: …".
    private static func line(_ error: Substring) -> Int? {
        error.split(separator: ":").dropFirst().first.flatMap { Int($0) }
    }

    private func assertMessage(_ source: String, _ expected: String, file: StaticString = #filePath, line: UInt = #line)
    {
        XCTAssertEqual(errors(source).first.map(String.init), expected, file: file, line: line)
    }

    func testMessages() {
        assertMessage(
            "kernel void f(device float *y) { float4 v = y[0]; thread float *q = &v.y; y[1] = *q; }",
            "program_source:1:69: error: address of vector element requested")
        assertMessage(
            "kernel void f(device uint *y) { y[0] = metal::as_type<uint>(1.0f); }",
            "program_source:1:47: error: expected unqualified-id")
        assertMessage(
            "kernel void f(int3 p [[thread_position_in_grid]]) {}",
            "program_source:1:20: error: type 'int3' is not valid for attribute 'thread_position_in_grid': expected "
                + "uint or ushort, or a vector of 2 or 3 of them")
        assertMessage(
            "float g(float x) { return x > 0 ? g(x - 1) : 0; }\nkernel void f(device float *y) { y[0] = g(3); }",
            "program_source:1:35: error: function 'g' calls itself: recursion is not supported in Metal")
        assertMessage(
            "kernel void f(threadgroup float *t, device float *y) { t = y; }",
            "program_source:1:60: error: assigning 'device float *thread' to 'threadgroup float *' changes address "
                + "space of pointer")
    }

    func testRecursionOfTemplatesAndOverloads() {
        let kernel = "kernel void f(device float *y) { y[0] = g(y[1]); }"
        assertMessage(
            "template <typename T> T g(T x) { return x > 0 ? g(x - 1) : x; }\n\(kernel)",
            "program_source:1:49: error: function 'g<float>' calls itself: recursion is not supported in Metal")
        assertMessage(
            "float g(float x); int g(int x) { return int(g(float(x))); }\n"
                + "float g(float x) { return float(g(int(x))); }\n\(kernel)",
            "program_source:1:45: error: function 'g' calls 'g' in turn: recursion is not supported in Metal")
    }

    /// These functions have the same name as a function that they call, from Metal's library or by overloading.
    func testNoCallIsTakenForRecursion() {
        let helpers = [
            "float max(float a, float b, float c) { return max(a, max(b, c)); }",
            "half exp(half x, bool b) { return b ? half(exp(float(x))) : x; }",
            "float clamp(float x) { return clamp(x, 0.0f, 1.0f); }",
            "float own(float x, float y) { return x + y; } float own(float x) { return own(x, x); }",
        ]
        for helper in helpers {
            XCTAssertEqual(errors("\(helper)\nkernel void f(device float *y) { y[0] = 1; }"), [], helper)
        }
        for name in ["exp", "sqrt", "simd_sum"] {
            let kernel =
                "kernel void \(name)(device float *y, uint i [[thread_position_in_grid]]) { y[i] = \(name)(y[i]); }"
            XCTAssertEqual(errors(kernel), [], name)
        }
    }

    private func assertDeclarations(_ probes: [Probe], file: StaticString = #filePath, line: UInt = #line) {
        for probe in probes {
            let legal = errors(probe.legal)
            XCTAssert(legal.isEmpty, "\(probe.section): \(probe.legal)\n\(legal)", file: file, line: line)
            XCTAssert(
                !errors(probe.illegal).isEmpty, "\(probe.section): accepted, but Metal refuses it: \(probe.illegal)",
                file: file, line: line)
        }
    }

    func testFunctions() {
        let f = "kernel void f(device float *y) { y[0] = 1; }"
        assertDeclarations([
            Probe(
                "1.5.1", "float g(float x) { return x; }\n\(f)",
                "float g(float x) { return x > 0 ? g(x - 1) : 0; }\n\(f)"),
            Probe(
                "1.5.1",
                "float h(float x); float g(float x) { return h(x); } float h(float x) { return x; }\n\(f)",
                "float h(float x); float g(float x) { return h(x); } float h(float x) { return g(x); }\n\(f)"),
            Probe(
                "1.5.1",
                "float g(float x) { return x; } float g(float2 x) { return g(x.x); }\n\(f)",
                "float g(float2 x) { return x.x > 0 ? g(x - 1) : 0; }\n\(f)"),
            Probe(
                "5.1.3", "\(f)\nkernel void g(device float *y) { y[0] = 2; }",
                "\(f)\nkernel void g(device float *y) { f(y); }"),
            Probe(
                "5.1.3", "void h(device float *y) { y[0] = 2; }\n\(f)",
                "kernel void k(device float *y) { y[0] = 2; }\nvoid h(device float *y) { k(y); }\n\(f)"),
            Probe("5.1.3", f, "kernel float f(device float *y) { return y[0]; }"),
            Probe("5.1.3", f, "kernel int f(device float *y) { return 0; }"),
            Probe("5.1.3", f, "struct A { kernel void f(device float *y) { y[0] = 1; } };"),
            Probe("5.1.3", f, "\(f)\n[[host_name(\"f\")]] kernel void g(device float *y) {}"),
            Probe("1.5.4", "float g(int x = 1) { return x; }\n\(f)", "float g(int x...) { return x; }\n\(f)"),
            Probe(
                "4.4", "kernel void f(device float *y) { threadgroup float q[4]; q[0] = 1; y[0] = q[0]; }",
                "void g() { threadgroup float q[4]; q[0] = 1; }\n\(f)"),
            Probe("4.4", f, "threadgroup float q[4];\n\(f)"),
            Probe("4.2", "constant float q = 2;\n\(f)", "float q = 2;\n\(f)"),
            Probe("4.2", "constant float q[2] = {1, 2};\n\(f)", "device float q[2];\n\(f)"),
            Probe("4.2", "constant float q = 2;\n\(f)", "constant float q;\n\(f)"),
            Probe("4", "float g(device float *x) { return x[0]; }\n\(f)", "float g(float *x) { return x[0]; }\n\(f)"),
            Probe("4", "float g(thread float &x) { return x; }\n\(f)", "float g(float &x) { return x; }\n\(f)"),
            Probe("4", "struct A { device float *p; };\n\(f)", "struct A { float *p; };\n\(f)"),
            Probe(
                "4", "float g(threadgroup float *x) { return x[0]; }\n\(f)",
                "float g(threadgroup float *x) { return x[0]; }\nkernel void h(device float *y) { y[0] = g(y); }"),
            Probe("4", "float g(float x) { return x; }\n\(f)", "float g(device float x) { return x; }\n\(f)"),
            Probe("4", "float g(float x) { return x; }\n\(f)", "device float g(float x) { return x; }\n\(f)"),
            Probe("4", "struct A { float a[2]; };\n\(f)", "struct A { threadgroup float a[2]; };\n\(f)"),
            Probe("1.5.4", "#include <metal_math>\n\(f)", "#include <vector>\n\(f)"),
            Probe("1.5.4", "#include <metal_math>\n\(f)", "#include <cmath>\n\(f)"),
            Probe(
                "6.16", "struct A { device float *command_buffer; };\n\(f)",
                "struct A { command_buffer b; };\n\(f)"),
            Probe(
                "5.8", "constant int n [[function_constant(0)]];\n\(f)",
                "constant int n [[function_constant(65536)]];\n\(f)"),
            Probe(
                "5.8", "constant int n [[function_constant(0)]];\n\(f)",
                "constant int n [[function_constant(-1)]];\n\(f)"),
            Probe(
                "5.8", "constant int n [[function_constant(0)]];\n\(f)",
                "struct A { int a; };\nconstant A n [[function_constant(0)]];\n\(f)"),
            Probe(
                "5.8", "constant int n [[function_constant(0)]];\n\(f)",
                "constant int n [[function_constant(0)]] = 3;\n\(f)"),
        ])
    }

    func testArguments() {
        func kernel(_ parameter: String) -> String { "kernel void f(\(parameter)) {}" }
        let buffer = kernel("device float *a [[buffer(0)]]")
        assertDeclarations([
            Probe("5.2.1", buffer, kernel("device float *a [[buffer(31)]]")),
            Probe("5.2.1", buffer, kernel("device float *a [[buffer(-1)]]")),
            Probe("5.2.1", buffer, kernel("threadgroup float *a [[buffer(0)]]")),
            Probe(
                "5.2.1", kernel("threadgroup float *a [[threadgroup(0)]]"), kernel("device float *a [[threadgroup(0)]]")
            ),
            Probe(
                "5.2.1", kernel("threadgroup float *a [[threadgroup(0)]]"),
                kernel("threadgroup float *a [[threadgroup(31)]]")),
            Probe("5.2.1", buffer, kernel("thread float *a [[buffer(0)]]")),
            Probe("5.2.1", buffer, kernel("float *a [[buffer(0)]]")),
            Probe("5.2.1", buffer, kernel("float a [[buffer(0)]]")),
            Probe("5.2.1", buffer, kernel("float a")),
            Probe("5.2.1", kernel("constant float &a [[buffer(0)]]"), kernel("float &a [[buffer(0)]]")),
            Probe(
                "5.2.1", kernel("device float *a [[buffer(0)]], device float *b [[buffer(1)]]"),
                kernel("device float *a [[buffer(1)]], device float *b [[buffer(1)]]")),
            Probe(
                "5.2.1", kernel("texture2d<float> a [[texture(0)]], texture2d<float> b [[texture(1)]]"),
                kernel("texture2d<float> a [[texture(0)]], texture2d<float> b [[texture(0)]]")),
            Probe("5.2.1", kernel("texture2d<float> a [[texture(0)]]"), kernel("texture2d<float> a [[texture(128)]]")),
            Probe("5.2.1", kernel("sampler a [[sampler(0)]]"), kernel("sampler a [[sampler(16)]]")),
            Probe(
                "5.2.3", kernel("uint a [[thread_position_in_grid]]"),
                kernel("device uint *a [[thread_position_in_grid]]")),
            Probe(
                "5.2.3", kernel("uint a [[thread_position_in_grid]]"),
                kernel("constant uint &a [[thread_position_in_grid]]")),
            Probe("5.2.3", kernel("uint a [[thread_position_in_grid]]"), kernel("uint a [[thread_position]]")),
            Probe("5.2.3", kernel("uint a [[thread_position_in_grid]]"), kernel("uint a [[vertex_id]]")),
            Probe("5.2.3", kernel("uint2 a [[thread_position_in_grid]]"), kernel("float4 a [[position]]")),
            Probe("5.2.1", buffer, kernel("device float *a [[buffer]]")),
            Probe("5.2.1", buffer, kernel("device float *a [[buffer(0), texture(0)]]")),
            Probe(
                "2.13",
                "struct A { device float *a [[id(0)]]; device float *b [[id(1)]]; };\n"
                    + kernel("constant A &a [[buffer(0)]]"),
                "struct A { device float *a [[id(0)]]; device float *b [[id(0)]]; };\n"
                    + kernel("constant A &a [[buffer(0)]]")),
        ])
    }

    /// Each position with each type that the table of kernel inputs excludes (MSL 5.2.3.6). Metal is known to reject
    /// signed and 64-bit types (shader-slang's issue 4288).
    func testTypesOfPositions() {
        let positions = [
            "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid",
            "threads_per_grid", "threads_per_threadgroup", "threadgroups_per_grid", "dispatch_threads_per_threadgroup",
        ]
        let indices = [
            "thread_index_in_threadgroup", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
            "simdgroups_per_threadgroup", "threads_per_simdgroup", "thread_index_in_quadgroup",
            "quadgroup_index_in_threadgroup", "dispatch_simdgroups_per_threadgroup",
        ]
        let legalPositions = ["uint", "ushort", "uint2", "ushort2", "uint3", "ushort3", "metal::uint3", "vec<uint, 3>"]
        let never = [
            "int", "short", "long", "ulong", "size_t", "char", "uchar", "bool", "float", "half", "int2", "int3",
            "ulong3", "short2", "float3", "uint4", "ushort4", "vec<int, 3>",
        ]
        for (names, legal, illegal) in [
            (positions, legalPositions, never), (indices, ["uint", "ushort"], never + ["uint2", "uint3"]),
        ] {
            let all = names.flatMap { name in legal.map { "\($0) p [[\(name)]]" } }
            let source = all.enumerated().map { "kernel void f\($0)(\($1)) {}" }.joined(separator: "\n")
            XCTAssertEqual(errors(source), [])
            for name in names {
                let lines = illegal.enumerated().map { "kernel void f\($0)(\($1) p [[\(name)]]) {}" }
                let refused = Set(
                    errors(lines.joined(separator: "\n")).compactMap {
                        Int($0.split(separator: ":").dropFirst().first!)
                    })
                for (index, type) in illegal.enumerated() where !refused.contains(index + 1) {
                    XCTFail("5.2.3.6: accepted, but Metal refuses it: \(type) for \(name)")
                }
            }
        }
    }

    func testAnAliasIsNoWayAroundTheTypesOfPositions() {
        let uses = "kernel void f(index p [[thread_position_in_grid]]) {}"
        assertDeclarations([
            Probe("5.2.3.6", "typedef uint index;\n\(uses)", "typedef int index;\n\(uses)"),
            Probe("5.2.3.6", "using index = uint3;\n\(uses)", "using index = ulong;\n\(uses)"),
            Probe("5.2.3.6", "using index = ushort2;\n\(uses)", "using index = uint4;\n\(uses)"),
        ])
    }

    /// "If it is a vector type, the number of components of these arguments needs to match."
    func testPositionsHaveOneNumberOfComponents() {
        func pair(_ first: String, _ second: String) -> String {
            "kernel void f(\(first) a [[thread_position_in_grid]], uint k [[thread_index_in_simdgroup]], "
                + "\(second) b [[threads_per_threadgroup]]) {}"
        }
        let types = ["uint", "ushort2", "uint2", "uint3", "ushort3"]
        for first in types {
            for second in types {
                let count = { (type: String) in type.last!.isNumber ? type.last! : "1" }
                XCTAssertEqual(
                    errors(pair(first, second)).isEmpty, count(first) == count(second), "\(first) beside \(second)")
            }
        }
    }
}
