import XCTest

import MetalRuntime

/// Data races in device memory: within a threadgroup, between threadgroups, between dispatches.
final class CheckerDeviceRaceTests: CheckerTestCase {
    private let numbers = TestBuffer((0..<256).map(Float.init), label: "numbers")
    private let out = TestBuffer([Float](repeating: 0, count: 256), label: "out")

    private func exchange(_ barrier: String) -> String {
        """
        kernel void k(device float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
        uint i [[thread_position_in_threadgroup]]) {
          numbers[i] = i;  // WRITE
          \(barrier)
          out[i] = numbers[63 - i];  // READ
        }
        """
    }

    func testWithinAThreadgroup() throws {
        let source = exchange("")
        assertFound(
            try findings(source, [numbers, out], grid: 64, group: 64), "device-race", in: source, at: "WRITE",
            other: "READ",
            thread: [32, 0, 0], otherThread: [31, 0, 0], buffer: "numbers", offset: 128,
            says: "put threadgroup_barrier(mem_flags::mem_device)")
        assertSilent(
            try findings(exchange("threadgroup_barrier(mem_flags::mem_device);"), [numbers, out], grid: 64, group: 64))
    }

    func testBarrierWithoutTheFlag() throws {
        let source = exchange("threadgroup_barrier(mem_flags::mem_threadgroup);")
        assertFound(
            try findings(source, [numbers, out], grid: 64, group: 64), "barrier-missing-flag", in: source, at: "READ",
            other: "WRITE",
            thread: [0, 0, 0], otherThread: [63, 0, 0], buffer: "numbers", offset: 252,
            says: "give it mem_flags::mem_device")
    }

    private func adjacent(_ target: String) -> String {
        """
        kernel void k(device float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          float next = numbers[(i + 1) % 256];  // READ
          threadgroup_barrier(mem_flags::mem_device);
          \(target)[i] = next;  // WRITE
        }
        """
    }

    /// A barrier orders the threads of one threadgroup, but not threadgroups.
    func testBetweenThreadgroups() throws {
        let source = adjacent("numbers")
        let found = try findings(source, [numbers, out], grid: 256, group: 64)
        assertFound(
            found, "device-race", in: source, at: "WRITE", other: "READ", thread: [0, 0, 0], otherThread: [63, 0, 0],
            threadgroup: [1, 0, 0],
            otherThreadgroup: [0, 0, 0], buffer: "numbers", offset: 256,
            says: "nothing orders the threadgroups of a dispatch")
        assertSilent(try findings(adjacent("out"), [numbers, out], grid: 256, group: 64))
    }

    /// Every threadgroup reads a weight that the last one updates.
    func testManyReadersAndOneWriter() throws {
        func source(_ target: String) -> String {
            """
            kernel void k(device float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              float weight = numbers[0];  // READ
              out[i] = weight;
              if (i == 255) \(target) = weight + 1;  // WRITE
            }
            """
        }
        let broken = source("numbers[0]")
        assertFound(
            try findings(broken, [numbers, out], grid: 256, group: 32), "device-race", in: broken, at: "WRITE",
            other: "READ",
            thread: [31, 0, 0], otherThread: [0, 0, 0], threadgroup: [7, 0, 0], otherThreadgroup: [0, 0, 0],
            buffer: "numbers", offset: 0)
        assertSilent(try findings(source("numbers[1]"), [numbers, out], grid: 256, group: 32))
    }

    func testSumWithoutAtomics() throws {
        let broken = """
            kernel void k(device float *numbers [[buffer(0)]], device uint *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[0] += 1;  // HERE
            }
            """
        assertFound(
            try findings(broken, [numbers, out], grid: 64, group: 32), "device-race", in: broken, other: "HERE",
            thread: [1, 0, 0],
            otherThread: [0, 0, 0], buffer: "out", offset: 0)
        let right = """
            kernel void k(device float *numbers [[buffer(0)]], device atomic_uint *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              atomic_fetch_add_explicit(out, 1, memory_order_relaxed);
            }
            """
        assertSilent(try findings(right, [numbers, TestBuffer([UInt32(0)])], grid: 64, group: 32))
    }

    func testAdjacentHalvesOfDifferentThreadgroups() throws {
        assertSilent(
            try findings(
                """
                kernel void k(device const float *numbers [[buffer(0)]], device half *out [[buffer(1)]], \
                uint i [[thread_position_in_grid]]) {
                  out[i] = half(numbers[i]);
                }
                """, [numbers, TestBuffer([UInt16](repeating: 0, count: 256))], grid: 256, group: 33))
    }

    // MARK: dispatches

    private let fill = """
        kernel void k(device float *numbers [[buffer(0)]], uint i [[thread_position_in_grid]]) {
          numbers[i] = i;  // WRITE
        }
        kernel void next(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
        uint i [[thread_position_in_grid]]) {
          out[i] = numbers[i];  // READ
        }
        """

