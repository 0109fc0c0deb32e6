import COrchard
import XCTest

@testable import OrchardMetal

final class IncludeTests: XCTestCase {
    private func resolve(_ source: String, _ headers: [(String, String)], name: String? = "main.metal") throws -> String
    {
        try IncludeResolver.resolve(name: name, source: source, headers: headers.map { (name: $0.0, text: $0.1) })
    }

    private func assertFails(
        _ text: String, file: StaticString = #filePath, line: UInt = #line, _ body: () throws -> Void
    ) {
        XCTAssertThrowsError(try body(), file: file, line: line) { error in
            XCTAssertEqual((error as? OrchardError)?.status, ORCHARD_COMPILE_FAILED, file: file, line: line)
            XCTAssertEqual((error as? OrchardError)?.message, text, file: file, line: line)
        }
    }

    /// Returns the lines that a compiler would see, as file:line text.
    private func located(_ resolved: String) -> [String] {
        var (file, line, result) = (IncludeResolver.unnamed, 1, [String]())
        for text in resolved.split(separator: "\n", omittingEmptySubsequences: false) {
            if text.hasPrefix("#line ") {
                let words = text.split(separator: " ")
                (line, file) = (Int(words[1])!, words[2].trimmingCharacters(in: ["\""]))
                continue
            }
            if !text.isEmpty, !text.hasPrefix("#") { result.append("\(file):\(line) \(text)") }
            line += 1
        }
        return result
    }

    func testEachLineKeepsItsFileAndNumber() throws {
        let resolved = try resolve(
            "int a;\n#include \"x.h\"\nint b;\n  #  include \"folder/y.h\" // why\nint c;",
            [("x.h", "int x1;\nint x2;"), ("folder/y.h", "#include \"z.h\"\nint y2;"), ("folder/z.h", "int z1;")])
        XCTAssertEqual(
            located(resolved),
            [
                "main.metal:1 int a;", "x.h:1 int x1;", "x.h:2 int x2;", "main.metal:3 int b;", "folder/z.h:1 int z1;",
                "folder/y.h:2 int y2;",
                "main.metal:5 int c;",
            ])
    }

    func testAHeaderCountsOnce() throws {
        let resolved = try resolve(
            "#include \"a.h\"\n#include \"b.h\"\n#include \"a.h\"\nint m;",
            [("a.h", "#pragma once\nint a;"), ("b.h", "#include \"a.h\"\nint b;")])
        XCTAssertEqual(located(resolved), ["a.h:2 int a;", "b.h:2 int b;", "main.metal:4 int m;"])
    }

    func testAHeaderUnderAConditionStandsAtEachPlaceInAGuard() throws {
        let resolved = try resolve("#if NEVER\n#include \"a.h\"\n#endif\n#include \"a.h\"\n", [("a.h", "int a;")])
        XCTAssertEqual(located(resolved).filter { $0.hasSuffix("int a;") }.count, 2)
        XCTAssertEqual(resolved.components(separatedBy: "#ifndef ORCHARD_INCLUDED_0\n").count, 3)
    }

    func testSystemHeadersAndCommentsAreLeftAlone() throws {
        let source =
            "#include <metal_stdlib>\n/*\n#include \"gone.h\"\n*/\n// #include \"gone.h\"\nint a; // /*\nint b;\n"
        XCTAssertEqual(try resolve(source, [], name: nil), source + "\n")
    }

    func testCyclesAreReported() {
        assertFails(
            "b.h:2:10: error: 'a.h' includes itself: main.metal -> a.h -> b.h -> a.h\n#include \"a.h\"\n         ^"
        ) {
            _ = try resolve("#include \"a.h\"", [("a.h", "#include \"b.h\""), ("b.h", "\n#include \"a.h\"")])
        }
    }

    func testMissingHeadersAreReported() {
        assertFails("x.h:3:11: error: 'y.h' file not found (given are x.h)\n #include \"y.h\"\n          ^") {
            _ = try resolve("#include \"x.h\"", [("x.h", "\n\n #include \"y.h\"")])
        }
        XCTAssertThrowsError(try resolve("", [("x.h", ""), ("x.h", "")]))
    }

    func testPathsAreNormalized() throws {
        let resolved = try resolve(
            "#include \"ops/./a.h\"",
            [("ops/a.h", "#include \"../common/types.h\"\nint a;"), ("common/types.h", "int t;")])
        XCTAssertEqual(located(resolved), ["common/types.h:1 int t;", "ops/a.h:2 int a;"])
    }

    func testRunawayIncludesEnd() {
        var headers = (0..<30).map {
            (
                "h\($0).h",
                "#if A\n#include \"h\($0 + 1).h\"\n#include \"h\($0 + 1).h\"\n#endif\n" + "//"
                    + String(repeating: "x", count: 10_000)
            )
        }
        headers.append(("h30.h", "int end;"))
        XCTAssertThrowsError(try resolve("#include \"h0.h\"", headers)) {
            XCTAssertEqual(($0 as? OrchardError)?.status, ORCHARD_LIMIT_EXCEEDED)
        }
    }
}
