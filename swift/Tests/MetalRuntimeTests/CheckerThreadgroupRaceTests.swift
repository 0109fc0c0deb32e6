import XCTest

/// Data races in threadgroup memory (MSL 6.9.1): each broken kernel together with a correct one.
final class CheckerThreadgroupRaceTests: CheckerTestCase {
    private let numbers = TestBuffer((0..<256).map(Float.init), label: "numbers")
    private let out = TestBuffer([Float](repeating: 0, count: 256), label: "out")
    private let tile = "threadgroup variable 'tile'"

    private func shifted(_ barrier: String) -> String {
        """
        kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                      uint i [[thread_position_in_threadgroup]]) {
          threadgroup float tile[64];
          tile[i] = numbers[i];  // WRITE
          \(barrier)
          out[i] = tile[63 - i];  // READ
        }
        """
    }

    func testMissingBarrier() throws {
        let source = shifted("")
        let found = try findings(source, [numbers, out], grid: 64, group: 64)
        // Thread 31 reads element 32 before thread 32 writes it.
        assertFound(
            found, "threadgroup-race", in: source, at: "WRITE", other: "READ", thread: [32, 0, 0],
            otherThread: [31, 0, 0],
            buffer: tile, offset: 128, says: "put threadgroup_barrier(mem_flags::mem_threadgroup) between the two")
        assertSilent(
            try findings(
                shifted("threadgroup_barrier(mem_flags::mem_threadgroup);"), [numbers, out], grid: 64, group: 64))
    }

    func testBarrierWithoutTheFlag() throws {
        for flag in ["mem_none", "mem_device"] {
            let source = shifted("threadgroup_barrier(mem_flags::\(flag));")
            let found = try findings(source, [numbers, out], grid: 64, group: 64)
            assertFound(
                found, "barrier-missing-flag", in: source, at: "READ", other: "WRITE", thread: [0, 0, 0],
                otherThread: [63, 0, 0],
                buffer: tile, offset: 252, says: "give it mem_flags::mem_threadgroup")
        }
        assertSilent(
            try findings(
                shifted("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);"),
                [numbers, out], grid: 64, group: 64))
    }

