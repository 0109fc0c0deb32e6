import Foundation
import MetalRuntime
import XCTest

/// Grids, orders, barriers, threadgroup memory and floating-point state.
final class ExecutionTests: XCTestCase {
    override func tearDown() { _ = takeFindings() }

    // MARK: Grids

    private static let builtins = """
        kernel void builtins(device uint *out [[buffer(0)]],
                             uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],
                             uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],
                             uint3 within [[thread_position_in_threadgroup]], uint3 size [[threads_per_threadgroup]],
                             uint3 full [[dispatch_threads_per_threadgroup]], uint index \
        [[thread_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]], uint width [[threads_per_simdgroup]]) {
          device uint *o = out + 26 * ((position.z * grid.y + position.y) * grid.x + position.x);
          uint3 triples[] = {position, grid, group, groups, within, size, full};
          for (uint i = 0; i < 7; i++)
            for (uint axis = 0; axis < 3; axis++) o[3 * i + axis] = triples[i][axis];
          o[21] = index;
          o[22] = lane;
          o[23] = simdgroup;
          o[24] = simdgroups;
          o[25] = width;
        }
        """

    /// The built-in values that every thread must see, computed from the sizes.
    private func expectedBuiltins(_ grid: [Int], _ full: [Int], _ position: [Int]) -> [Int] {
        let group: [Int] = zip(position, full).map { $0 / $1 }
        let local: [Int] = zip(position, full).map { $0 % $1 }
        let groups: [Int] = zip(grid, full).map { ($0 + $1 - 1) / $1 }
        let size: [Int] = (0..<3).map { min(full[$0], grid[$0] - group[$0] * full[$0]) }
        let index: Int = (local[2] * size[1] + local[1]) * size[0] + local[0]
        let simdgroups: Int = (size[0] * size[1] * size[2] + 31) / 32
        let triples: [[Int]] = [position, grid, group, groups, local, size, full]
        return triples.flatMap { $0 } + [index, index % 32, index / 32, simdgroups, 32]
    }

    func testEveryBuiltinInGridsWithUnevenEdges() throws {
        let function = try KernelLibrary(Self.builtins).function("builtins")
        let cases: [([Int], [Int])] = [
            ([100, 1, 1], [32, 1, 1]), ([7, 1, 1], [64, 1, 1]), ([33, 9, 1], [8, 8, 1]), ([10, 11, 5], [4, 3, 2]),
            ([1, 1, 70], [1, 1, 64]), ([1, 1, 1], [1, 1, 1]),
        ]
        for workers in ["1", "3"] {
            for (grid, full) in cases {
                let out = TestBuffer(length: grid[0] * grid[1] * grid[2] * 26 * 4)
                let counters = try withSetting("workers", workers) {
                    try function.run([out], grid: (grid[0], grid[1], grid[2]), group: (full[0], full[1], full[2]))
                }
                let values = out.array(UInt32.self).map(Int.init)
                for thread in 0..<grid[0] * grid[1] * grid[2] {
                    let position = [thread % grid[0], thread / grid[0] % grid[1], thread / grid[0] / grid[1]]
                    XCTAssertEqual(
                        Array(values[thread * 26..<thread * 26 + 26]), expectedBuiltins(grid, full, position),
                        "\(grid) \(full) \(position)")
                }
                XCTAssertEqual(Int(counters.threads), grid[0] * grid[1] * grid[2])
                let groups: [Int] = zip(grid, full).map { ($0 + $1 - 1) / $1 }
                XCTAssertEqual(Int(counters.threadgroups), groups.reduce(1, *))
            }
        }
    }

    func testAnEmptyGridRunsNothing() throws {
        let function = try KernelLibrary(Self.builtins).function("builtins")
        let counters = try function.run([TestBuffer(length: 16)], grid: (4, 0, 1), group: (4, 1, 1))
        XCTAssertEqual(counters.threads, 0)
    }

    func testADispatchThatIsNotToExecuteIsCheckedAndWritesNothing() throws {
        let function = try KernelLibrary(Self.builtins).function("builtins")
        let out = TestBuffer(Array(repeating: UInt8(7), count: 26 * 4))
        try withSetting("execute", "0") {
            _ = try function.run([out], grid: (1, 1, 1), group: (1, 1, 1))
            XCTAssertThrowsError(try function.run([out], grid: (1, 1, 1), group: (2000, 1, 1)))
        }
        XCTAssertEqual(out.array(UInt8.self), Array(repeating: 7, count: 26 * 4))
    }

    func testThreadgroupsBeyondTheLimitAreRefused() throws {
        let function = try KernelLibrary(Self.builtins).function("builtins")
        let out = TestBuffer(length: 16)
        for group in [(1025, 1, 1), (33, 32, 1), (0, 1, 1), (1 << 40, 1 << 40, 1)] {
            XCTAssertThrowsError(try function.run([out], grid: (4, 1, 1), group: group)) {
                XCTAssertTrue("\($0)".contains("result 4: a threadgroup"), "\($0)")
            }
        }
    }

