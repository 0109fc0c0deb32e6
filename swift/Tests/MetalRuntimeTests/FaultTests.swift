import Foundation
import MetalRuntime
import XCTest

/// Kernels that fail: each ends with an error that says what happened, and the process and later dispatches continue.
final class FaultTests: XCTestCase {
    private static let source = """
        kernel void far(device uint *y [[buffer(0)]], constant long &offset [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          if (i == 7) y[offset] = 1;
          else y[i] = i;
        }
        kernel void fetch(device uint *y [[buffer(0)]], device const uint *x [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          y[i] = x[i];
        }
        kernel void forever(device volatile uint *y [[buffer(0)]]) { for (uint k = 0; y[0] != 5; k++) y[1] = k; }
        kernel void forever_at_barriers(device volatile uint *y [[buffer(0)]]) {
          while (y[0] != 5) threadgroup_barrier(mem_flags::mem_device);
        }
        kernel void forever_in_sums(device volatile uint *y [[buffer(0)]]) {
          while (y[0] != 5) y[1] = simd_sum(1u);
        }
        kernel void await(device atomic_uint *flag [[buffer(0)]], uint group [[threadgroup_position_in_grid]]) {
          if (group == 0) while (atomic_load_explicit(flag, memory_order_relaxed) == 0) {}
          else atomic_store_explicit(flag, 1, memory_order_relaxed);
        }
        kernel void lock(device atomic_uint *flag [[buffer(0)]]) {
          while (atomic_exchange_explicit(flag, 1, memory_order_relaxed) != 0) {}
        }
        kernel void count(device atomic_uint *flag [[buffer(0)]], constant uint &times [[buffer(1)]]) {
          for (uint i = 0; i < times; i++) atomic_fetch_add_explicit(flag, 1, memory_order_relaxed);
        }
        kernel void divide(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], \
        device int *q [[buffer(2)]], device int *r [[buffer(3)]],
                           uint i [[thread_position_in_grid]]) {
          q[i] = a[i] / b[i];
          r[i] = a[i] % b[i];
        }
        kernel void divide_small(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]], \
        device uchar *q [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) { q[i] = a[i] / b[i]; }
        kernel void divide_large(device const ulong *a [[buffer(0)]], device const ulong *b [[buffer(1)]], \
        device ulong *q [[buffer(2)]],
                                 uint i [[thread_position_in_grid]]) { q[i] = a[i] / b[i]; }
        kernel void wide(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          volatile uint frame[100 << 10];
          frame[y[0]] = i;
          y[i + 1] = frame[y[0]];
        }
        kernel void narrow(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          volatile uint frame[50 << 10];
          frame[y[0]] = i;
          y[i + 1] = frame[y[0]];
        }
        kernel void endless_sum(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          while (true) { y[i % 2] += 1; }
        }
        kernel void endless(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          for (uint k = 0; k < 2 || y[0] != 5; k++) {}
          y[1] = 1;
        }
        uint positive(uint x) { if (x < 5) return x; }
        kernel void falls_off(device uint *y [[buffer(0)]]) { uint x = positive(y[0]); y[1] = 5; y[0] = x; }
        """
    private static let library = Result { try KernelLibrary(source) }
    /// A program that MSL rejects, and that runs if the strict pass is off.
    private static let recursive = Result {
        try withSetting("strict", "0") {
            try KernelLibrary(
                """
                template <typename N> uint depth(N n, device uint *y) {
                  volatile uint frame[64];
                  frame[n % 64] = n;
                  return n == y[0] ? 0 : depth(n + 1, y) + frame[n % 64];
                }
                kernel void deep(device uint *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
                  y[i + 1] = depth(1u, y);
                }
                """)
        }
    }
    private func function(_ name: String) throws -> KernelFunction {
        try (name == "deep" ? Self.recursive : Self.library).get().function(name)
    }

    override func setUp() { _ = takeFindings() }

    /// After every fault, a normal dispatch must still work.
    override func tearDown() {
        _ = takeFindings()
        let x = TestBuffer((0..<256).map { UInt32($0) }), y = TestBuffer(length: 1024)
        XCTAssertNoThrow(try function("fetch").run([y, x], grid: 256, group: 64))
        XCTAssertEqual(y.array(UInt32.self), x.array(UInt32.self))
    }

    /// Runs a dispatch that must fail with `result`, and returns its message.
    private func failure(
        _ name: String, _ buffers: [TestBuffer], grid: Int = 64, group: Int = 32, result: mrt_result,
        file: StaticString = #filePath, line: UInt = #line
    ) throws -> String {
        var text = ""
        XCTAssertThrowsError(try function(name).run(buffers, grid: grid, group: group), file: file, line: line) {
            text = "\($0)"
        }
        XCTAssertTrue(text.hasPrefix("result \(result.rawValue): kernel '\(name)'"), text, file: file, line: line)
        return text
    }

    // MARK: Page faults

