import XCTest

/// Atomic functions with many threadgroups and workers, compared with sums, sets and folds that do not depend on the
/// order; and the types that Metal rejects.
final class AtomicTests: XCTestCase {
    private static let threads = 4096
    private static let group = 64

    private func eachWorkerCount(_ body: () throws -> Void) rethrows {
        for workers in ["1", "2", "4"] { try withSetting("workers", workers, body) }
    }

    /// `fetch_…` combines the operands 1…4096 (spread by a multiplier) into one cell, in any order.
    func testEveryUpdateFoldsAllOperands() throws {
        struct Update { let name: String, start: UInt32, fold: (UInt32, UInt32) -> UInt32 }
        let updates = [
            Update(name: "fetch_add", start: 5, fold: &+), Update(name: "fetch_sub", start: 5, fold: &-),
            Update(name: "fetch_and", start: .max, fold: { $0 & ($1 | 0xffff_0f00) }),
            Update(name: "fetch_or", start: 0, fold: { $0 | ($1 & 0x0ff0_00ff) }),
            Update(name: "fetch_xor", start: 77, fold: ^), Update(name: "fetch_min", start: .max, fold: min),
            Update(name: "fetch_max", start: 0, fold: max),
        ]
        let operand = ["fetch_and": "(x | 0xffff0f00u)", "fetch_or": "(x & 0x0ff000ffu)"]
        let lines = updates.enumerated().map {
            "  atomic_\($1.name)_explicit(cells + \($0), \(operand[$1.name] ?? "x"), memory_order_relaxed);"
        }
        let function = try KernelLibrary(
            """
            kernel void updates(device atomic_uint *cells [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              uint x = (i + 1) * 2654435761u;
            \(lines.joined(separator: "\n"))
            }
            """
        ).function("updates")
        try eachWorkerCount {
            let cells = TestBuffer(updates.map(\.start))
            try function.run([cells], grid: Self.threads, group: Self.group)
            let operands = (1...UInt32(Self.threads)).map { (index: UInt32) -> UInt32 in index &* 2_654_435_761 }
            XCTAssertEqual(cells.array(UInt32.self), updates.map { operands.reduce($0.start, $0.fold) })
        }
    }

    func testSignedMinimumAndMaximum() throws {
        let function = try KernelLibrary(
            """
            kernel void extremes(device atomic_int *cells [[buffer(0)]], uint i [[thread_position_in_grid]]) {
              atomic_fetch_min_explicit(cells, int(i) - 2000, memory_order_relaxed);
              atomic_fetch_max_explicit(cells + 1, -int(i) - 1, memory_order_relaxed);
            }
            """
        ).function("extremes")
        let cells = TestBuffer([Int32.max, Int32.min])
        try function.run([cells], grid: Self.threads, group: Self.group)
        XCTAssertEqual(cells.array(Int32.self), [-2000, -1])
    }

    /// Each thread gets a different ticket: the old values are 0..<n, each once. In `order`, each thread exchanges its
    /// value for another thread's.
    func testOldValuesAreHandedOutOnce() throws {
        let function = try KernelLibrary(
            """
            kernel void tickets(device atomic_uint *cells [[buffer(0)]], device uint *ticket [[buffer(1)]], \
            device uint *before [[buffer(2)]],
                                uint i [[thread_position_in_grid]]) {
              ticket[i] = atomic_fetch_add_explicit(cells, 1, memory_order_relaxed);
              before[i] = atomic_exchange_explicit(cells + 1, i, memory_order_relaxed);
            }
            """
        ).function("tickets")
        try eachWorkerCount {
            let cells = TestBuffer([0, UInt32.max])
            let ticket = TestBuffer([UInt32](repeating: 0, count: Self.threads)),
                before = TestBuffer([UInt32](repeating: 0, count: Self.threads))
            try function.run([cells, ticket, before], grid: Self.threads, group: Self.group)
            XCTAssertEqual(ticket.array(UInt32.self).sorted(), Array(0..<UInt32(Self.threads)))
            // The exchanged values form a chain: exactly one other thread saw each value, except for the last thread's.
            // The same holds for the initial value.
            let seen = before.array(UInt32.self) + [cells.array(UInt32.self)[1]]
            XCTAssertEqual(seen.sorted(), Array(0..<UInt32(Self.threads)) + [.max])
        }
    }

