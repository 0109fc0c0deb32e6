import XCTest

/// Runs a kernel that breaks a rule, and checks the finding. Markers in the source identify lines: `// HERE`.
class CheckerTestCase: XCTestCase {
    override func setUp() {
        super.setUp()
        _ = takeFindings()
    }

    /// Runs the function `k` of the source under the checker, with threads in ascending order, so that findings name
    /// the same threads each time.
    func findings(
        _ source: String, _ buffers: [TestBuffer], grid: Int, group: Int, lengths: [Int] = []
    ) throws -> [Finding] {
        let function = try KernelLibrary(source).function("k")
        return try checked { try function.run(buffers, grid: grid, group: group, threadgroupLengths: lengths) }
    }

    func checked(_ body: () throws -> Void) throws -> [Finding] {
        try withSetting("check", "1") { try withSetting("seed", "0") { try body() } }
        return takeFindings()
    }

    func assertSilent(_ findings: [Finding], file: StaticString = #filePath, line: UInt = #line) {
        XCTAssertEqual(findings.map(\.description), [], file: file, line: line)
    }

    /// Asserts that the findings contain this one. For a race, `other` is the marker of the earlier access.
    @discardableResult
    func assertFound(
        _ findings: [Finding], _ kind: String, in source: String, at marker: String = "HERE", other: String? = nil,
        thread: [Int]? = nil, otherThread: [Int]? = nil, threadgroup: [Int]? = nil, otherThreadgroup: [Int]? = nil,
        buffer: String? = nil, offset: Int? = nil, severity: String = "error", says part: String = "",
        file: StaticString = #filePath, line: UInt = #line
    ) -> Finding? {
        let candidates = findings.filter {
            $0.kind == kind && $0.line == sourceLine(marker, source)
                && (other == nil || $0.other_line == sourceLine(other!, source))
        }
        guard let found = candidates.first else {
            XCTFail(
                "no \(kind) at line \(sourceLine(marker, source)) (other: "
                    + "\(other.map { sourceLine($0, source) } ?? 0)) in \(findings)",
                file: file, line: line)
            return nil
        }
        XCTAssertEqual(found.severity, severity, file: file, line: line)
        XCTAssertEqual(found.kernel, "k", file: file, line: line)
        if let thread { XCTAssertEqual(found.thread, thread, "thread", file: file, line: line) }
        if let otherThread { XCTAssertEqual(found.other_thread, otherThread, "other thread", file: file, line: line) }
        if let threadgroup { XCTAssertEqual(found.threadgroup, threadgroup, "threadgroup", file: file, line: line) }
        if let otherThreadgroup {
            XCTAssertEqual(found.other_threadgroup, otherThreadgroup, "other threadgroup", file: file, line: line)
        }
        if let buffer { XCTAssertEqual(found.buffer, buffer, file: file, line: line) }
        if let offset { XCTAssertEqual(found.offset, offset, "offset", file: file, line: line) }
        XCTAssertTrue(
            part.isEmpty || found.message.contains(part), "'\(part)' is missing in: \(found.message)", file: file,
            line: line)
        return found
    }
}

/// Returns the line, counted from 1, that contains `// MARKER`.
func sourceLine(_ marker: String, _ source: String) -> Int {
    let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
    return (lines.firstIndex { $0.hasSuffix("// " + marker) } ?? -1) + 1
}
