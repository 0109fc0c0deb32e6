import Foundation
import MetalRuntime
import XCTest

/// The size limit on the folder of compiled kernels: which files are removed, which are kept, and several processes at
/// once.
final class CacheLimitTests: CacheTestCase {
    private func names() throws -> Set<String> { Set(try FileManager.default.contentsOfDirectory(atPath: folder)) }

    private func bytes(_ names: some Sequence<String>) throws -> Int {
        try names.reduce(0) {
            try $0 + ((FileManager.default.attributesOfItem(atPath: folder + "/" + $1)[.size] as? Int) ?? 0)
        }
    }

    private func lastUse(_ names: some Sequence<String>, _ date: Date) throws {
        for name in names {
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: folder + "/" + name)
        }
    }

    /// Returns the files that compiling a source adds.
    @discardableResult
    private func compile(_ number: Int, _ label: String = #function) throws -> Set<String> {
        let before = try names()
        try check(source(number, label), Float(number))
        return try names().subtracting(before)
    }

    private func limited<T>(_ limit: Int, _ body: () throws -> T) throws -> T {
        try withSetting("cache", folder) { try withSetting("cache_limit", String(limit), body) }
    }

    func testTheLeastRecentlyUsedGoFirst() throws {
        let compiled = try limited(0) { try (0..<4).map { try compile($0) } }
        for (number, files) in compiled.enumerated() {
            XCTAssertEqual(files.count, 2, "the kernel, and what is known of its library")
            try lastUse(files, Date(timeIntervalSinceNow: Double(number - 100)))
        }
        let total = try bytes(names())
        try limited(total) {
            XCTAssertEqual(try compiles { try check(source(0), 0) }, 0, "the oldest is used again")
            let fresh = try compile(9)
            XCTAssertTrue(try names().isDisjoint(with: compiled[1]), "the least recently used one is evicted")
            XCTAssertTrue(try names().isSuperset(of: compiled[0].union(compiled[3]).union(fresh)))
            XCTAssertLessThanOrEqual(try bytes(names()), total)
            XCTAssertEqual(try compiles { try check(source(1), 1) }, 1)
        }
    }

    func testWithoutALimitNothingGoes() throws {
        let compiled = try limited(0) { try (0..<2).map { try compile($0) } }
        for files in compiled { try lastUse(files, .distantPast) }
        let added = try limited(0) { try compile(2) }
        XCTAssertTrue(try names().isSuperset(of: compiled[0].union(compiled[1]).union(added)))
    }

    func testAFileInUseStays() throws {
        let compiled = try limited(0) { try (0..<2).map { try compile($0) } }
        let used = try XCTUnwrap(compiled[0].first { $0.hasSuffix(".so") })
        let file = open(folder + "/" + used, O_RDONLY)
        XCTAssertEqual(flock(file, LOCK_SH), 0)
        _ = try limited(1) { try compile(2) }
        XCTAssertTrue(try names().contains(used))
        XCTAssertTrue(try names().isDisjoint(with: compiled[1]))
        close(file)
        _ = try limited(1) { try compile(3) }
        XCTAssertFalse(try names().contains(used))
    }

    func testOnlyTheCachesOwnFilesGo() throws {
        let own = String(repeating: "0123456789abcdef", count: 2) + ".so", left = "new-1-0.o"
        let foreign = ["notes.txt", "library.so", "0123.so", "new-2-0.o", "preludes.pch"]
        for name in foreign + [own, left] {
            XCTAssertTrue(FileManager.default.createFile(atPath: folder + "/" + name, contents: Data([1])))
        }
        try FileManager.default.createDirectory(
            atPath: folder + "/" + own.replacingOccurrences(of: "0", with: "f"), withIntermediateDirectories: true)
        try lastUse(foreign.filter { $0 != "new-2-0.o" } + [own, left], Date(timeIntervalSinceNow: -7200))
        _ = try limited(1) { try compile(1) }
        XCTAssertTrue(try names().isSuperset(of: foreign), "what others put there, and what is being written")
        XCTAssertTrue(
            try names().isDisjoint(with: [own, left]), "what is ours, and what a process that was killed left")
    }

    /// There is room for the standard library and two of three kernels, so each process keeps removing the other's
    /// files.
    func testTwoProcessesShareAFolderThatIsTooSmall() throws {
        if let words = Self.argument?.split(separator: " ") {
            return try withSetting("cache", String(words[1])) {
                try withSetting("cache_limit", String(words[0])) {
                    for round in 0..<12 { try check(source(round % 3, "small"), Float(round % 3)) }
                }
            }
        }
        _ = try limited(1) { try compile(0) }  // removes the standard library's files for other builds
        _ = try limited(0) { try compile(1) }
        let limit = try bytes(names())
        let processes = try (0..<2).map { _ in
            try child("testTwoProcessesShareAFolderThatIsTooSmall", argument: "\(limit) \(folder)")
        }
        for process in processes {
            process.waitUntilExit()
            XCTAssertEqual(process.terminationStatus, 0)
        }
        XCTAssertLessThanOrEqual(
            try bytes(
                limited(limit) {
                    try compile(2); return try names()
                }), limit)
        XCTAssertEqual(try names().filter { $0.hasPrefix("new-") }, [])
    }
}
