import CTestSupport
import Foundation
import MetalRuntime
import XCTest

/// Device memory: poison, separation, limits, and the quarantine of freed addresses.
final class MemoryTests: XCTestCase {
    private static let guardBytes = 64 << 10

    func testFreshMemoryIsNotANumberInEveryType() {
        let buffer = TestBuffer(length: 1001)
        let bytes = UnsafeRawPointer(buffer.address)
        for offset in stride(from: 0, to: 990, by: 2) {
            XCTAssertTrue(bytes.loadUnaligned(fromByteOffset: offset, as: Float.self).isNaN)
            let bits = bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)
            XCTAssertTrue(bits & 0x7c00 == 0x7c00 && bits & 0x03ff != 0, "half at \(offset)")
            XCTAssertTrue(bits & 0x7f80 == 0x7f80 && bits & 0x007f != 0, "bfloat at \(offset)")
        }
    }

    func testPoisonCanBeSwitchedOff() {
        withSetting("poison", "0") {
            XCTAssertEqual(TestBuffer(length: 4096).array(UInt8.self), [UInt8](repeating: 0, count: 4096))
        }
    }

    func testFreshAgainIsPoisonedAgain() {
        let buffer = TestBuffer([UInt32](repeating: 5, count: 64))
        mrt_memory_mark_fresh(buffer.address + 16, 32)
        XCTAssertEqual(buffer.array(UInt32.self), (0..<64).map { (4..<12).contains($0) ? 0xffe9_ffe9 : 5 })
    }

    func testAllocationsAreAlignedAndFarApart() {
        let page = Int(getpagesize())
        let buffers = [1, 16, page - 1, page, page + 1, 1 << 20, 3].map { TestBuffer(length: $0) }
        let ranges = buffers.map { (begin: Int(bitPattern: $0.address), end: Int(bitPattern: $0.address) + $0.length) }
            .sorted { $0.begin < $1.begin }
        for range in ranges { XCTAssertEqual(range.begin % page, 0) }
        for (one, next) in zip(ranges, ranges.dropFirst()) {
            XCTAssertGreaterThanOrEqual(next.begin - one.end, Self.guardBytes)
        }
    }

    func testNothingIsMappedBetweenAllocations() throws {
        let page = Int(getpagesize())
        let buffer = TestBuffer(length: page)
        for offset in [-Self.guardBytes, -1, page, Self.guardBytes] {
            // For write(2), the operating system copies from the address, and returns EFAULT if it can't.
            let pipe = Pipe()
            let written = write(pipe.fileHandleForWriting.fileDescriptor, buffer.address + offset, 1)
            XCTAssertEqual(written, -1, "offset \(offset)")
            XCTAssertEqual(errno, EFAULT, "offset \(offset)")
        }
    }

    func testLiveBytesCountWhatIsAllocated() {
        let before = mrt_memory_live_bytes()
        let one = mrt_memory_allocate(1000, "one")!, other = mrt_memory_allocate(24, nil)!
        XCTAssertEqual(mrt_memory_live_bytes(), before + 1024)
        mrt_memory_free(one)
        XCTAssertEqual(mrt_memory_live_bytes(), before + 24)
        mrt_memory_free(other)
        mrt_memory_free(other)  // already unknown: has no effect
        mrt_memory_free(nil)
        XCTAssertEqual(mrt_memory_live_bytes(), before)
    }

    func testTheLimitHolds() {
        let limit = mrt_memory_live_bytes() + 10_000
        withSetting("memory_limit", String(limit)) {
            let within = mrt_memory_allocate(10_000, "within")
            XCTAssertNotNil(within)
            XCTAssertNil(mrt_memory_allocate(1, "over"))
            mrt_memory_free(within)
            XCTAssertNil(mrt_memory_allocate(10_001, "over"))
        }
        XCTAssertNil(mrt_memory_allocate(0, "empty"))
        XCTAssertNil(mrt_memory_allocate(.max, "absurd"))
    }

    func testAFreedAddressIsNotReusedSoon() {
        let stale = mrt_memory_allocate(4096, "stale")!
        mrt_memory_free(stale)
        for _ in 0..<1000 {
            let next = mrt_memory_allocate(4096, "next")!
            XCTAssertNotEqual(next, stale)
            mrt_memory_free(next)
        }
    }

    func testManyAllocationsLeaveTheProcessFlat() {
        func churn(_ count: Int) {
            for index in 0..<count { mrt_memory_free(mrt_memory_allocate(1 + index % 50_000, "churn")) }
        }
        churn(10_000)  // fills the quarantine
        assertFlat(heap: 100_000, resident: 16 << 20) { churn(400_000) }  // one page for each would take 1.6 GB
    }

    func testWrappedMemoryStaysTheCallers() {
        let before = mrt_memory_live_bytes()
        let own = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 16)
        own.initializeMemory(as: UInt8.self, repeating: 9, count: 256)
        XCTAssertEqual(mrt_memory_wrap(own, 256, "own"), own)
        XCTAssertEqual(mrt_memory_live_bytes(), before)
        mrt_memory_free(own)
        XCTAssertEqual(own.load(fromByteOffset: 255, as: UInt8.self), 9)
        own.deallocate()
    }

    func testThreadsAllocateAtOnce() {
        let before = mrt_memory_live_bytes()
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var held: [UnsafeMutableRawPointer] = []
            for index in 0..<200 {
                let pointer = mrt_memory_allocate(100 + index, "thread \(thread)")!
                pointer.storeBytes(of: UInt64(thread * 1000 + index), as: UInt64.self)
                held.append(pointer)
            }
            for (index, pointer) in held.enumerated() {
                XCTAssertEqual(pointer.load(as: UInt64.self), UInt64(thread * 1000 + index))
                mrt_memory_free(pointer)
            }
        }
        XCTAssertEqual(mrt_memory_live_bytes(), before)
    }
}

/// Runs the body and asserts that afterwards at most this many more bytes are allocated and resident. The number of
/// allocated bytes is exact, except for one-time allocations; resident bytes include mapped pages, and memory that
/// malloc keeps. Fails only if all attempts grow: one-time allocations may come late.
func assertFlat(
    heap: Int, resident: Int, attempts: Int = 1, file: StaticString = #filePath, line: UInt = #line,
    _ body: () throws -> Void
) rethrows {
    var heapGrowth = 0, residentGrowth = 0
    for _ in 0..<attempts {
        let heapBefore = Int(heap_bytes()), residentBefore = residentBytes()
        try body()
        heapGrowth = Int(heap_bytes()) - heapBefore
        residentGrowth = residentBytes() - residentBefore
        if heapGrowth < heap && residentGrowth < resident { return }
    }
    XCTAssertLessThan(heapGrowth, heap, "allocated from the heap", file: file, line: line)
    XCTAssertLessThan(residentGrowth, resident, "resident", file: file, line: line)
}

/// The process's resident memory, as counted by the system.
func residentBytes() -> Int {
    let fields = try! String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return Int(fields[1])! * Int(getpagesize())
}
