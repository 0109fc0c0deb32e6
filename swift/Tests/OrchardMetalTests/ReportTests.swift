import COrchard
import XCTest

@testable import OrchardMetal

/// Features of the software device, through the interface: counters and findings. Apple's device has none.
final class ReportTests: XCTestCase {
    /// Returns false on Apple's device, after checking that its report has no findings.
    private func hasChecker(_ client: Client) throws -> Bool {
        if SoftwareDevice.isPresent { return true }
        let report = try client.report()
        for part in ["settings", "findings", "dispatches"] { XCTAssertTrue(report[part] is NSNull, part) }
        assertFails(ORCHARD_UNSUPPORTED, "'check'") { try client.configure("check", "1") }
        return false
    }

    func testCountersByLabel() throws {
        let client = try Client()
        guard try hasChecker(client) else { return }
        _ = try client.report(clear: true)
        let add = try client.pipeline(client.library(Kernels.add), "add")
        let a = try client.buffer([Float](repeating: 1, count: 64)), sum = try client.buffer(256)
        try client.configure("count", "1")
        try check(orchard_label_push(client.context, "forward", 7))
        for _ in 0..<2 {
            try client.dispatch(
                add, grid: (64, 1, 1), [binding(0, a, read), binding(1, a, read), binding(2, sum, write)],
                inline: [(3, Float(1).bytes)],
                label: "sum of two")
        }
        try check(orchard_label_pop(client.context))
        try client.finish()
        try client.configure("count", "0")
        let dispatches = try XCTUnwrap(client.report(clear: true)["dispatches"] as? [[String: Any]])
        XCTAssertEqual(dispatches.count, 1, "\(dispatches)")
        let entry = try XCTUnwrap(dispatches.first)
        XCTAssertEqual(entry["kernel"] as? String, "add")
        XCTAssertEqual(entry["label"] as? String, "forward/sum of two")
        XCTAssertEqual(entry["count"] as? Int, 2)
        let counters = try XCTUnwrap(entry["counters"] as? [String: Any])
        XCTAssertTrue(counters.values.contains { $0 as? Int == 2 * 64 * 4 }, "512 bytes are written: \(counters)")
        XCTAssertEqual((try client.report()["dispatches"] as? [Any])?.count, 0, "cleared")
    }

    func testTheRuntimeGivesTheCheckerNothingToFind() throws {
        let client = try Client()
        guard try hasChecker(client) else { return }
        try client.configure("check", "1")
        defer { try? client.configure("check", "0") }
        _ = try client.report(clear: true)
        let library = try client.library(Kernels.add)
        let bump = try client.pipeline(library, "bump"), add = try client.pipeline(library, "add")
        let x = try client.buffer([UInt32](repeating: 0, count: 64)),
            y = try client.buffer(256, ORCHARD_STORAGE_PRIVATE, zeroed: true)
        for buffer in [x, y, x] { try client.dispatch(bump, grid: (64, 1, 1), [binding(0, buffer, readWrite)]) }
        try client.dispatch(
            add, grid: (32, 1, 1), [binding(0, x, read), binding(1, y, read), binding(2, x, write, offset: 128)],
            inline: [(3, Float(1).bytes)])
        try check(orchard_buffer_copy(x, 0, y, 4, 64, nil))
        try check(orchard_buffer_hint(y, ORCHARD_STORAGE_SHARED.rawValue))
        _ = try client.read(y, 64, of: UInt32.self)
        let findings = try XCTUnwrap(client.report(clear: true)["findings"] as? [[String: Any]])
        XCTAssertTrue(findings.isEmpty, "\(findings)")
    }

    /// The missing barrier is found: the accesses are declared incorrectly on purpose.
    func testAWrongAccessIsFound() throws {
        let client = try Client()
        guard try hasChecker(client) else { return }
        try client.configure("check", "1")
        defer { try? client.configure("check", "0") }
        _ = try client.report(clear: true)
        let bump = try client.pipeline(client.library(Kernels.add), "bump")
        let x = try client.buffer([UInt32](repeating: 0, count: 64), label: "x")
        for _ in 0..<2 { try client.dispatch(bump, grid: (64, 1, 1), [binding(0, x, read)]) }
        try client.finish()
        let findings = try XCTUnwrap(client.report(clear: true)["findings"] as? [[String: Any]])
        XCTAssertTrue(findings.contains { $0["kind"] as? String == "dispatch-race" }, "\(findings)")
    }
}