    func testAWriteBetweenBuffersIsAPageFault() throws {
        let length = Int(getpagesize())
        let y = TestBuffer(length: length, label: "weights")
        let text = try failure("far", [y, TestBuffer([Int64(length / 4 + 3)])], result: MRT_RESULT_PAGE_FAULT)
        XCTAssertTrue(text.contains("thread (7, 0, 0) of threadgroup (0, 0, 0)"), text)
        XCTAssertTrue(text.contains("wrote to address 0x"), text)
        XCTAssertTrue(text.contains("12 bytes past the end of buffer 'weights' (\(length) bytes)"), text)
        let findings = takeFindings()
        XCTAssertEqual(findings.map(\.kind), ["page-fault"])
        XCTAssertEqual(findings.first?.kernel, "far")
        XCTAssertEqual(findings.first?.thread, [7, 0, 0])
    }

    func testAddressesFarAwayAndBeforeABuffer() throws {
        let y = TestBuffer(length: 4096, label: "y")
        let before = try failure("far", [y, TestBuffer([Int64(-1)])], result: MRT_RESULT_PAGE_FAULT)
        XCTAssertTrue(before.contains("4 bytes before buffer 'y'"), before)
        let wild = try failure("far", [y, TestBuffer([Int64(1) << 60])], result: MRT_RESULT_PAGE_FAULT)
        XCTAssertTrue(wild.contains("an address that no memory can have"), wild)
    }

    func testAFreedBufferFaultsAndIsNamed() throws {
        let y = TestBuffer(length: 4096)
        let stale = mrt_memory_allocate(4096, "stale")!
        let offset = (Int(bitPattern: stale) - Int(bitPattern: y.address)) / 4
        mrt_memory_free(stale)
        let text = try failure("far", [y, TestBuffer([Int64(offset + 2)])], result: MRT_RESULT_PAGE_FAULT)
        XCTAssertTrue(text.contains("byte 8 of buffer 'stale' (4096 bytes, freed)"), text)
    }

    func testAnUnboundBufferIsANullPointer() throws {
        let text = try failure("fetch", [TestBuffer(length: 256)], result: MRT_RESULT_PAGE_FAULT)
        XCTAssertTrue(text.contains("read from"), text)
        XCTAssertTrue(text.contains("a buffer that is not bound"), text)
    }

    func testTheInstrumentedBuildTellsTheLine() throws {
        _ = try withSetting("check", "1") {
            try failure("fetch", [TestBuffer(length: 256)], grid: 1, group: 1, result: MRT_RESULT_PAGE_FAULT)
        }
        let fault = takeFindings().first { $0.kind == "page-fault" }
        XCTAssertEqual(fault?.line, 6)
    }

    // MARK: Stacks

    func testRecursionWithoutEndIsAStackOverflow() throws {
        let text = try failure(
            "deep", [TestBuffer([UInt32](repeating: 0, count: 65))], result: MRT_RESULT_STACK_OVERFLOW)
        XCTAssertTrue(text.contains("used up its stack of 256 KiB"), text)
        XCTAssertEqual(takeFindings().map(\.kind), ["stack-overflow"])
        let y = TestBuffer([UInt32(100)] + [UInt32](repeating: 0, count: 64))
        try function("deep").run([y], grid: 64, group: 32)
        XCTAssertEqual(y.array(UInt32.self)[1], (1..<100).reduce(0, +))
    }

    /// The only element that is used is beyond the stack's guard, in the stack of another thread.
    func testAFrameThatPassesOverTheGuardIsAStackOverflow() throws {
        for check in ["0", "1"] {
            try withSetting("check", check) {
                let text = try failure(
                    "wide", [TestBuffer([UInt32](repeating: 0, count: 65))], result: MRT_RESULT_STACK_OVERFLOW)
                XCTAssertTrue(text.contains("used up its stack of 256 KiB"), text)
                XCTAssertEqual(takeFindings().map(\.kind), ["stack-overflow"])
                let y = TestBuffer([UInt32](repeating: 0, count: 65))
                try function("narrow").run([y], grid: 64, group: 32)
                XCTAssertEqual(y.array(UInt32.self), [0] + (0..<64).map { UInt32($0) })
            }
        }
    }

    // MARK: Time

    private func assertTimesOut(_ name: String, check: Bool = false) throws {
        try withSetting("timeout_ms", "150") {
            try withSetting("check", check ? "1" : "0") {
                let y = TestBuffer([UInt32(0), 0])
                let begin = Date()
                let text = try failure(name, [y], result: MRT_RESULT_TIMEOUT)
                XCTAssertTrue(text.contains("ran longer than 150 ms"), text)
                XCTAssertGreaterThan(Date().timeIntervalSince(begin), 0.149)
                XCTAssertTrue(takeFindings().map(\.kind).contains("timeout"))
            }
        }
    }