    /// Two dispatches of one epoch: `next` reads what `k` writes.
    private func twoDispatches(epochs: (UInt64, UInt64), ordered: [TestBuffer] = []) throws -> [Finding] {
        let library = try KernelLibrary(fill)
        let first = try library.function("k"), second = try library.function("next")
        return try checked {
            try first.run([numbers], grid: 64, group: 32, epoch: epochs.0)
            try second.run([numbers, out], grid: (64, 1, 1), group: (32, 1, 1), epoch: epochs.1, ordered: ordered)
        }
    }

    func testDispatchesOfOneEpoch() throws {
        let epoch = mrt_epoch_next()
        let found = try twoDispatches(epochs: (epoch, epoch))
        let race = try XCTUnwrap(found.first { $0.kind == "dispatch-race" })
        XCTAssertEqual(found.count, 1)
        XCTAssertEqual(race.kernel, "next")
        XCTAssertEqual(race.line, sourceLine("READ", fill))
        XCTAssertEqual(race.other_line, sourceLine("WRITE", fill))
        XCTAssertEqual(race.buffer, "numbers")
        XCTAssertEqual(race.count, 64)
        XCTAssertTrue(race.message.contains("memoryBarrier(scope: .buffers)"), race.message)
    }

    func testOrderedDispatchesAreSilent() throws {
        assertSilent(try twoDispatches(epochs: (mrt_epoch_next(), mrt_epoch_next())))
        let epoch = mrt_epoch_next()
        assertSilent(try twoDispatches(epochs: (epoch, epoch), ordered: [numbers]))
    }

    /// Dispatches of another queue come between the two of one epoch.
    func testEpochsThatInterleave() throws {
        let library = try KernelLibrary(fill)
        let first = try library.function("k"), second = try library.function("next")
        let ours = mrt_epoch_next(), theirs = mrt_epoch_next()
        let elsewhere = TestBuffer([Float](repeating: 0, count: 256))
        let found = try checked {
            try first.run([numbers], grid: 64, group: 32, epoch: ours)
            try first.run([elsewhere], grid: 64, group: 32, epoch: theirs)
            try second.run([elsewhere, out], grid: 64, group: 32, epoch: mrt_epoch_next())
            try second.run([numbers, out], grid: 64, group: 32, epoch: ours)
        }
        XCTAssertEqual(Set(found.map(\.kind)), ["dispatch-race"])
        XCTAssertEqual(Set(found.compactMap(\.buffer)), ["numbers"])
    }

    /// An encoder stays open while many others begin and end.
    func testAnEpochThatLasts() throws {
        let library = try KernelLibrary(fill)
        let first = try library.function("k"), second = try library.function("next")
        let ours = mrt_epoch_next()
        let elsewhere = TestBuffer([Float](repeating: 0, count: 256))
        let found = try checked {
            try first.run([numbers], grid: 64, group: 32, epoch: ours)
            for _ in 0..<200 { try first.run([elsewhere], grid: 64, group: 32, epoch: mrt_epoch_next()) }
            try second.run([numbers, out], grid: 64, group: 32, epoch: ours)
        }
        XCTAssertEqual(Set(found.map(\.kind)), ["dispatch-race"])
        XCTAssertEqual(Set(found.compactMap(\.buffer)), ["numbers"])
    }

    func testReadsOfOneEpochAreSilent() throws {
        let function = try KernelLibrary(fill).function("next")
        let other = TestBuffer([Float](repeating: 0, count: 256))
        let epoch = mrt_epoch_next()
        assertSilent(
            try checked {
                try function.run([numbers, out], grid: 64, group: 32, epoch: epoch)
                try function.run([numbers, other], grid: 64, group: 32, epoch: epoch)
            })
    }

    /// There is one finding for each pair of lines, however often the race occurs.
    func testFindingsAreCountedAndNotRepeated() throws {
        let found = try findings(exchange(""), [numbers, out], grid: 64, group: 64)
        XCTAssertEqual(found.count, 1)
        XCTAssertEqual(found.first?.count, 64)  // 32 reads before the write, and as many after it
    }

    /// The advice suggests a barrier for an exchange, but not for a sum to which several threads add.
    func testTheAdviceFitsTheRace() throws {
        let x = TestBuffer([Float](repeating: 1, count: 64), label: "x"), y = TestBuffer([Float(0)], label: "y")
        let head =
            "kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], "
            + "uint i [[thread_position_in_grid]]) "
        for group in [64, 32] {
            for statement in ["y[0] += x[i];", "y[0] = y[0] + x[i];"] {
                let source = head + "{\n  \(statement)  // HERE\n}"
                assertFound(
                    try findings(source, [x, y], grid: 64, group: group), "device-race", in: source,
                    says: "use an atomic, or a reduction")
            }
        }
        let exchange = head + "{\n  y[0] = x[i] + i;  // HERE\n}"
        let found = try findings(exchange, [x, y], grid: 64, group: 64)
        XCTAssertTrue(found.allSatisfy { !$0.message.contains("reduction") }, "\(found)")
    }
}
