import Foundation
import XCTest

/// Whole programs in the style of tensor libraries, each compared with an oracle in float64 or plain Swift: with
/// several orders of threads and threadgroups, and with the checker on, which must find nothing.
final class ProgramTests: XCTestCase {
    /// Runs `body` in every configuration; it computes a new result each time.
    private func everyWay(_ body: () throws -> Void, file: StaticString = #filePath, line: UInt = #line) throws {
        for (seed, workers) in [("0", "1"), ("1", "2"), ("7", "4")] {
            try withSetting("seed", seed) { try withSetting("workers", workers, body) }
        }
        _ = takeFindings()
        try withSetting("check", "1", body)
        XCTAssertEqual(takeFindings().map(\.message), [], file: file, line: line)
    }

    private func noise(_ count: Int, _ seed: UInt64) -> [Float] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Float(state >> 40) / Float(1 << 23) - 1
        }
    }

    func testRowSoftmax() throws {
        let function = try KernelLibrary(
            """
            // y[row, :] = exp(x[row, :] - max) / sum(exp(x[row, :] - max)); one threadgroup a row
            kernel void softmax(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], \
            constant uint &columns [[buffer(2)]],
                                uint row [[threadgroup_position_in_grid]], uint thread_index \
            [[thread_index_in_threadgroup]],
                                uint threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups \
            [[simdgroups_per_threadgroup]]) {
              threadgroup float partial[32];
              x += row * columns;
              y += row * columns;

              float highest = -INFINITY;
              for (uint i = thread_index; i < columns; i += threads) highest = max(highest, x[i]);
              highest = simd_max(highest);
              if (lane == 0) partial[simdgroup] = highest;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              highest = simd_max(lane < simdgroups ? partial[lane] : -INFINITY);
              threadgroup_barrier(mem_flags::mem_threadgroup);

              float sum = 0;
              for (uint i = thread_index; i < columns; i += threads) sum += exp(x[i] - highest);
              sum = simd_sum(sum);
              if (lane == 0) partial[simdgroup] = sum;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              sum = simd_sum(lane < simdgroups ? partial[lane] : 0.0f);

              for (uint i = thread_index; i < columns; i += threads) y[i] = exp(x[i] - highest) / sum;
            }
            """
        ).function("softmax")
        let rows = 5, columns = 301
        let x = noise(rows * columns, 3).map { $0 * 20 }
        let expected = (0..<rows).flatMap { row -> [Double] in
            let values = x[row * columns..<(row + 1) * columns].map { Double($0) }
            let powers = values.map { exp($0 - values.max()!) }
            return powers.map { $0 / powers.reduce(0, +) }
        }
        try everyWay {
            let y = TestBuffer([Float](repeating: .nan, count: rows * columns), label: "y")
            try function.run(
                [TestBuffer(x, label: "x"), y, TestBuffer([UInt32(columns)], label: "columns")], grid: rows * 96,
                group: 96)
            for (got, want) in zip(y.array(Float.self), expected) {
                XCTAssertEqual(Double(got), want, accuracy: 1e-5 * want + 1e-30)
            }
        }
    }

    func testTiledMatrixProductWithEdges() throws {
        let library = try KernelLibrary(
            """
            // d = a b, a: m x k, b: k x n, row-major, of any size. A threadgroup of four SIMD-groups makes a 32 x 32 \
            tile of d, each
            // SIMD-group a quarter of 16 x 16; tiles of a and b are in threadgroup memory, with zeros past the edges.
            struct Shape { uint m, n, k; };

            template <typename T>
            inline void fill(threadgroup T *tile, device const T *from, uint stride, uint2 origin, uint2 size, uint \
            thread_index) {
              for (uint i = thread_index; i < 32 * 32; i += 128) {
                uint2 at = origin + uint2(i % 32, i / 32);
                tile[i] = at.x < size.x && at.y < size.y ? from[at.y * stride + at.x] : T(0);
              }
            }

            template <typename T>
            [[kernel]] void multiply(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], \
            device float *d [[buffer(2)]],
                                     constant Shape &shape [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                                     uint thread_index [[thread_index_in_threadgroup]], uint simdgroup \
            [[simdgroup_index_in_threadgroup]]) {
              threadgroup T tile_a[32 * 32];
              threadgroup T tile_b[32 * 32];
              threadgroup float tile_d[32 * 32];
              const uint2 quarter = 16 * uint2(simdgroup % 2, simdgroup / 2);

              simdgroup_float8x8 sums[2][2];
              for (uint i = 0; i < 2; ++i)
                for (uint j = 0; j < 2; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

              for (uint first = 0; first < shape.k; first += 32) {
                threadgroup_barrier(mem_flags::mem_threadgroup);
                fill(tile_a, a, shape.k, uint2(first, group.y * 32), uint2(shape.k, shape.m), thread_index);
                fill(tile_b, b, shape.n, uint2(group.x * 32, first), uint2(shape.n, shape.k), thread_index);
                threadgroup_barrier(mem_flags::mem_threadgroup);
                for (uint k = 0; k < 32; k += 8)
                  for (uint i = 0; i < 2; ++i) {
                    simdgroup_matrix<T, 8, 8> left;
                    simdgroup_load(left, tile_a, 32, ulong2(k, quarter.y + 8 * i));
                    for (uint j = 0; j < 2; ++j) {
                      simdgroup_matrix<T, 8, 8> right;
                      simdgroup_load(right, tile_b, 32, ulong2(quarter.x + 8 * j, k));
                      simdgroup_multiply_accumulate(sums[i][j], left, right, sums[i][j]);
                    }
                  }
              }

              for (uint i = 0; i < 2; ++i)
                for (uint j = 0; j < 2; ++j) simdgroup_store(sums[i][j], tile_d + (quarter.y + 8 * i) * 32 + quarter.x \
            + 8 * j, 32);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              for (uint i = thread_index; i < 32 * 32; i += 128) {
                uint2 at = group * 32 + uint2(i % 32, i / 32);
                if (at.x < shape.n && at.y < shape.m) d[at.y * shape.n + at.x] = tile_d[i];
              }
            }

            template [[host_name("multiply_float")]] [[kernel]] void multiply<float>(device const float *, \
            device const float *, device float *, constant Shape &, uint2, uint, uint);
            template [[host_name("multiply_half")]] [[kernel]] void multiply<half>(device const half *, \
            device const half *, device float *, constant Shape &, uint2, uint, uint);
            """)
        let m = 37, n = 41, k = 45
        let a = noise(m * k, 5).map { Float16($0) }, b = noise(k * n, 6).map { Float16($0) }
        let terms = { (index: Int) -> [Double] in
            let row = index / n * k, column = index % n
            return (0..<k).map { step -> Double in Double(a[row + step]) * Double(b[step * n + column]) }
        }
        for name in ["multiply_float", "multiply_half"] {
            let function = try library.function(name)
            try everyWay {
                let d = TestBuffer([Float](repeating: .nan, count: m * n), label: "d")
                let shape = TestBuffer([UInt32(m), UInt32(n), UInt32(k)], label: "shape")
                let left =
                    name == "multiply_half" ? TestBuffer(a, label: "a") : TestBuffer(a.map { Float($0) }, label: "a")
                let right =
                    name == "multiply_half" ? TestBuffer(b, label: "b") : TestBuffer(b.map { Float($0) }, label: "b")
                try function.run([left, right, d, shape], grid: (2 * 128, 2, 1), group: (128, 1, 1))
                for (index, got) in d.array(Float.self).enumerated() {
                    let products = terms(index)
                    let size = products.map { abs($0) }.reduce(0, +)
                    XCTAssertEqual(
                        Double(got), products.reduce(0, +), accuracy: Double(k) * 6e-8 * size, "\(name) \(index)")
                }
            }
        }
    }

    func testBitonicSort() throws {
        let function = try KernelLibrary(
            """
            // Sorts 256 keys a threadgroup. Partners closer than 32 exchange through registers, others through \
            threadgroup memory.
            kernel void sort(device uint *keys [[buffer(0)]], uint i [[thread_index_in_threadgroup]], \
            uint at [[thread_position_in_grid]]) {
              threadgroup uint shared[256];
              uint key = keys[at];
              for (uint size = 2; size <= 256; size *= 2)
                for (uint distance = size / 2; distance > 0; distance /= 2) {
                  uint other;
                  if (distance < 32) {
                    other = simd_shuffle_xor(key, ushort(distance));
                  } else {
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    shared[i] = key;
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    other = shared[i ^ distance];
                  }
                  bool ascending = (i & size) == 0, lower = (i & distance) == 0;
                  key = lower == ascending ? min(key, other) : max(key, other);
                }
              keys[at] = key;
            }
            """
        ).function("sort")
        let keys = noise(768, 11).map { UInt32(($0 + 1) * 1e6) }
        try everyWay {
            let buffer = TestBuffer(keys, label: "keys")
            try function.run([buffer], grid: 768, group: 256)
            XCTAssertEqual(buffer.array(UInt32.self), (0..<3).flatMap { keys[$0 * 256..<($0 + 1) * 256].sorted() })
        }
    }

    func testPrefixScan() throws {
        let library = try KernelLibrary(
            """
            // Inclusive prefix sums of n numbers: each threadgroup scans 256 of them and leaves its total; `offsets` \
            adds the totals before.
            kernel void scan(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], \
            device int *totals [[buffer(2)]],
                             constant uint &n [[buffer(3)]], uint at [[thread_position_in_grid]], \
            uint i [[thread_index_in_threadgroup]],
                             uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
              threadgroup int sums[8];
              int sum = simd_prefix_inclusive_sum(at < n ? in[at] : 0);
              if (lane == 31) sums[simdgroup] = sum;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              int before = simd_prefix_exclusive_sum(lane < 8 ? sums[lane] : 0);
              sum += simd_shuffle(before, ushort(simdgroup));
              if (at < n) out[at] = sum;
              if (i == 255) totals[group] = sum;
            }
            kernel void offsets(device int *out [[buffer(0)]], device const int *totals [[buffer(1)]], \
            constant uint &n [[buffer(2)]],
                                uint at [[thread_position_in_grid]], uint group [[threadgroup_position_in_grid]]) {
              int before = 0;
              for (uint g = 0; g < group; ++g) before += totals[g];
              if (at < n) out[at] += before;
            }
            """)
        let scan = try library.function("scan"), offsets = try library.function("offsets")
        let values = noise(1_000, 13).map { Int32($0 * 500) }
        var expected: [Int32] = []
        for value in values { expected.append((expected.last ?? 0) + value) }
        try everyWay {
            let out = TestBuffer([Int32](repeating: -7, count: 1_000), label: "out"),
                totals = TestBuffer([Int32](repeating: 0, count: 4), label: "totals")
            let n = TestBuffer([UInt32(1_000)], label: "n")
            try scan.run([TestBuffer(values, label: "in"), out, totals, n], grid: 1_024, group: 256)
            try offsets.run([out, totals, n], grid: 1_024, group: 256)
            XCTAssertEqual(out.array(Int32.self), expected)
        }
    }

    func testHistogram() throws {
        let function = try KernelLibrary(
            """
            // Counts bytes into 64 bins: each threadgroup first on its own, then into the shared bins.
            kernel void histogram(device const uchar *bytes [[buffer(0)]], \
            device atomic_uint *bins [[buffer(1)]], constant uint &n [[buffer(2)]],
                                  uint at [[thread_position_in_grid]], uint threads [[threads_per_grid]], uint i \
            [[thread_index_in_threadgroup]]) {
              threadgroup atomic_uint own[64];
              if (i < 64) atomic_store_explicit(&own[i], 0, memory_order_relaxed);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              for (uint b = at; b < n; b += threads) atomic_fetch_add_explicit(&own[bytes[b] / 4], 1, \
            memory_order_relaxed);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              if (i >= 64) return;
              uint count = atomic_load_explicit(&own[i], memory_order_relaxed);
              if (count > 0) atomic_fetch_add_explicit(&bins[i], count, memory_order_relaxed);
            }
            """
        ).function("histogram")
        let bytes = noise(5_003, 17).map { (value: Float) -> UInt8 in UInt8(min(255, value * value * 256)) }
        let expected = bytes.reduce(into: [UInt32](repeating: 0, count: 64)) { $0[Int($1) / 4] += 1 }
        try everyWay {
            let bins = TestBuffer([UInt32](repeating: 0, count: 64), label: "bins")
            try function.run(
                [TestBuffer(bytes, label: "bytes"), bins, TestBuffer([UInt32(5_003)], label: "n")], grid: 8 * 96,
                group: 96)
            XCTAssertEqual(bins.array(UInt32.self), expected)
        }
    }
}