    func testACompareExchangeLoop() throws {
        let function = try KernelLibrary(
            """
            kernel void loops(device atomic_uint *cell [[buffer(0)]], device atomic_float *most [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              uint seen = atomic_load_explicit(cell, memory_order_relaxed);
              while (!atomic_compare_exchange_weak_explicit(cell, &seen, seen * 3u + 1u, memory_order_relaxed, \
            memory_order_relaxed)) {}
              float value = float(i % 1000) * 0.5f, old = atomic_load_explicit(most, memory_order_relaxed);
              while (old < value && !atomic_compare_exchange_weak_explicit(most, &old, value, memory_order_relaxed, \
            memory_order_relaxed)) {}
            }
            """
        ).function("loops")
        try eachWorkerCount {
            let cell = TestBuffer([UInt32(1)]), most = TestBuffer([Float(-1)])
            try function.run([cell, most], grid: Self.threads, group: Self.group)
            XCTAssertEqual(
                cell.array(UInt32.self)[0], (0..<Self.threads).reduce(UInt32(1)) { value, _ in value &* 3 &+ 1 })
            XCTAssertEqual(most.array(Float.self)[0], 499.5)
        }
    }

    /// A weak compare-exchange may fail spuriously and reports it; a program that does not retry loses an update.
    func testAWeakCompareExchangeFailsNowAndThen() throws {
        let function = try KernelLibrary(
            """
            kernel void lone(device atomic_uint *cells [[buffer(0)]], device uint *failed [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              uint expected = i;
              failed[i] = !atomic_compare_exchange_weak_explicit(cells + i, &expected, i + 1, memory_order_relaxed, \
            memory_order_relaxed);
              if (expected != i) failed[i] = 77;
            }
            """
        ).function("lone")
        func failures(seed: String, check: String) throws -> [UInt32] {
            let cells = TestBuffer((0..<256).map { UInt32($0) }), failed = TestBuffer(length: 1024)
            _ = try withSetting("check", check) {
                try withSetting("seed", seed) { try function.run([cells, failed], grid: 256, group: 64) }
            }
            let flags = failed.array(UInt32.self)
            XCTAssertEqual(
                cells.array(UInt32.self), (0..<256).map { UInt32($0) + 1 - flags[$0] },
                "a failed exchange changes nothing")
            return flags
        }
        for check in ["0", "1"] {
            XCTAssertEqual(try failures(seed: "0", check: check).reduce(0, +), 0, "seed 0 is the plain order")
            let first = try failures(seed: "7", check: check)
            XCTAssertTrue((20...120).contains(first.reduce(0, +)), "\(first)")
            XCTAssertEqual(try failures(seed: "7", check: check), first, "the seed decides")
            XCTAssertNotEqual(try failures(seed: "8", check: check), first)
        }
    }

    func testAFailedCompareExchangeGivesTheValueThatIsThere() throws {
        let function = try KernelLibrary(
            """
            kernel void failing(device atomic_int *cell [[buffer(0)]], device int *out [[buffer(1)]]) {
              int expected = 4;
              out[0] = atomic_compare_exchange_weak_explicit(cell, &expected, 9, memory_order_relaxed, \
            memory_order_relaxed);
              out[1] = expected;
            }
            """
        ).function("failing")
        let cell = TestBuffer([Int32(5)]), out = TestBuffer([Int32(7), 7])
        try function.run([cell, out], grid: 1, group: 1)
        XCTAssertEqual(out.array(Int32.self), [0, 5])
        XCTAssertEqual(cell.array(Int32.self), [5])
    }

    func testFloatsBoolsAndLongs() throws {
        let function = try KernelLibrary(
            """
            kernel void kinds(device atomic<float> *sum [[buffer(0)]], device atomic_bool *flags [[buffer(1)]], \
            device atomic_ulong *ends [[buffer(2)]],
                              device uint *firsts [[buffer(3)]], uint i [[thread_position_in_grid]]) {
              atomic_fetch_add_explicit(sum, 0.25f, memory_order_relaxed);
              atomic_fetch_sub_explicit(sum + 1, 2, memory_order_relaxed);
              firsts[i] = !atomic_exchange_explicit(flags, true, memory_order_relaxed);
              if (i == 77) atomic_store_explicit(flags + 1, true, memory_order_relaxed);
              atomic_min_explicit(ends, (ulong(i) << 33) + 5, memory_order_relaxed);
              atomic_max_explicit(ends + 1, (ulong(i) << 33) + 5, memory_order_relaxed);
            }
            """
        ).function("kinds")
        try eachWorkerCount {
            let sum = TestBuffer([Float(1), 1]), flags = TestBuffer([UInt32(0), 0]), ends = TestBuffer([UInt64.max, 0])
            let firsts = TestBuffer([UInt32](repeating: 0, count: Self.threads))
            try function.run([sum, flags, ends, firsts], grid: Self.threads, group: Self.group)
            XCTAssertEqual(sum.array(Float.self), [1 + 0.25 * Float(Self.threads), 1 - 2 * Float(Self.threads)])
            XCTAssertEqual(flags.array(UInt32.self), [1, 1])
            XCTAssertEqual(ends.array(UInt64.self), [5, UInt64(Self.threads - 1) << 33 + 5])
            XCTAssertEqual(firsts.array(UInt32.self).reduce(0, +), 1, "one thread is the first")
        }
    }

