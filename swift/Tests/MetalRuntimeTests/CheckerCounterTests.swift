import XCTest

import MetalRuntime

/// Traffic: exact bytes and distinct cache lines, with the checker on and with counting only.
final class CheckerCounterTests: CheckerTestCase {
    private let numbers = TestBuffer((0..<1024).map(Float.init), label: "numbers")
    private let out = TestBuffer([Float](repeating: 0, count: 1024), label: "out")

    /// Counts without and with the checker; the counts must be equal.
    private func counters(_ source: String, grid: Int, group: Int) throws -> mrt_counters {
        let function = try KernelLibrary(source).function("k")
        let counted = try function.run([numbers, out], grid: grid, group: group, count: true)
        var alike = mrt_counters()
        assertSilent(try checked { alike = try function.run([numbers, out], grid: grid, group: group) })
        XCTAssertEqual(withUnsafeBytes(of: counted) { Array($0) }, withUnsafeBytes(of: alike) { Array($0) })
        return counted
    }

    func testElementwise() throws {
        let counted = try counters(
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = numbers[i] * 2;
            }
            """, grid: 1000, group: 250)
        XCTAssertEqual(counted.device_bytes_read, 4000)
        XCTAssertEqual(counted.device_bytes_written, 4000)
        XCTAssertEqual(counted.cache_lines_read, 32)  // 4000 bytes in lines of 128; the last one is partial
        XCTAssertEqual(counted.cache_lines_written, 32)
        XCTAssertEqual(counted.threads, 1000)
    }

    func testStridedReadsAndReadModifyWrite() throws {
        let counted = try counters(
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] += numbers[i * 32];
            }
            """, grid: 32, group: 32)
        XCTAssertEqual(counted.device_bytes_read, 256)
        XCTAssertEqual(counted.device_bytes_written, 128)
        XCTAssertEqual(counted.cache_lines_read, 33)
        XCTAssertEqual(counted.cache_lines_written, 1)
    }

    func testConstantsAreNoDeviceBytes() throws {
        let counted = try counters(
            """
            kernel void k(constant float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = numbers[0] + numbers[1];
            }
            """, grid: 64, group: 32)
        XCTAssertEqual(counted.constant_bytes_read, 512)
        XCTAssertEqual(counted.device_bytes_read, 0)
        XCTAssertEqual(counted.device_bytes_written, 256)
    }

    func testVectorsAndStructsCountTheirBytes() throws {
        let counted = try counters(
            """
            struct Block { float4 a, b, c, d; };
            kernel void k(device const Block *numbers [[buffer(0)]], device Block *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              out[i] = numbers[i];
            }
            """, grid: 16, group: 8)
        XCTAssertEqual(counted.device_bytes_read, 1024)
        XCTAssertEqual(counted.device_bytes_written, 1024)
        XCTAssertEqual(counted.cache_lines_read, 8)
    }

    func testThreadgroupMemory() throws {
        let counted = try counters(
            """
            kernel void k(device const float *numbers [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]],
                          uint lane [[thread_position_in_threadgroup]]) {
              threadgroup half tile[64];
              tile[lane] = half(numbers[i]);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              out[i] = tile[63 - lane] + tile[lane];
            }
            """, grid: 128, group: 64)
        XCTAssertEqual(counted.threadgroup_bytes_written, 256)
        XCTAssertEqual(counted.threadgroup_bytes_read, 512)
        XCTAssertEqual(counted.barriers, 2)
    }
}