    func testRaceOnlyAtTheWrapAround() throws {
        func source(_ size: Int) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[64];
              tile[(i + 1) % \(size)] = numbers[i];  // HERE
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[i % \(size)];
            }
            """
        }
        let found = try findings(source(63), [numbers, out], grid: 64, group: 64)
        XCTAssertEqual(found.count, 1)
        assertFound(
            found, "threadgroup-race", in: source(63), other: "HERE", thread: [63, 0, 0], otherThread: [0, 0, 0],
            buffer: tile, offset: 4)
        assertSilent(try findings(source(64), [numbers, out], grid: 64, group: 64))
    }

    func testBarrierMissingInTheSecondIteration() throws {
        func source(_ barrier: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[64];
              float sum = 0;
              for (uint round = 0; round < 2; round++) {
                tile[i] = numbers[round * 64 + i];  // WRITE
                threadgroup_barrier(mem_flags::mem_threadgroup);
                sum += tile[63 - i];  // READ
                \(barrier)
              }
              out[i] = sum;
            }
            """
        }
        let found = try findings(source(""), [numbers, out], grid: 64, group: 64)
        XCTAssertEqual(found.count, 1)
        assertFound(
            found, "threadgroup-race", in: source(""), at: "READ", other: "WRITE", thread: [32, 0, 0],
            otherThread: [31, 0, 0], buffer: tile,
            offset: 124)
        assertSilent(
            try findings(
                source("threadgroup_barrier(mem_flags::mem_threadgroup);"), [numbers, out], grid: 64, group: 64))
    }

    func testReductionTreeWithoutABarrierInItsLoop() throws {
        func source(_ barrier: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
              threadgroup float tile[128];
              tile[i] = numbers[g * 128 + i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              for (uint half_width = 64; half_width > 0; half_width /= 2) {
                if (i < half_width) tile[i] += tile[i + half_width];  // HERE
                \(barrier)
              }
              if (i == 0) out[g] = tile[0];
            }
            """
        }
        assertFound(
            try findings(source(""), [numbers, out], grid: 256, group: 128), "threadgroup-race", in: source(""),
            other: "HERE", buffer: tile)
        assertSilent(
            try findings(
                source("threadgroup_barrier(mem_flags::mem_threadgroup);"), [numbers, out], grid: 256, group: 128))
        XCTAssertEqual(out.array(Float.self)[0], 8128)
    }

    /// A SIMD-group's barrier orders only its own lanes.
    func testSimdgroupBarrier() throws {
        func source(_ other: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[64];
              tile[i] = numbers[i];  // WRITE
              simdgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[\(other)];  // READ
            }
            """
        }
        assertSilent(try findings(source("i ^ 31"), [numbers, out], grid: 64, group: 64))
        let across = source("i ^ 32")
        assertFound(
            try findings(across, [numbers, out], grid: 64, group: 64), "threadgroup-race", in: across, at: "WRITE",
            other: "READ",
            thread: [32, 0, 0], otherThread: [0, 0, 0], offset: 128)
    }

    func testSimdOperationsOrderNothing() throws {
        func source(_ order: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[32];
              tile[i] = numbers[i];  // WRITE
              float sum = simd_sum(numbers[i]);
              \(order)
              out[i] = tile[31 - i] + sum;  // READ
            }
            """
        }
        let broken = source("")
        assertFound(
            try findings(broken, [numbers, out], grid: 32, group: 32), "threadgroup-race", in: broken, at: "READ",
            other: "WRITE",
            thread: [0, 0, 0], otherThread: [31, 0, 0], offset: 124)
        assertSilent(
            try findings(source("simdgroup_barrier(mem_flags::mem_threadgroup);"), [numbers, out], grid: 32, group: 32))
    }

    /// Threads that write different values to one address, and threads that write the same value: MSL guarantees
    /// neither, but only the former is an error.
    func testWritesOfSeveralThreadsToOnePlace() throws {
        func source(_ value: String) -> String {
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup float tile[1];
              tile[0] = \(value);  // HERE
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[0];
            }
            """
        }
        let different = source("numbers[i]"), equal = source("numbers[7]")
        assertFound(
            try findings(different, [numbers, out], grid: 32, group: 32), "threadgroup-race", in: different,
            other: "HERE",
            thread: [1, 0, 0], otherThread: [0, 0, 0], buffer: tile, offset: 0)
        assertFound(
            try findings(equal, [numbers, out], grid: 32, group: 32), "threadgroup-race", in: equal, other: "HERE",
            severity: "note",
            says: "every write stored the value")
    }

    // MARK: correct kernels

    func testAdjacentBytesOfDifferentThreads() throws {
        for (type, group) in [("uchar", 64), ("half", 64), ("ushort", 32), ("char", 33)] {
            assertSilent(
                try findings(
                    """
                    kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                                  uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
                      threadgroup \(type) tile[64];
                      tile[i] = \(type)(numbers[i]);
                      threadgroup_barrier(mem_flags::mem_threadgroup);
                      out[i] = float(tile[n - 1 - i]);
                    }
                    """, [numbers, out], grid: group, group: group))
        }
    }

    func testOneByteOfAStructCopy() throws {
        func source(_ index: String) -> String {
            """
            struct Pair { uint a; uchar b, c, d, e; };
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup Pair tile[2];
              if (i == 0) tile[0] = Pair{1, 2, 3, 4, 5};
              if (i == 0) tile[1] = Pair{1, 2, 3, 4, 5};
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (i == 0) { Pair p = tile[0]; out[0] = p.a + p.b + p.c + p.d + p.e; }  // COPY
              if (i == 1) tile[\(index)].d = 9;  // BYTE
            }
            """
        }
        let broken = source("0")
        assertFound(
            try findings(broken, [numbers, out], grid: 2, group: 2), "threadgroup-race", in: broken, at: "BYTE",
            other: "COPY",
            thread: [1, 0, 0], otherThread: [0, 0, 0], buffer: tile, offset: 6)
        assertSilent(try findings(source("1"), [numbers, out], grid: 2, group: 2))
    }

    func testReuseAfterABarrierAndDoubleBuffering() throws {
        assertSilent(
            try findings(
                """
                kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
                  threadgroup float tile[2][64];
                  tile[0][i] = numbers[i];
                  float sum = 0;
                  for (uint round = 0; round < 3; round++) {
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    tile[(round + 1) % 2][i] = numbers[round * 64 + i];
                    sum += tile[round % 2][63 - i];
                  }
                  out[i] = sum;
                }
                """, [numbers, out], grid: 64, group: 64))
    }

    func testAtomicCounterAndManyReaders() throws {
        assertSilent(
            try findings(
                """
                kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
                  threadgroup atomic_uint counter;
                  if (i == 0) atomic_store_explicit(&counter, 0, memory_order_relaxed);
                  threadgroup_barrier(mem_flags::mem_threadgroup);
                  atomic_fetch_add_explicit(&counter, i, memory_order_relaxed);
                  threadgroup_barrier(mem_flags::mem_threadgroup);
                  out[i] = atomic_load_explicit(&counter, memory_order_relaxed) + numbers[0];
                }
                """, [numbers, out], grid: 128, group: 128))
        XCTAssertEqual(out.array(Float.self)[5], 8128)
    }

    func testAtomicAgainstPlain() throws {
        let source = """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_threadgroup]]) {
              threadgroup uint tile[1];
              if (i == 0) tile[0] = 5;  // PLAIN
              atomic_fetch_add_explicit((threadgroup atomic_uint *)tile, 1, memory_order_relaxed);  // ATOMIC
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[0];
            }
            """
        assertFound(
            try findings(source, [numbers, out], grid: 32, group: 32), "threadgroup-race", in: source, at: "ATOMIC",
            other: "PLAIN",
            thread: [1, 0, 0], otherThread: [0, 0, 0], says: "atomically")
    }

    /// A thread that has ended no longer counts at barriers, and its earlier accesses are ordered.
    func testEndedThreads() throws {
        assertSilent(
            try findings(
                """
                kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
                  threadgroup float tile[64];
                  tile[i] = numbers[i];
                  if (i >= 32) return;
                  threadgroup_barrier(mem_flags::mem_threadgroup);
                  out[i] = tile[63 - i];
                }
                """, [numbers, out], grid: 64, group: 64))
    }

    func testPrivateSlicesNeedNoBarrier() throws {
        assertSilent(
            try findings(
                """
                kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_threadgroup]]) {
                  threadgroup float tile[32][4];
                  threadgroup float *mine = tile[i];
                  for (uint j = 0; j < 4; j++) mine[j] = numbers[i] * j;
                  float sum = 0;
                  for (uint j = 0; j < 4; j++) sum += mine[3 - j];
                  out[i] = sum;
                }
                """, [numbers, out], grid: 32, group: 32))
    }

    /// Each threadgroup has different variables, although they are at the same addresses.
    func testThreadgroupsDoNotShareTheirVariables() throws {
        let source = """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]],
                          uint i [[thread_position_in_grid]], uint lane [[thread_position_in_threadgroup]]) {
              threadgroup float tile[64];
              tile[63 - lane] = numbers[i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[lane];
            }
            """
        assertSilent(try findings(source, [numbers, out], grid: 256, group: 64))
    }
}
