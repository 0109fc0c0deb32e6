import COrchard
import XCTest

@testable import OrchardMetal

final class FaultTests: XCTestCase {
    func testAllocationsFail() throws {
        let client = try Client()
        try client.inject("allocate", skip: 1, count: 2)
        _ = try client.buffer(16)
        for _ in 0..<2 { assertFails(ORCHARD_OUT_OF_MEMORY, "256 bytes", "injected") { _ = try client.buffer(16) } }
        _ = try client.buffer(16)
        XCTAssertEqual(try client.statistics.live_buffers, 2)
    }

    func testAFailedAllocationOfAMaterialisationLeaksNothing() throws {
        let client = try Client()
        let buffer = try client.buffer([UInt32](repeating: 1, count: 16), ORCHARD_STORAGE_PRIVATE)
        try client.finish()
        let live = try client.statistics.live_bytes
        for _ in 0..<2 {
            try client.inject("allocate")
            assertFails(ORCHARD_OUT_OF_MEMORY) { _ = try client.read(buffer, 16, of: UInt32.self) }
            try client.inject("allocate")
            assertFails(ORCHARD_OUT_OF_MEMORY) {
                try check(orchard_buffer_hint(buffer, ORCHARD_STORAGE_SHARED.rawValue))
            }
        }
        XCTAssertEqual(try client.statistics.live_bytes, live)
        XCTAssertEqual(try client.read(buffer, 1, of: UInt32.self), [1])
    }

    func testLibrariesAndPipelinesFail() throws {
        let client = try Client()
        try client.inject("library")
        assertFails(ORCHARD_COMPILE_FAILED, "Injected") { _ = try client.library(Kernels.add) }
        let library = try client.library(Kernels.add)
        try client.inject("pipeline")
        assertFails(ORCHARD_COMPILE_FAILED, "Injected") { _ = try client.pipeline(library, "bump") }
        _ = try client.pipeline(library, "bump")
    }

    func testFaultsCanBeTakenBack() throws {
        let client = try Client()
        try client.inject("allocate", count: 5)
        try client.inject("allocate", count: 0)
        _ = try client.buffer(16)
        assertFails(ORCHARD_INVALID_ARGUMENT, "'disk'", "'command-buffer'") { try client.inject("disk") }
    }

    func testCaptureSaysWhatItNeeds() throws {
        let client = try Client()
        let path = NSTemporaryDirectory() + "orchard-\(UUID().uuidString).gputrace"
        let begin = { try check(orchard_capture_begin(client.context, path, UInt64(path.utf8.count))) }
        if !SoftwareDevice.isPresent, ProcessInfo.processInfo.environment["MTL_CAPTURE_ENABLED"] == "1" {
            try begin()
            try check(orchard_capture_end(client.context))
            XCTAssertTrue(FileManager.default.fileExists(atPath: path))
            try FileManager.default.removeItem(atPath: path)
        } else {
            assertFails(ORCHARD_UNSUPPORTED, "macOS", "MTL_CAPTURE_ENABLED") { try begin() }
        }
        assertFails(ORCHARD_INVALID_ARGUMENT, "No capture") { try check(orchard_capture_end(client.context)) }
    }

    func testSettingsOfTheSoftwareDevice() throws {
        let client = try Client()
        guard SoftwareDevice.isPresent else {
            assertFails(ORCHARD_UNSUPPORTED, "'seed'", "memory_limit") { try client.configure("seed", "5") }
            return XCTAssertTrue(try client.report()["settings"] is NSNull)
        }
        try client.configure("seed", "5")
        XCTAssertNotNil(try client.report()["settings"] as? [String: Any])
        try client.configure("seed", "1")
        assertFails(ORCHARD_INVALID_ARGUMENT, "sed") { try client.configure("sed", "5") }
    }
}
