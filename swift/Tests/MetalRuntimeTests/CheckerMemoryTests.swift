import Foundation
import XCTest

import MetalRuntime

/// The checker's memory does not grow, and one setting turns it on.
final class CheckerMemoryTests: CheckerTestCase {
    private let source = """
        kernel void k(device float *numbers [[buffer(0)]], uint i [[thread_position_in_grid]], \
        uint lane [[thread_position_in_threadgroup]]) {
          threadgroup float tile[32];
          tile[lane] = numbers[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          numbers[i] = tile[31 - lane];
        }
        """

    func testTenThousandDispatchesLeaveMemoryFlat() throws {
        let function = try KernelLibrary(source).function("k")
        let numbers = TestBuffer([Float](repeating: 1, count: 64), label: "numbers")
        let found = try checked {
            for _ in 0..<1000 { try function.run([numbers], grid: 64, group: 32) }
            try assertFlat(heap: 100_000, resident: 16 << 20) {
                for _ in 0..<10_000 { try function.run([numbers], grid: 64, group: 32) }
            }
        }
        assertSilent(found)
    }

    /// Freed buffers do not leak shadow memory, and a new buffer at the same address has no history.
    func testBuffersThatComeAndGo() throws {
        let function = try KernelLibrary(source).function("k")
        let found = try checked {
            let epoch = mrt_epoch_next()
            func round() throws {
                let numbers = TestBuffer([Float](repeating: 1, count: 16_384), label: "numbers")
                try function.run([numbers], grid: 16_384, group: 32, epoch: epoch)
            }
            for _ in 0..<10 { try round() }
            try assertFlat(heap: 100_000, resident: 32 << 20) { for _ in 0..<300 { try round() } }
        }
        assertSilent(found)
    }

    func testWithoutTheSettingNothingIsFound() throws {
        let racy = source.replacingOccurrences(of: "threadgroup_barrier(mem_flags::mem_threadgroup);", with: "")
        let function = try KernelLibrary(racy).function("k")
        let numbers = TestBuffer([Float](repeating: 1, count: 64), label: "numbers")
        _ = try withSetting("check", "0") { try function.run([numbers], grid: 64, group: 32) }
        XCTAssertEqual(mrt_findings_count(), 0)
        XCTAssertEqual(
            try checked { try function.run([numbers], grid: 64, group: 32) }.first?.kind, "uninitialized-read")
    }

    /// Several host threads may dispatch at once.
    func testDispatchesOfSeveralThreads() throws {
        let function = try KernelLibrary(source).function("k")
        let found = try checked {
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                let numbers = TestBuffer([Float](repeating: 1, count: 1024), label: "numbers")
                for _ in 0..<20 { _ = try? function.run([numbers], grid: 1024, group: 32) }
            }
        }
        assertSilent(found)
    }
}
