import MetalRuntime
import XCTest

/// The list of findings: equal ones are counted, strings are copied, the limit is respected, and misuse calls its
/// handler.
final class FindingsTests: XCTestCase {
    override func setUp() { _ = takeFindings() }
    override func tearDown() { _ = takeFindings() }

    private func add(
        _ kind: String, _ message: String = "text", kernel: String? = "k", line: UInt32 = 1, buffer: String? = nil,
        severity: String? = nil
    ) {
        func withOptional(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Void) {
            if let text { text.withCString(body) } else { body(nil) }
        }
        kind.withCString { kind in
            message.withCString { message in
                withOptional(kernel) { kernel in
                    withOptional(buffer) { buffer in
                        withOptional(severity) { severity in
                            var finding = mrt_finding()
                            finding.kind = kind
                            finding.message = message
                            finding.kernel = kernel
                            finding.buffer = buffer
                            finding.severity = severity
                            finding.line = line
                            finding.thread = (1, 2, 3)
                            mrt_finding_add(&finding)
                        }
                    }
                }
            }
        }
    }

    func testEqualFindingsAreCountedOnce() {
        add("device-race", "first")
        add("device-race", "second")
        add("device-race", line: 2)
        add("device-race", kernel: "other")
        add("device-race", buffer: "x")
        add("misaligned")
        XCTAssertEqual(mrt_findings_count(), 5)
        let findings = takeFindings()
        XCTAssertEqual(
            findings.map(\.kind), ["device-race", "device-race", "device-race", "device-race", "misaligned"])
        XCTAssertEqual(findings.map(\.count), [2, 1, 1, 1, 1])
        XCTAssertEqual(findings.first?.message, "first")
        XCTAssertEqual(findings.first?.thread, [1, 2, 3])
        XCTAssertEqual(mrt_findings_count(), 0)
    }

    func testNotesAreNoErrors() {
        add("layout-dependence", severity: "note")
        XCTAssertEqual(mrt_findings_count(), 0)
        XCTAssertEqual(takeFindings().map(\.severity), ["note"])
    }

    func testTextSurvives() throws {
        let text = "quote \" backslash \\ newline \n tab \t control \u{1} é 日本"
        add("misuse", text, kernel: nil, buffer: "b\"")
        let finding = try XCTUnwrap(takeFindings().first)
        XCTAssertEqual(finding.message, text)
        XCTAssertNil(finding.kernel)
        XCTAssertEqual(finding.buffer, "b\"")
    }

    func testBeyondTheLimitFindingsAreOnlyCounted() {
        withSetting("max_findings", "3") {
            for line in 1...10 { add("out-of-bounds", line: UInt32(line)) }
            add("out-of-bounds", line: 10)
        }
        XCTAssertEqual(mrt_findings_count(), 10)
        XCTAssertEqual(takeFindings().map(\.line), [1, 2, 3])
    }

    func testMisuseIsAFindingAndReachesItsHandler() {
        final class Box { var sentences: [String] = [] }
        let box = Box()
        mrt_misuse_set_handler(
            { sentence, context in
                Unmanaged<Box>.fromOpaque(context!).takeUnretainedValue().sentences.append(String(cString: sentence!))
            }, Unmanaged.passUnretained(box).toOpaque())
        defer { mrt_misuse_set_handler(nil, nil) }
        mrt_misuse("one rule")
        mrt_misuse("another rule")
        mrt_misuse("one rule")
        XCTAssertEqual(box.sentences, ["one rule", "another rule", "one rule"])
        let findings = takeFindings()
        XCTAssertEqual(findings.map(\.message), ["one rule", "another rule"])
        XCTAssertEqual(findings.map(\.count), [2, 1])
    }

    func testWithoutAHandlerMisuseAbortsUnlessToldNotTo() {
        withSetting("abort_on_misuse", "0") { mrt_misuse("ignored") }
        XCTAssertEqual(takeFindings().map(\.kind), ["misuse"])
    }
}
