import Foundation
import XCTest

import MetalRuntime

/// Typical kernels of programs: under the checker they compute the same results, without a finding. With
/// ORCHARD_BENCH=1, prints the time of the checked build relative to the plain build, with one worker each.
final class CheckerWorkloadTests: CheckerTestCase {
    private func compare(
        _ name: String, _ source: String, _ buffers: [TestBuffer], grid: (Int, Int, Int), group: (Int, Int, Int)
    ) throws {
        let function = try KernelLibrary(source).function("k")
        let out = buffers[buffers.count - 1]
        func run() throws -> (result: [UInt32], seconds: Double) {
            let seconds = try bestTime { try function.run(buffers, grid: grid, group: group) }
            return (out.array(UInt32.self), seconds)
        }
        // Uses the thread order of the checked run, since the rounding of a reduction depends on it.
        let plain = try withSetting("workers", "1") { try withSetting("seed", "0") { try run() } }
        var guarded = plain
        assertSilent(try checked { guarded = try run() })
        XCTAssertEqual(guarded.result, plain.result, name)
        guard ProcessInfo.processInfo.environment["ORCHARD_BENCH"] == "1" else { return }
        let milliseconds = { (value: Double) in String(format: "%8.3f ms", value * 1e3) }
        print(
            "checker overhead: \(name): plain \(milliseconds(plain.seconds)), checked "
                + "\(milliseconds(guarded.seconds)), ratio",
            String(format: "%.1f", guarded.seconds / plain.seconds))
    }

    /// Measures processor time, which other programs disturb least.
    private func bestTime(_ body: () throws -> Void) throws -> Double {
        var best = Double.infinity
        for _ in 0..<4 {
            var before = timespec(), after = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before)
            try body()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after)
            best = min(best, Double(after.tv_sec - before.tv_sec) + Double(after.tv_nsec - before.tv_nsec) * 1e-9)
        }
        return best
    }

    private func floats(_ count: Int, _ label: String) -> TestBuffer {
        TestBuffer((0..<count).map { Float($0 * 7919 % 257) / 257 - 0.5 }, label: label)
    }

    private func zeros(_ count: Int) -> TestBuffer { TestBuffer([Float](repeating: 0, count: count), label: "out") }

    func testElementwiseFloat4() throws {
        try compare(
            "elementwise float4",
            """
            kernel void k(device const float4 *a [[buffer(0)]], device const float4 *b [[buffer(1)]], \
            device float4 *out [[buffer(2)]],
                          uint i [[thread_position_in_grid]]) {
              out[i] = fma(a[i], b[i], a[i]);
            }
            """, [floats(65536, "a"), floats(65536, "b"), zeros(65536)], grid: (16384, 1, 1), group: (256, 1, 1))
    }

    func testReduction() throws {
        try compare(
            "reduction",
            """
            kernel void k(device const float *a [[buffer(0)]], device float *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]],
                          uint lane [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
              threadgroup float partial[256];
              float sum = 0;
              for (uint j = 0; j < 16; j++) sum += a[(g * 16 + j) * 256 + lane];
              partial[lane] = sum;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              for (uint n = 128; n > 0; n /= 2) {
                if (lane < n) partial[lane] += partial[lane + n];
                threadgroup_barrier(mem_flags::mem_threadgroup);
              }
              if (lane == 0) out[g] = partial[0];
            }
            """, [floats(65536 * 2, "a"), zeros(32)], grid: (8192, 1, 1), group: (256, 1, 1))
    }

    func testTiledMatmul() throws {
        try compare(
            "tiled matmul, scalar",
            """
            kernel void k(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], \
            device float *out [[buffer(2)]],
                          uint2 p [[thread_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
              constexpr uint n = 128;
              threadgroup float left[16][16], right[16][16];
              float sum = 0;
              for (uint tile = 0; tile < n; tile += 16) {
                left[t.y][t.x] = a[p.y * n + tile + t.x];
                right[t.y][t.x] = b[(tile + t.y) * n + p.x];
                threadgroup_barrier(mem_flags::mem_threadgroup);
                for (uint j = 0; j < 16; j++) sum += left[t.y][j] * right[j][t.x];
                threadgroup_barrier(mem_flags::mem_threadgroup);
              }
              out[p.y * n + p.x] = sum;
            }
            """, [floats(16384, "a"), floats(16384, "b"), zeros(16384)], grid: (128, 128, 1), group: (16, 16, 1))
    }

    func testSimdgroupMatmul() throws {
        try compare(
            "simdgroup matmul",
            """
            kernel void k(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], \
            device float *out [[buffer(2)]],
                          uint2 g [[threadgroup_position_in_grid]]) {
              constexpr uint n = 128;
              simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0), left, right;
              for (uint tile = 0; tile < n; tile += 8) {
                simdgroup_load(left, a + g.y * 8 * n + tile, n);
                simdgroup_load(right, b + tile * n + g.x * 8, n);
                simdgroup_multiply_accumulate(sum, left, right, sum);
              }
              simdgroup_store(sum, out + g.y * 8 * n + g.x * 8, n);
            }
            """, [floats(16384, "a"), floats(16384, "b"), zeros(16384)], grid: (16 * 32, 16, 1), group: (32, 1, 1))
    }

    func testSoftmax() throws {
        try compare(
            "softmax",
            """
            kernel void k(device const float *a [[buffer(0)]], device float *out [[buffer(1)]], \
            uint row [[threadgroup_position_in_grid]],
                          uint lane [[thread_position_in_threadgroup]]) {
              constexpr uint width = 512;
              device const float *x = a + row * width;
              float most = -INFINITY, sum = 0;
              for (uint j = lane; j < width; j += 32) most = max(most, x[j]);
              most = simd_max(most);
              for (uint j = lane; j < width; j += 32) sum += exp(x[j] - most);
              sum = simd_sum(sum);
              for (uint j = lane; j < width; j += 32) out[row * width + j] = exp(x[j] - most) / sum;
            }
            """, [floats(65536, "a"), zeros(65536)], grid: (128 * 32, 1, 1), group: (32, 1, 1))
    }

    func testUnpackingOfFourBitNumbers() throws {
        let packed = TestBuffer((0..<32768).map { UInt8(truncatingIfNeeded: $0 * 37 + 11) }, label: "packed")
        try compare(
            "int4 unpack, by bytes",
            """
            kernel void k(device const uchar *packed [[buffer(0)]], device half *out [[buffer(1)]], \
            uint i [[thread_position_in_grid]]) {
              for (uint j = 0; j < 8; j++) {
                uchar both = packed[i * 8 + j];
                out[i * 16 + 2 * j] = half(int(both & 15) - 8);
                out[i * 16 + 2 * j + 1] = half(int(both >> 4) - 8);
              }
            }
            """, [packed, TestBuffer([UInt16](repeating: 0, count: 65536), label: "out")], grid: (4096, 1, 1),
            group: (128, 1, 1))
    }
}
