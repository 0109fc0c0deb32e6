import Foundation
import MetalRuntime
import XCTest

/// The cache of compiled kernels: hits, damage, folders that can't be used, several processes.
final class CompilerCacheTests: XCTestCase {
    private var folder = ""

    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "/orchard-cache-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // Without another compile of the standard library.
        let shared = NSTemporaryDirectory() + "/orchard-cache-shared"
        try? FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: true)
        _ = try withSetting("cache", shared) { try KernelLibrary("kernel void warm_up(device float *y) { y[0] = 1; }") }
        for name in try FileManager.default.contentsOfDirectory(atPath: shared) where name.hasPrefix("prelude-") {
            try FileManager.default.copyItem(atPath: shared + "/" + name, toPath: folder + "/" + name)
        }
    }

    override func tearDown() {
        chmod(folder, 0o755)
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func source(_ number: Int, _ label: String = #function) -> String {
        "// \(label)\nkernel void f(device float *y) { y[0] = \(number); }"
    }

    private func check(_ source: String, _ wanted: Float, file: StaticString = #filePath, line: UInt = #line) throws {
        let y = TestBuffer(length: 4)
        try KernelLibrary(source).function("f").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self), [wanted], file: file, line: line)
    }

    private func compiles(_ body: () throws -> Void) rethrows -> UInt64 {
        let before = mrt_compile_stats_get().compiled
        try body()
        return mrt_compile_stats_get().compiled - before
    }

    private func files(_ suffix: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(suffix) && !$0.hasPrefix("prelude-") }.map { folder + "/" + $0 }
    }

    func testTheSecondTimeNothingIsCompiledAndItIsFast() throws {
        try withSetting("cache", folder) {
            XCTAssertEqual(try compiles { try check(source(3), 3) }, 1)
            let start = Date()
            XCTAssertEqual(try compiles { try check(source(3), 3) }, 0)
            XCTAssertLessThan(Date().timeIntervalSince(start), 0.25)
            XCTAssertEqual(try files(".so").count, 1)
        }
    }

    func testADamagedFileIsDiscardedAndBuiltAgain() throws {
        try withSetting("cache", folder) {
            for (number, damage) in [(5, "flipped"), (6, "truncated"), (7, "empty")] {
                XCTAssertEqual(try compiles { _ = try KernelLibrary(source(number)) }, 1)
                for path in try files(".so") + files(".library") {
                    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
                    switch damage {
                    case "flipped": bytes[bytes.count / 2] ^= 0x40
                    case "truncated": bytes = bytes.prefix(bytes.count / 2)
                    default: bytes = Data()
                    }
                    try bytes.write(to: URL(fileURLWithPath: path))
                }
                XCTAssertEqual(try compiles { try check(source(number), Float(number)) }, 1, damage)
                for path in try files(".so") + files(".library") { try FileManager.default.removeItem(atPath: path) }
            }
        }
    }

    func testAFolderThatCannotBeUsedIsReplacedByATemporaryOne() throws {
        let file = folder + "/a-file"
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: nil))
        for path in [file, file + "/below", "/proc/orchard"] {
            try withSetting("cache", path) { try check(source(9, path), 9) }
        }
    }

    func testAReadOnlyFolderIsReplacedByATemporaryOne() throws {
        chmod(folder, 0o555)
        try withSetting("cache", folder) { try check(source(11), 11) }
    }

    func testNoCacheAtAll() throws {
        try withSetting("cache", "") { try check(source(13), 13) }
        XCTAssertEqual(try files(".so"), [])
    }

    func testTheFolderIsMadeWhereItIsMissing() throws {
        let below = folder + "/a/b"
        try withSetting("cache", below) { try check(source(15), 15) }
        XCTAssertTrue(try FileManager.default.contentsOfDirectory(atPath: below).contains { $0.hasSuffix(".library") })
    }

    func testManyThreadsCompileTheSameSource() throws {
        try withSetting("cache", folder) {
            let text = source(17)
            DispatchQueue.concurrentPerform(iterations: 6) { _ in
                do { try self.check(text, 17) } catch { XCTFail("\(error)") }
            }
            XCTAssertEqual(try files(".so").count, 1)
            XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("new-") }, [])
        }
    }

    func testTwoProcessesShareTheFolder() throws {
        // The other processes are this program, asked for one test each.
        if let shared = ProcessInfo.processInfo.environment["ORCHARD_TEST_SHARED_CACHE"] {
            return try withSetting("cache", shared) { for number in 0..<3 { try check(source(number, "shared"), Float(number)) } }
        }
        let processes = try (0..<2).map { _ -> Process in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = ["MetalRuntimeTests.CompilerCacheTests/testTwoProcessesShareTheFolder"]
            process.environment = ProcessInfo.processInfo.environment.merging(["ORCHARD_TEST_SHARED_CACHE": folder]) { $1 }
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            return process
        }
        for process in processes {
            process.waitUntilExit()
            XCTAssertEqual(process.terminationStatus, 0)
        }
        XCTAssertEqual(try files(".so").count, 3)
        try withSetting("cache", folder) { XCTAssertEqual(try compiles { try check(source(1, "shared"), 1) }, 0) }
    }

    func testAnArchiveServesAnotherCache() throws {
        let archive = folder + "/archive", text = source(21)
        try withSetting("cache", folder) {
            let function = try KernelLibrary(text).function("f")
            XCTAssertTrue(mrt_function_archive(function.handle, archive, nil))
        }
        for path in try files(".so") + files(".library") { try FileManager.default.removeItem(atPath: path) }
        try withSetting("cache", folder) { XCTAssertEqual(try compiles { try check(text, 21) }, 0) }
    }

    func testAMissingCompilerIsSaidClearly() throws {
        try withSetting("clang", "/nowhere/clang++") {
            XCTAssertThrowsError(try KernelLibrary(source(23))) {
                XCTAssertEqual("\($0)", "program_source: error: the setting clang names \"/nowhere/clang++\", which is not a program")
            }
        }
    }
}
