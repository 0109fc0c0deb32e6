import MetalRuntime
import XCTest

final class SettingsTests: XCTestCase {
    private func get(_ name: String) -> String? {
        guard let value = mrt_setting_get(name) else { return nil }
        defer { mrt_string_free(value) }
        return String(cString: value)
    }

    private func problem(_ name: String, _ value: String) -> String? {
        var message: UnsafeMutablePointer<CChar>?
        if mrt_setting_set(name, value, &message) { return nil }
        defer { mrt_string_free(message) }
        return String(cString: message!)
    }

    func testASettingIsReadBackAsItWasSet() {
        for (name, value) in [
            ("seed", "77"), ("denormals", "flush"), ("fast", "1"), ("clang", "/some/clang++"), ("check", "1"),
        ] {
            let old = get(name)!
            XCTAssertNotEqual(old, value)
            withSetting(name, value) { XCTAssertEqual(get(name), value) }
            XCTAssertEqual(get(name), old)
        }
    }

    func testAWrongValueIsRefusedAndChangesNothing() {
        let before = get("seed")
        XCTAssertEqual(problem("seed", "-1"), "expected setting seed to be a whole number from 0 up, got \"-1\"")
        XCTAssertEqual(problem("seed", "12x"), "expected setting seed to be a whole number from 0 up, got \"12x\"")
        XCTAssertEqual(
            problem("max_threads", "2048"),
            "expected setting max_threads to be a whole number from 1 to 1024, got \"2048\"")
        XCTAssertEqual(
            problem("denormals", "kept"), "expected setting denormals to be one of keep, flush, got \"kept\"")
        XCTAssertEqual(get("seed"), before)
    }

    func testAnUnknownNameIsRefusedWithTheNamesThatThereAre() {
        XCTAssertNil(get("chekc"))
        let message = problem("chekc", "1") ?? ""
        XCTAssertTrue(
            message.hasPrefix("no setting is named \"chekc\"; expected one of check, count, workers"), message)
    }

    func testTheJsonHoldsEverySetting() throws {
        let text = mrt_settings_json()!
        defer { mrt_string_free(text) }
        let values = try JSONSerialization.jsonObject(with: Data(String(cString: text).utf8)) as! [String: Any]
        XCTAssertEqual(values.count, 28)
        XCTAssertEqual(values["timeout_ms"] as? Int, 60000)
        XCTAssertEqual(values["compile_timeout_ms"] as? Int, 60000)
        XCTAssertEqual(values["denormals"] as? String, "keep")
    }

    func testAFaultIsTakenAfterTheOnesThatAreSkippedAndAsOftenAsAsked() {
        mrt_fault_inject("queue", 2, 2, 7)
        var code: Int32 = 0
        let taken = (0..<6).map { _ in mrt_fault_take("queue", &code) }
        XCTAssertEqual(taken, [false, false, true, true, false, false])
        XCTAssertEqual(code, 7)
        XCTAssertFalse(mrt_fault_take("allocate", nil))
    }
}
