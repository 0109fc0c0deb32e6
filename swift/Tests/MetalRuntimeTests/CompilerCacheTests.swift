import Foundation
import MetalRuntime
import XCTest

/// The cache of compiled kernels: hits, damaged files, unusable folders, several processes.
final class CompilerCacheTests: CacheTestCase {
    func testTheSecondTimeNothingIsCompiled() throws {
        try withSetting("cache", folder) {
            XCTAssertEqual(try compiles { try check(source(3), 3) }, 1)
            XCTAssertEqual(try compiles { try check(source(3), 3) }, 0)
            XCTAssertEqual(try files(".so").count, 1)
        }
    }

    /// A compiler that may run for a millisecond only can't report anything, so the errors come from the file.
    func testTheErrorsOfARejectedProgramAreKept() throws {
        let illegal = "kernel void f(device float *y) { float4 v = y[0]; thread float *q = &v.y; y[1] = *q; }"
        let errors = { () -> String in
            do { return try String(describing: KernelLibrary(illegal)) } catch { return String(describing: error) }
        }
        try withSetting("cache", folder) {
            let ended = withSetting("compile_timeout_ms", "1") { errors() }
            XCTAssertFalse(ended.contains("address of vector element"), ended)
            XCTAssertEqual(try files(".errors"), [], "another run may succeed")
            let first = errors()
            XCTAssertTrue(first.contains("address of vector element"), first)
            XCTAssertEqual(try files(".errors").count, 1)
            XCTAssertEqual(withSetting("compile_timeout_ms", "1") { errors() }, first)
        }
    }

    /// The rewriter finds the recursion, which the compiler of the program that runs would accept.
    func testAProgramThatTheRewriterRejectsIsNotCompiled() throws {
        let recursive = """
            float descend(float x) { return x > 0 ? descend(x - 1) : x; }
            kernel void f(device float *y) { y[0] = descend(y[0]); }
            """
        try withSetting("cache", folder) {
            XCTAssertEqual(try compiles { XCTAssertThrowsError(try KernelLibrary(recursive)) }, 0)
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

    /// Root may write where the mode forbids it, but nobody can create a file in a process's descriptor folder.
    func testAReadOnlyFolderIsReplacedByATemporaryOne() throws {
        chmod(folder, 0o555)
        let readOnly = getuid() == 0 ? "/proc/self/fd" : folder
        XCTAssertFalse(FileManager.default.createFile(atPath: readOnly + "/probe", contents: Data()))
        try withSetting("cache", readOnly) {
            XCTAssertEqual(try compiles { try check(source(11), 11) }, 1)
            XCTAssertEqual(try compiles { try check(source(11), 11) }, 0, "the temporary folder keeps it")
        }
    }

    /// A limit on file sizes simulates a full disk: one large kernel does not fit, and later there is space again.
    func testAFullDisk() throws {
        let large =
            "constant float table[100000] = {1, 2};\nkernel void f(device float *y) { y[0] = table[int(y[0])]; }"
        let run = { (y: TestBuffer) in _ = try KernelLibrary(large).function("f").run([y], grid: 1, group: 1) }
        if let shared = Self.argument {
            var limit = rlimit()
            signal(SIGXFSZ, SIG_IGN)
            getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            var full = limit
            full.rlim_cur = 128 << 10
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &full)
            try withSetting("cache", shared) {
                XCTAssertThrowsError(try run(TestBuffer([Float(1)]))) { print("said: \($0)") }
                setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
                let y = TestBuffer([Float(1)])
                try run(y)
                XCTAssertEqual(y.array(Float.self), [2])
            }
            return
        }
        let pipe = Pipe()
        let process = try child("testAFullDisk", argument: folder, output: pipe)
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        XCTAssertEqual(process.terminationStatus, 0, output)
        XCTAssertTrue(output.contains("orchard: the folder of compiled kernels \(folder) can't be used"), output)
        XCTAssertTrue(output.contains("said: program_source: error: the compiled kernels could not be written"), output)
        XCTAssertEqual(
            try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                !$0.hasPrefix("prelude-") && !$0.hasSuffix(".library")
            }, [])
    }

    func testNoCacheAtAll() throws {
        try withSetting("cache", "") { try check(source(13), 13) }
        XCTAssertEqual(try files(".so"), [])
    }

    /// A killed process runs no handlers, and neither does one that ends by `_exit`, as some programs do.
    func testATemporaryFolderIsRemovedOnceItsProcessHasEnded() throws {
        if let base = Self.argument {
            setenv("TMPDIR", base, 1)
            try withSetting("cache", "") { try check(source(14), 14) }
            if ProcessInfo.processInfo.environment["ORCHARD_TEST_STAYS"] != nil {
                print("ready")
                fflush(stdout)
                while true { pause() }
            }
            return
        }
        let base = folder + "/temporary"
        try FileManager.default.createDirectory(
            atPath: base + "/orchard-kernels-new", withIntermediateDirectories: true)
        let folders = {
            try FileManager.default.contentsOfDirectory(atPath: base).filter { $0 != "orchard-kernels-new" }
        }
        let name = "testATemporaryFolderIsRemovedOnceItsProcessHasEnded"
        setenv("ORCHARD_TEST_STAYS", "1", 1)
        let stays = try (0..<2).map { _ in
            let pipe = Pipe()
            let process = try child(name, argument: base, output: pipe)
            while !String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self).contains("ready") {}
            return process
        }
        unsetenv("ORCHARD_TEST_STAYS")
        XCTAssertEqual(try folders().count, 2)
        let ends = {
            let process = try self.child(name, argument: base)
            process.waitUntilExit()
            XCTAssertEqual(process.terminationStatus, 0)
        }
        try ends()
        XCTAssertEqual(try folders().count, 2, "those of processes that live stay, and its own is gone")
        for process in stays {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            try ends()
        }
        XCTAssertEqual(try folders(), [])
        XCTAssertTrue(FileManager.default.fileExists(atPath: base + "/orchard-kernels-new"), "may be in the making")
        try FileManager.default.setAttributes(
            [.modificationDate: Date() - 7200], ofItemAtPath: base + "/orchard-kernels-new")
        try ends()
        XCTAssertFalse(FileManager.default.fileExists(atPath: base + "/orchard-kernels-new"))
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
            XCTAssertEqual(
                try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("new-") }, [])
        }
    }

    func testTwoProcessesShareTheFolder() throws {
        if let shared = Self.argument {
            return try withSetting("cache", shared) {
                for number in 0..<3 { try check(source(number, "shared"), Float(number)) }
            }
        }
        let processes = try (0..<2).map { _ in try child("testTwoProcessesShareTheFolder", argument: folder) }
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
                XCTAssertEqual(
                    "\($0)",
                    "program_source: error: the setting clang names \"/nowhere/clang++\", which is not a program")
            }
        }
    }
}
