import Foundation
import MetalRuntime
import XCTest

/// A kernel is isolated: it can't call functions of the process that runs it, its source can't read files, and
/// compiling it ends.
final class IsolationTests: XCTestCase {
    private let end = "kernel void k(device float *y) { y[0] = 1; }\n"

    private func compile(_ source: String, macros: [String: String] = [:]) -> String {
        do {
            _ = try KernelLibrary(source, macros: macros)
            return "compiled"
        } catch { return "\(error)" }
    }

    // MARK: calls

    func testNothingOfTheCLibraryResolves() {
        for (name, declaration, call) in [
            ("system", "extern \"C\" int system(constant const char *command);", "system(\"true\")"),
            ("getpid", "extern \"C\" int getpid();", "getpid()"),
            ("getppid", "extern \"C\" __attribute__((weak)) int getppid();", "getppid()"),
            ("printf", "", "__builtin_printf(\"hello\")"),
            ("memcmp", "extern \"C\" int memcmp(device const void *, device const void *, ulong);", "memcmp(y, y, 4)"),
        ] {
            let text = compile("\(declaration)\nkernel void k(device float *y) { y[0] = \(call); }\n")
            XCTAssertTrue(
                text.contains("error: undefined symbols: \(name): a kernel can call functions of its library"), text)
        }
    }

    func testCopiesOfMemoryAreTheCompilersOwn() throws {
        let y = TestBuffer([Float](repeating: 1, count: 600))
        try KernelLibrary(
            """
            struct Block { float values[300]; };
            kernel void k(device Block *y) { Block b = y[0]; b.values[7] = 9; y[1] = b; y[0] = Block(); }
            """
        ).function("k").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self)[0...7], [0, 0, 0, 0, 0, 0, 0, 0])
        XCTAssertEqual(y.array(Float.self)[307], 9)
    }

    func testNothingRunsWhenItIsLoaded() {
        for attribute in [
            "__attribute__((constructor))", "__attribute__((__constructor__(101)))", "[[gnu::constructor]]",
            "__attribute__((destructor))", "[[clang::constructor]]", "__attribute__((noinline, section(\".init\")))",
        ] {
            let text = compile("\(attribute) void go() {}\n" + end)
            XCTAssertTrue(text.contains("program_source:1:") && text.contains("' is not supported in Metal"), text)
        }
        let pragma = compile(
            "#pragma clang attribute push(__attribute__((constructor)), apply_to = function)\nvoid go() {}\n" + end)
        XCTAssertTrue(pragma.contains("program_source:1:1: error: '#pragma clang attribute' is not supported"), pragma)
    }

    // MARK: reads

    func testSourcesReadNoFiles() throws {
        let file = NSTemporaryDirectory() + "orchard-secret-\(getpid()).h"
        try "int secret".write(toFile: file, atomically: true, encoding: .utf8)
        defer { unlink(file) }
        let folders = String(repeating: "../", count: 24)
        for line in [
            "#include <\(file)>", "#include \"\(file)\"", "#define FILE \"\(file)\"\n#include FILE",
            "#include <\(folders)\(file.dropFirst())>", "#include \"\(folders)\(file.dropFirst())\"",
            "#import \"\(file)\"", "#include_next <\(file)>", "#define HASH #\nHASH include \"\(file)\"",
            "#define HASH %:\nHASH include \"\(file)\"",
        ] {
            let text = compile(line + "\n;\n" + end)
            XCTAssertNotEqual(text, "compiled", line)
            XCTAssertFalse(text.contains("secret;") || text.contains("int secret"), "\(line): \(text)")
        }
        XCTAssertEqual(compile("#if __has_include(\"\(file)\")\n#error it is there\n#endif\n" + end), "compiled")
        XCTAssertEqual(compile("#include <metal_stdlib>\n#include <simd/simd.h>\n" + end), "compiled")
    }

    func testMacrosOfTheCallerAreNames() {
        XCTAssertEqual(compile(end, macros: ["N": "4", "F(x, ...)": "x"]), "compiled")
        for name in ["A\n#include \"/etc/passwd\"\n#define B", "", "4", "A-B", "A B"] {
            let text = compile(end, macros: [name: "1"])
            XCTAssertTrue(text.contains("a preprocessor macro's name must be an identifier"), "\(name): \(text)")
        }
        let text = compile(end, macros: ["A": "1\n#include \"/etc/passwd\""])
        XCTAssertTrue(text.contains("the value of the preprocessor macro 'A' must be one line"), text)
    }

    // MARK: time limits

    func testCompilingEndsInTime() {
        let begin = Date()
        let text = withSetting("compile_timeout_ms", "1500") {
            compile(
                """
                template <uint N, uint M> struct bomb { static constexpr constant uint value =
                    bomb<N - 1, 2 * M>::value + bomb<N - 1, 2 * M + 1>::value; };
                template <uint M> struct bomb<0, M> { static constexpr constant uint value = M; };
                kernel void k(device uint *y) { y[0] = bomb<30, 1>::value; }
                """)
        }
        XCTAssertTrue(text.contains("error: compiling took longer than 1500 ms (setting 'compile_timeout_ms'"), text)
        XCTAssertLessThan(Date().timeIntervalSince(begin), 30)
        XCTAssertEqual(compile(end), "compiled")
    }

    func testMacrosThatMultiplyEnd() {
        let lines = (1..<40).map { "#define M\($0) M\($0 - 1) M\($0 - 1)" }.joined(separator: "\n")
        let text = withSetting("compile_timeout_ms", "5000") { compile("#define M0 int x;\n\(lines)\nM39\n" + end) }
        XCTAssertTrue(
            text.contains("error: the program expands to too much text") || text.contains("of memory")
                || text.contains("compiling took longer"), String(text.prefix(300)))
    }
}