    // MARK: Order

    private static let arrivals = """
        kernel void arrivals(device atomic_uint *count [[buffer(0)]], device uint *order [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
          order[atomic_fetch_add_explicit(count, 1, memory_order_relaxed)] = i;
        }
        """

    private func arrivalOrder(seed: Int, threads: Int, group: Int) throws -> [UInt32] {
        let function = try KernelLibrary(Self.arrivals).function("arrivals")
        return try withSetting("seed", String(seed)) {
            try withSetting("workers", "1") {
                let order = TestBuffer(length: threads * 4)
                try function.run([TestBuffer([UInt32(0)]), order], grid: threads, group: group)
                return order.array(UInt32.self)
            }
        }
    }

    func testTheOrderFollowsTheSeed() throws {
        let ascending = (0..<1000).map { UInt32($0) }
        XCTAssertEqual(try arrivalOrder(seed: 0, threads: 1000, group: 128), ascending)
        let orders = try (1...5).map { try arrivalOrder(seed: $0, threads: 1000, group: 128) }
        XCTAssertEqual(Set(orders).count, 5, "each seed has a different order")
        for order in orders {
            XCTAssertNotEqual(order, ascending)
            XCTAssertEqual(order.sorted(), ascending, "every thread runs once")
        }
        XCTAssertEqual(try arrivalOrder(seed: 3, threads: 1000, group: 128), orders[2])
    }

    func testThreadgroupsSimdgroupsAndLanesAreAllShuffled() throws {
        let order = try arrivalOrder(seed: 1, threads: 4096, group: 256).map(Int.init)
        XCTAssertNotEqual(order.map { $0 / 256 }.removingRepeats, Array(0..<16), "threadgroups")
        XCTAssertNotEqual(order.filter { $0 < 256 }.map { $0 / 32 }.removingRepeats, Array(0..<8), "SIMD-groups")
        XCTAssertNotEqual(order.filter { $0 < 32 }, Array(0..<32), "lanes")
        XCTAssertNotEqual(
            order.filter { $0 < 256 }, order.filter { (256..<512).contains($0) }.map { $0 - 256 }, "groups differ")
    }

    // MARK: Barriers

    func testBarriersExchangeThroughThreadgroupMemory() throws {
        let source = """
            kernel void reverse(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]], \
            threadgroup uint *tile [[threadgroup(0)]],
                                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]], uint n \
            [[threads_per_threadgroup]]) {
              for (uint round = 0; round < 3; round++) {
                tile[t] = x[i] + round;
                threadgroup_barrier(mem_flags::mem_threadgroup);
                y[i] = tile[n - 1 - t];
                threadgroup_barrier(mem_flags::mem_threadgroup);
              }
            }
            """
        let function = try KernelLibrary(source).function("reverse")
        let x = TestBuffer((0..<2000).map { UInt32($0) })
        for group in [1, 32, 100, 1024] {
            let y = TestBuffer(length: 8000)
            let counters = try function.run([x, y], grid: 2000, group: group, threadgroupLengths: [4096])
            let expected = (0..<2000).map { i -> UInt32 in
                let first = i / group * group, size = min(group, 2000 - first)
                return UInt32(first + size - 1 - (i - first) + 2)
            }
            XCTAssertEqual(y.array(UInt32.self), expected, "threadgroups of \(group)")
            XCTAssertEqual(Int(counters.barriers), 6 * ((2000 + group - 1) / group))
        }
    }

    func testThreadsThatEndedDoNotHoldUpABarrier() throws {
        let source = """
            kernel void ended(device uint *y [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
              threadgroup uint sum[1];
              if (t == 0) sum[0] = 0;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (t % 3 != 0) return;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              atomic_fetch_add_explicit((threadgroup atomic_uint *)sum, 1, memory_order_relaxed);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              y[t] = sum[0];
            }
            """
        let y = TestBuffer([UInt32](repeating: 7, count: 100))
        try KernelLibrary(source).function("ended").run([y], grid: 100, group: 100)
        XCTAssertEqual(y.array(UInt32.self), (0..<100).map { $0 % 3 == 0 ? 34 : 7 })
        XCTAssertEqual(takeFindings().map(\.kind), [])
    }

    private static let divergent = """
        kernel void divergent(device uint *y [[buffer(0)]], constant uint &limit [[buffer(1)]], \
        uint t [[thread_index_in_threadgroup]]) {
          if (t < limit) {
            threadgroup_barrier(mem_flags::mem_device);
            y[t] = 1;
          } else {
            threadgroup_barrier(mem_flags::mem_device);
            y[t] = 2;
          }
        }
        """

