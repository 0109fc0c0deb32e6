import COrchard
import XCTest

@testable import OrchardMetal

#if os(Linux)
@testable import Metal
#else
import Metal
#endif

final class ArchiveTests: XCTestCase {
    private var folder = ""

    override func setUpWithError() throws {
        folder = NSTemporaryDirectory() + "orchard-archive-\(UUID().uuidString)"
        let device = try XCTUnwrap(MTLCopyAllDevices().first)
        guard !PipelineArchive.isSupported(on: device) else { return }
        XCTAssertEqual(try start().statistics.archive_failures, 0)
        XCTAssertEqual(files(), [])
        throw XCTSkip("\(device.name) takes no pipeline archives, and none was written")
    }

    override func tearDown() {
        if ChildTest.argument == nil { try? FileManager.default.removeItem(atPath: folder) }
    }

    private func files() -> [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted() }

    private func archives(_ client: Client) throws -> ArchiveWriter {
        try HandleTable.shared.lookup(client.context, as: Context.self).archives
    }

    /// Opens a context, makes one pipeline, runs it, writes the archive, and closes; returns the statistics and the
    /// notes.
    private func start(_ function: String = "bump", in other: String? = nil) throws -> (
        statistics: orchard_statistics, notes: [String]
    ) {
        let client = try Client(cacheFolder: other ?? folder)
        let pipeline = try client.pipeline(client.library(Kernels.add), function)
        if function == "bump" {
            let buffer = try client.buffer([UInt32](repeating: 4, count: 32))
            try client.dispatch(pipeline, grid: (32, 1, 1), [binding(0, buffer, readWrite)])
            XCTAssertEqual(try client.read(buffer, 1, of: UInt32.self), [5])
        }
        try archives(client).flush()
        return try (client.statistics, XCTUnwrap(client.report()["notes"] as? [String]))
    }

    func testTheSecondStartHits() throws {
        let first = try start()
        XCTAssertEqual([first.statistics.archive_hits, first.statistics.pipelines_compiled], [0, 1])
        XCTAssertEqual(files().count, 1)
        let second = try start()
        XCTAssertEqual([second.statistics.archive_hits, second.statistics.pipelines_compiled], [1, 0])
        XCTAssertEqual(try start("add").statistics.archive_hits, 0, "another kernel of the library")
        XCTAssertEqual(try start("add").statistics.archive_hits, 1)
        XCTAssertEqual(try start().statistics.archive_hits, 1, "the first one is still there")
        XCTAssertEqual(files().count, 1)
        XCTAssertTrue(first.notes.isEmpty && second.notes.isEmpty)
    }

    func testManyPipelinesAreCompiledOnceEachAndWrittenTogether() throws {
        let names = ["bump", "add", "reverse"]
        let before = compilations
        let client = try Client(cacheFolder: folder)
        let library = try client.library(Kernels.add)
        for name in names + names { _ = try client.pipeline(library, name) }
        XCTAssertEqual(try client.statistics.archive_writes, 0, "nothing is written while pipelines are made")
        try archives(client).flush()
        try archives(client).flush()
        XCTAssertEqual([try client.statistics.archive_writes, try client.statistics.pipelines_compiled], [1, 3])
        if let before, let compilations { XCTAssertEqual(compilations - before, names.count) }
        try client.close()
        let second = try Client(cacheFolder: folder), again = try second.library(Kernels.add)
        for name in names { _ = try second.pipeline(again, name) }
        try archives(second).flush()
        XCTAssertEqual([try second.statistics.archive_writes, try second.statistics.archive_hits], [0, 3])
        if let before, let compilations { XCTAssertEqual(compilations - before, names.count) }
    }

    /// For the software device only: Apple's does not report it.
    private var compilations: Int? {
        #if os(Linux)
        return PipelineCompilations.count
        #else
        return nil
        #endif
    }

    func testWhatIsNewIsWrittenAfterAPauseAndOnClosing() throws {
        let client = try Client(cacheFolder: folder)
        try archives(client).pause = 0.01
        let library = try client.library(Kernels.add)
        _ = try client.pipeline(library, "bump")
        let deadline = Date(timeIntervalSinceNow: 300)
        while try client.statistics.archive_writes == 0, Date() < deadline { usleep(1000) }
        XCTAssertEqual(files().count, 1)
        try archives(client).pause = 3600
        _ = try client.pipeline(library, "add")
        try client.close()
        XCTAssertEqual(try start("add").statistics.archive_hits, 1)
    }