    func testAnInfiniteLoopEnds() throws { try assertTimesOut("forever") }
    func testAnInfiniteLoopEndsUnderTheChecker() throws { try assertTimesOut("forever", check: true) }
    /// Loops that clang may assume to be finite or to have no effect: they must neither end nor run past their
    /// function.
    func testALoopThatNeverEndsIsATimeout() throws { try assertTimesOut("endless_sum") }
    func testALoopThatNeverEndsIsATimeoutUnderTheChecker() throws { try assertTimesOut("endless_sum", check: true) }
    func testALoopWithoutAnEffectIsATimeout() throws { try assertTimesOut("endless") }
    func testAFunctionWithoutItsReturnGoesOn() throws {
        let y = TestBuffer([UInt32(7), 0])
        try function("falls_off").run([y], grid: 1, group: 1)
        XCTAssertEqual(y.array(UInt32.self)[1], 5)
    }
    func testAnInfiniteLoopOfBarriersEnds() throws { try assertTimesOut("forever_at_barriers") }
    func testAnInfiniteLoopOfSimdOperationsEnds() throws { try assertTimesOut("forever_in_sums") }

    func testAWaitForAnotherThreadgroupIsFound() throws {
        try withSetting("seed", "0") {
            try withSetting("spin_limit", "10000") {
                let text = try failure("await", [TestBuffer([UInt32(0)])], result: MRT_RESULT_TIMEOUT)
                XCTAssertTrue(text.contains("waits in a loop"), text)
                let findings = takeFindings()
                XCTAssertEqual(findings.map(\.kind), ["spin-wait"])
                XCTAssertEqual(findings.first?.line, 16)
                XCTAssertEqual(findings.first?.threadgroup, [0, 0, 0])
                _ = try failure("lock", [TestBuffer([UInt32(1)])], result: MRT_RESULT_TIMEOUT)
            }
        }
    }

    func testAnAtomicThatChangesIsNoWait() throws {
        let total = TestBuffer([UInt32(0)])
        try withSetting("spin_limit", "1000") {
            _ = try function("count").run([total, TestBuffer([UInt32(5000)])], grid: 4, group: 4)
        }
        XCTAssertEqual(total.array(UInt32.self), [20_000])
        XCTAssertEqual(takeFindings().map(\.kind), [])
    }

    // MARK: Division

    /// The quotient of a division by zero is unspecified (here the dividend), and nothing else may happen.
    func testIntegerDivisionByZeroGoesOn() throws {
        let a: [Int32] = [7, 7, .min, .min, -9], b: [Int32] = [2, 0, -1, 0, 4]
        let q = TestBuffer(length: 20), r = TestBuffer(length: 20)
        try function("divide").run([TestBuffer(a), TestBuffer(b), q, r], grid: 5, group: 5)
        XCTAssertEqual(q.array(Int32.self), [3, 7, .min, .min, -2])
        XCTAssertEqual(r.array(Int32.self), [1, 0, 0, 0, -1])
        let small = TestBuffer(length: 4)
        try function("divide_small").run(
            [TestBuffer([100, 5, 200, 249] as [UInt8]), TestBuffer([7, 0, 2, 0] as [UInt8]), small], grid: 4, group: 4)
        XCTAssertEqual(small.array(UInt8.self), [14, 5, 100, 249])
        let large = TestBuffer(length: 24)
        try function("divide_large").run(
            [TestBuffer([.max, 9, 1 << 40] as [UInt64]), TestBuffer([3, 0, 1 << 20] as [UInt64]), large], grid: 3,
            group: 3)
        XCTAssertEqual(large.array(UInt64.self), [UInt64.max / 3, 9, 1 << 20])
    }

    // MARK: Many

    func testFaultsLeaveNothingBehind() throws {
        let y = TestBuffer([UInt32](repeating: 0, count: 65)), far = TestBuffer([Int64(1) << 30])
        func run(_ count: Int) throws {
            for _ in 0..<count {
                _ = try failure("far", [y, far], grid: 256, group: 64, result: MRT_RESULT_PAGE_FAULT)
                _ = try failure("deep", [y], result: MRT_RESULT_STACK_OVERFLOW)
            }
        }
        try run(50)
        let memory = residentBytes(), threads = threadCount()
        try run(300)
        XCTAssertLessThan(residentBytes() - memory, 1 << 20)
        // If each of the 600 faults leaked a thread, the count would show it; dispatch queues of a busy machine add a
        // few.
        XCTAssertLessThan(threadCount(), threads + 100)
    }

    func testFaultsOfOneThreadDoNotTouchDispatchesOfOthers() throws {
        let far = TestBuffer([Int64(1) << 30]), x = TestBuffer((0..<1024).map { UInt32($0) })
        let good = try function("fetch"), bad = try function("far")
        func runGood() {
            let y = TestBuffer(length: 4096)
            XCTAssertNoThrow(try good.run([y, x], grid: 1024, group: 64))
            XCTAssertEqual(y.array(UInt32.self), x.array(UInt32.self))
        }
        func runBad() {
            XCTAssertThrowsError(try bad.run([TestBuffer(length: 4096), far], grid: 1024, group: 64))
        }
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for _ in 0..<50 { if thread % 2 == 0 { runGood() } else { runBad() } }
        }
    }
}