    func testADivergentBarrierFailsAndNamesBothLines() throws {
        let function = try KernelLibrary(Self.divergent).function("divergent")
        let y = TestBuffer([UInt32](repeating: 0, count: 64))
        XCTAssertThrowsError(try function.run([y, TestBuffer([UInt32(20)])], grid: 64, group: 64)) {
            XCTAssertTrue("\($0)".hasPrefix("result 4: kernel 'divergent'"), "\($0)")
        }
        let findings = takeFindings()
        XCTAssertEqual(findings.map(\.kind), ["barrier-divergence"])
        let finding = try XCTUnwrap(findings.first)
        XCTAssertEqual(Set([finding.line, finding.other_line]), [3, 6])
        XCTAssertTrue(finding.message.contains("all threads that have not ended must reach the same barrier"))
        let low = try XCTUnwrap(finding.line == 3 ? finding.thread : finding.other_thread)
        XCTAssertLessThan(low[0], 20)
    }

    func testUnderTheCheckerADivergentBarrierIsFoundAndTheDispatchGoesOn() throws {
        let y = TestBuffer([UInt32](repeating: 0, count: 64))
        _ = try withSetting("check", "1") {
            try KernelLibrary(Self.divergent).function("divergent").run(
                [y, TestBuffer([UInt32(20)])], grid: 64, group: 64)
        }
        XCTAssertEqual(y.array(UInt32.self), (0..<64).map { $0 < 20 ? 1 : 2 })
        XCTAssertEqual(takeFindings().map(\.kind), ["barrier-divergence"])
    }

    func testAUniformBranchIsNoDivergence() throws {
        let y = TestBuffer([UInt32](repeating: 0, count: 64))
        try KernelLibrary(Self.divergent).function("divergent").run([y, TestBuffer([UInt32(64)])], grid: 64, group: 64)
        XCTAssertEqual(y.array(UInt32.self), [UInt32](repeating: 1, count: 64))
        XCTAssertEqual(takeFindings().map(\.kind), [])
    }

    // MARK: Lanes that part and meet again

    func testLanesThatLeaveALoopEarlyMeetTheOthersAfterIt() throws {
        let source = """
            kernel void loop(device uint *y [[buffer(0)]], device uint *z [[buffer(1)]], \
            uint lane [[thread_index_in_simdgroup]]) {
              uint rounds = 0;
              for (uint i = 0; i <= lane % 4; i++)
                rounds += simd_sum(1u);
              y[lane] = rounds;
              z[lane] = simd_sum(1u);
            }
            """
        let y = TestBuffer(length: 128), z = TestBuffer(length: 128)
        try KernelLibrary(source).function("loop").run([y, z], grid: 32, group: 32)
        let active = [32, 24, 16, 8]
        XCTAssertEqual(y.array(UInt32.self), (0..<32).map { UInt32(active.prefix($0 % 4 + 1).reduce(0, +)) })
        XCTAssertEqual(z.array(UInt32.self), [UInt32](repeating: 32, count: 32))
    }

    func testLanesAtABarrierAreNotActive() throws {
        let source = """
            kernel void waiting(device uint *y [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
              if (lane < 12) y[lane] = simd_sum(1u);
              threadgroup_barrier(mem_flags::mem_none);
              if (lane >= 12) y[lane] = simd_sum(1u);
            }
            """
        let y = TestBuffer(length: 128)
        let counters = try KernelLibrary(source).function("waiting").run([y], grid: 32, group: 32)
        XCTAssertEqual(y.array(UInt32.self), (0..<32).map { $0 < 12 ? 12 : 20 })
        XCTAssertEqual(counters.simd_operations, 2)
        XCTAssertEqual(counters.barriers, 1)
    }

    // MARK: Threadgroup memory

    func testThreadgroupMemoryIsPoisonedAfreshForEachThreadgroup() throws {
        let source = """
            kernel void stale(device uint *y [[buffer(0)]], threadgroup uint *dynamic [[threadgroup(0)]],
                              uint group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
              threadgroup uint fixed[32];
              y[group * 64 + t] = fixed[t];
              y[group * 64 + 32 + t] = dynamic[t];
              fixed[t] = group;
              dynamic[t] = group;
            }
            """
        let y = TestBuffer([UInt32](repeating: 0, count: 64 * 50))
        try KernelLibrary(source).function("stale").run([y], grid: 50 * 32, group: 32, threadgroupLengths: [128])
        XCTAssertEqual(y.array(UInt32.self), [UInt32](repeating: 0xffe9_ffe9, count: 64 * 50))
        XCTAssertTrue(Float(bitPattern: 0xffe9_ffe9).isNaN)
    }