    func testAProcessThatEndsWritesWhatIsNew() throws {
        if let shared = ChildTest.argument {
            let client = try Client(cacheFolder: shared)
            _ = try client.pipeline(client.library(Kernels.add), "bump")
            withExtendedLifetime(client) { exit(0) }
        }
        let child = try ChildTest("ArchiveTests/testAProcessThatEndsWritesWhatIsNew", argument: folder)
        XCTAssertTrue(child.ends(within: 120), "the child hangs")
        XCTAssertEqual(try start().statistics.archive_hits, 1)
    }

    func testACorruptArchiveIsBuiltAnew() throws {
        _ = try start()
        let path = folder + "/" + (try XCTUnwrap(files().first))
        for damage in ["not an archive", ""] {
            try damage.write(toFile: path, atomically: true, encoding: .utf8)
            let damaged = try start()
            XCTAssertEqual(
                [
                    damaged.statistics.archive_rebuilds, damaged.statistics.archive_hits,
                    damaged.statistics.pipelines_compiled,
                ], [1, 0, 1])
            XCTAssertTrue(damaged.notes.contains { $0.contains(path) && $0.contains("built anew") }, "\(damaged.notes)")
            XCTAssertEqual(try start().statistics.archive_hits, 1)
        }
    }

    /// There is a file in place of the folder, so no user can write to it.
    func testAFolderThatCannotBeWrittenOnlyCostsTheCache() throws {
        try "".write(toFile: folder, atomically: true, encoding: .utf8)
        let outcome = try start()
        XCTAssertEqual([outcome.statistics.archive_failures, outcome.statistics.pipelines_compiled], [1, 1])
        XCTAssertTrue(outcome.notes.contains { $0.contains(folder) && $0.contains("not written") }, "\(outcome.notes)")
    }

    /// Root may write where the mode forbids it, but nobody can create a file in a process's descriptor folder, or on
    /// the sealed system volume.
    func testAReadOnlyFolderOnlyCostsTheCache() throws {
        #if os(Linux)
        let readOnly = "/proc/self/fd"
        #else
        let readOnly = "/System/Library"
        #endif
        let outcome = try start(in: readOnly)
        XCTAssertEqual([outcome.statistics.archive_failures, outcome.statistics.pipelines_compiled], [1, 1])
        XCTAssertTrue(
            outcome.notes.contains { $0.contains(readOnly) && $0.contains("not written") }, "\(outcome.notes)")
    }

    #if os(Linux)
    /// A limit on file sizes simulates a full disk, in a separate process. The kernels come from the software device's
    /// cache, which the first start has filled.
    func testAFullDiskOnlyCostsTheCache() throws {
        if let shared = ChildTest.argument {
            _ = try start()
            try FileManager.default.removeItem(atPath: folder)
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            limit.rlim_cur = 16
            XCTAssertEqual(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit), 0)
            let outcome = try start(in: shared)
            XCTAssertEqual([outcome.statistics.archive_failures, outcome.statistics.pipelines_compiled], [1, 1])
            return XCTAssertTrue(
                outcome.notes.contains { $0.contains(shared) && $0.contains("not written") }, "\(outcome.notes)")
        }
        let child = try ChildTest("ArchiveTests/testAFullDiskOnlyCostsTheCache", argument: folder)
        XCTAssertTrue(child.ends(within: 120), "the child hangs")
        XCTAssertTrue(child.endedWell, child.output)
        XCTAssertEqual(files(), [], "nothing half written is left")
        XCTAssertEqual(try start().statistics.archive_failures, 0, "and the next process writes it")
    }
    #endif

    func testManyAtOnceLeaveOneWholeArchive() throws {
        DispatchQueue.concurrentPerform(iterations: 6) { index in
            do { _ = try start(["bump", "add", "reverse"][index % 3]) } catch { XCTFail("\(error)") }
        }
        XCTAssertEqual(files().count, 1, "no temporary file is left: \(files())")
        XCTAssertEqual(try start().statistics.archive_rebuilds, 0)
    }

    func testProcessesShareTheFolder() throws {
        if let shared = ChildTest.argument {
            folder = shared
            for function in ["bump", "add", "reverse", "bump"] { _ = try start(function) }
            return
        }
        let children = try (0..<3).map { _ in
            try ChildTest("ArchiveTests/testProcessesShareTheFolder", argument: folder)
        }
        for child in children {
            XCTAssertTrue(child.ends(within: 120), "the child hangs")
            XCTAssertTrue(child.endedWell, child.output)
        }
        XCTAssertEqual(files().count, 1, "\(files())")
        let after = try start()
        XCTAssertEqual([after.statistics.archive_rebuilds, after.statistics.archive_failures], [0, 0])
    }
}
