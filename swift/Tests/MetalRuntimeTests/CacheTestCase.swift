import Foundation
import MetalRuntime
import XCTest

/// A separate folder of compiled kernels for each test, which contains the standard library.
class CacheTestCase: XCTestCase {
    var folder = ""

    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "/orchard-cache-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        // Avoids compiling the standard library again.
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

    func source(_ number: Int, _ label: String = #function) -> String {
        "// \(label)\nkernel void f(device float *y) { y[0] = \(number); }"
    }

    func check(_ source: String, _ expected: Float, file: StaticString = #filePath, line: UInt = #line) throws {
        let y = TestBuffer(length: 4)
        try KernelLibrary(source).function("f").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(Float.self), [expected], file: file, line: line)
    }

    func compiles(_ body: () throws -> Void) rethrows -> UInt64 {
        let before = mrt_compile_stats_get().compiled
        try body()
        return mrt_compile_stats_get().compiled - before
    }

    func files(_ suffix: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter {
            $0.hasSuffix(suffix) && !$0.hasPrefix("prelude-")
        }.map { folder + "/" + $0 }
    }

    /// The argument from the parent process; nil if this is not a child.
    static var argument: String? { ProcessInfo.processInfo.environment["ORCHARD_TEST_CHILD"] }

    /// Runs this program again in a separate process, with one test of this class selected.
    func child(_ test: String, argument: String, output: Any = FileHandle.nullDevice) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["MetalRuntimeTests.\(Self.self)/\(test)"]
        process.environment = ProcessInfo.processInfo.environment.merging(["ORCHARD_TEST_CHILD": argument]) { $1 }
        process.standardOutput = output
        process.standardError = output
        try process.run()
        return process
    }
}