    func testThreadgroupVariablesLieApartAndAligned() throws {
        let source = """
            kernel void addresses(device ulong *y [[buffer(0)]], \
            threadgroup float *dynamic [[threadgroup(0)]], threadgroup float *second [[threadgroup(1)]]) {
              threadgroup uchar small[3];
              threadgroup float4 wide[5];
              small[0] = 1;
              wide[0] = 2;
              y[0] = ulong(&small[0]);
              y[1] = ulong(&wide[0]);
              y[2] = ulong(dynamic);
              y[3] = ulong(second);
            }
            """
        let y = TestBuffer(length: 32)
        try KernelLibrary(source).function("addresses").run([y], grid: 1, group: 1, threadgroupLengths: [48, 16])
        let begins = y.array(UInt64.self), ends = zip(begins, [3, 80, 48, 16] as [UInt64]).map { $0 + $1 }
        for begin in begins { XCTAssertEqual(begin % 16, 0) }
        let order = begins.indices.sorted { begins[$0] < begins[$1] }
        for (one, next) in zip(order, order.dropFirst()) { XCTAssertGreaterThanOrEqual(begins[next] - ends[one], 64) }
    }

    // MARK: Denormals

    func testDenormalsAreKeptOrFlushedAndHalfOnesSurvive() throws {
        let source = """
            kernel void denormals(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                                  device const half *h [[buffer(2)]], device half *g [[buffer(3)]]) {
              y[0] = x[0] * x[1];
              y[1] = x[2] * x[3];
              g[0] = h[0] * h[1];
            }
            """
        let function = try KernelLibrary(source).function("denormals")
        let denormal = Float(bitPattern: 0x0000_1000), least = Float.leastNormalMagnitude
        let x = TestBuffer([denormal, 1, least, 0.5]), h = TestBuffer([UInt16(0x0003), 0x3c00])
        for (mode, expected) in [("keep", [denormal, least / 2]), ("flush", [0, 0])] {
            let y = TestBuffer(length: 8), g = TestBuffer(length: 2)
            _ = try withSetting("denormals", mode) { try function.run([x, y, h, g], grid: 1, group: 1) }
            XCTAssertEqual(y.array(Float.self), expected, mode)
            XCTAssertEqual(g.array(UInt16.self), [0x0003], mode)
        }
        XCTAssertEqual(denormal * x.array(Float.self)[1], denormal, "the host's own arithmetic is as before")
    }

    // MARK: Many dispatches

    func testConcurrentDispatches() throws {
        let source = """
            kernel void sums(device uint *y [[buffer(0)]], constant uint &base [[buffer(1)]], \
            uint i [[thread_position_in_grid]],
                             uint t [[thread_index_in_threadgroup]]) {
              threadgroup uint tile[64];
              tile[t] = base + i;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              y[i] = simd_sum(tile[63 - t]);
            }
            """
        let function = try KernelLibrary(source).function("sums")
        func run(base: UInt32) {
            let y = TestBuffer(length: 256 * 4)
            XCTAssertNoThrow(try function.run([y, TestBuffer([base])], grid: 256, group: 64))
            let expected = (0..<256).map { (i: Int) -> UInt32 in
                let first = i / 64 * 64 + (i % 64 < 32 ? 32 : 0)
                return 32 * base + UInt32((first..<first + 32).reduce(0, +))
            }
            XCTAssertEqual(y.array(UInt32.self), expected)
        }
        for check in ["0", "1"] {
            withSetting("check", check) {
                DispatchQueue.concurrentPerform(iterations: 8) { thread in
                    for round in 0..<20 { run(base: UInt32(thread * 100 + round)) }
                }
            }
        }
        XCTAssertEqual(takeFindings().map(\.description), [])
    }

    func testTenThousandDispatchesLeaveMemoryAndThreadsFlat() throws {
        let function = try KernelLibrary(Self.arrivals).function("arrivals")
        func run(_ count: Int) throws {
            for _ in 0..<count {
                let order = TestBuffer(length: 512)
                try function.run([TestBuffer([UInt32(0)]), order], grid: 128, group: 32)
            }
        }
        try run(5_000)  // fills the quarantine of freed addresses
        let threads = threadCount()
        // A worker allocates memory that it keeps when it first runs. Under load this may be late, but it happens only
        // once for each worker.
        let workers = ProcessInfo.processInfo.activeProcessorCount
        try assertFlat(heap: 100_000, resident: 16 << 20, attempts: workers + 1) { try run(10_000) }
        // Threads of earlier tests may still be ending, and the system's pool may have a few more threads.
        XCTAssertLessThanOrEqual(threadCount(), threads + 4)
    }
}

func threadCount() -> Int { try! FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }

private extension Array where Element: Equatable {
    var removingRepeats: [Element] { reduce(into: []) { if $0.last != $1 { $0.append($1) } } }
}