    func testThreadgroupAtomics() throws {
        let function = try KernelLibrary(
            """
            kernel void local(device uint *out [[buffer(0)]], threadgroup atomic_uint *cells [[threadgroup(0)]],
                              uint i [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
              threadgroup atomic_int low;
              if (i == 0) { atomic_store_explicit(cells, 0, memory_order_relaxed); atomic_store_explicit(&low, 1000, \
            memory_order_relaxed); }
              threadgroup_barrier(mem_flags::mem_threadgroup);
              atomic_fetch_add_explicit(cells, i * group, memory_order_relaxed);
              atomic_fetch_min_explicit(&low, int(i) - int(group), memory_order_relaxed);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (i == 0) out[group] = atomic_load_explicit(cells, memory_order_relaxed) + \
            uint(atomic_load_explicit(&low, memory_order_relaxed));
            }
            """
        ).function("local")
        let groups = 20
        let out = TestBuffer([UInt32](repeating: 0, count: groups))
        try eachWorkerCount {
            try function.run([out], grid: groups * Self.group, group: Self.group, threadgroupLengths: [16])
            let sum = UInt32(Self.group * (Self.group - 1) / 2)
            XCTAssertEqual(out.array(UInt32.self), (0..<UInt32(groups)).map { sum * $0 &- $0 })
        }
    }

    /// Atomic accesses race with plain accesses, but not with each other.
    func testTheCheckerTellsAtomicFromPlainAccesses() throws {
        let library = try KernelLibrary(
            """
            kernel void counted(device atomic_uint *cell [[buffer(0)]]) { atomic_fetch_add_explicit(cell, \
            1, memory_order_relaxed); }
            kernel void plain(device uint *cell [[buffer(0)]]) {
              cell[0] += 1;
            }
            """)
        _ = takeFindings()
        try withSetting("check", "1") {
            let cell = TestBuffer([UInt32(0)], label: "cell")
            try library.function("counted").run([cell], grid: 256, group: Self.group)
            XCTAssertEqual(takeFindings().map(\.kind), [])
            XCTAssertEqual(cell.array(UInt32.self), [256])
            try library.function("plain").run([cell], grid: 256, group: Self.group)
            XCTAssertTrue(takeFindings().contains { $0.kind == "device-race" && $0.line == 3 })
        }
    }

    // MARK: - types

    private func expectRefused(
        _ parameters: String, _ body: String, _ message: String, file: StaticString = #filePath, line: UInt = #line
    ) {
        let source = "kernel void refused(\(parameters)) {\n  \(body)\n}"
        XCTAssertThrowsError(try KernelLibrary(source), body, file: file, line: line) {
            XCTAssertTrue(
                "\($0)".contains(message) && "\($0)".contains("program_source:2:"), "\($0)", file: file, line: line)
        }
    }

    func testWhatMetalRefusesDoesNotCompile() throws {
        let float = "threadgroup atomic<float> *cell [[threadgroup(0)]]", int = "device atomic_int *cell [[buffer(0)]]"
        expectRefused(
            float, "atomic_fetch_add_explicit(cell, 1.0f, memory_order_relaxed);",
            "no matching function for call to 'atomic_fetch_add_explicit'")
        expectRefused(float, "atomic_store_explicit(cell, 1.0f, memory_order_relaxed);", "no matching function")
        expectRefused(
            "threadgroup atomic_ulong *cell [[threadgroup(0)]]",
            "atomic_max_explicit(cell, 1ul, memory_order_relaxed);", "no matching function")
        expectRefused(
            "device atomic<float> *cell [[buffer(0)]]", "atomic_fetch_max_explicit(cell, 1.0f, memory_order_relaxed);",
            "no matching function")
        expectRefused(
            "device atomic_bool *cell [[buffer(0)]]", "atomic_fetch_add_explicit(cell, 1, memory_order_relaxed);",
            "no matching function")
        expectRefused(
            "device atomic_ulong *cell [[buffer(0)]]", "atomic_fetch_add_explicit(cell, 1ul, memory_order_relaxed);",
            "no matching function")
        expectRefused(int, "atomic_fetch_add_explicit(cell, 1, memory_order_seq_cst);", "no matching function")
        expectRefused(
            int, "threadgroup atomic_int *other = cell;", "cannot initialize a variable of type 'threadgroup atomic_int"
        )
        expectRefused(
            "constant atomic_int *cell [[buffer(0)]]", "atomic_fetch_add_explicit(cell, 1, memory_order_relaxed);",
            "no matching function")
        expectRefused(
            "device int *cell [[buffer(0)]]", "atomic_fetch_add_explicit(cell, 1, memory_order_relaxed);",
            "no matching function")
        expectRefused(int, "cell[0] = cell[1];", "deleted")
    }
}
