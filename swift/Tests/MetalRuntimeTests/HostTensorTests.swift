import MetalRuntime
import XCTest

/// Tensors of the host (MSL 2.20.2.1): `tensor<device half, dextents<int, 2>>` as a kernel's parameter and in an
/// argument buffer.
final class HostTensorTests: CheckerTestCase {
    private static let header = """
        #include <metal_stdlib>
        #include <metal_tensor>
        #include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
        using namespace metal;

        """

    /// A tensor in a buffer, and the 8 bytes that refer to it.
    private final class Tensor {
        let elements: TestBuffer
        let handle: TestBuffer
        private let state = UnsafeMutablePointer<MrtTensor>.allocate(capacity: 1)

        /// Dimension 0 is contiguous.
        init(_ elements: TestBuffer, _ extents: [Int], strides: [Int]? = nil) {
            self.elements = elements
            let steps = strides ?? extents.indices.map { extents[..<$0].reduce(1, *) }
            var tensor = MrtTensor()
            tensor.address = elements.address
            tensor.rank = UInt(extents.count)
            withUnsafeMutableBytes(of: &tensor.extents) { all in extents.withUnsafeBytes { all.copyMemory(from: $0) } }
            withUnsafeMutableBytes(of: &tensor.strides) { all in steps.withUnsafeBytes { all.copyMemory(from: $0) } }
            state.initialize(to: tensor)
            handle = TestBuffer([UInt64(UInt(bitPattern: state))])
        }

        deinit { state.deallocate() }
    }

    /// Runs `k` with the tensors' handles at the first indices; their elements follow, so that they are bound.
    private func run(
        _ source: String, _ tensors: [Tensor], _ others: [TestBuffer] = [], grid: (Int, Int, Int),
        group: (Int, Int, Int)
    ) throws {
        let function = try KernelLibrary(Self.header + source, version: 0x40000).function("k")
        try function.run(
            tensors.map(\.handle) + others + tensors.map(\.elements), grid: grid, group: group)
    }

    /// The elements' buffers, as parameters that the kernel does not use.
    private func unused(_ count: Int, from first: Int) -> String {
        (0..<count).map { ", device uchar *unused\($0) [[buffer(\(first + $0))]]" }.joined()
    }

    private func numbers(_ count: Int, _ random: inout SplitMix64) -> [Float16] {
        (0..<count).map { _ in Float16(Int.random(in: -3...3, using: &random)) }
    }

    /// Products of random sizes, whole or in slices of the host's tensors. Sums of small integers are exact.
    func testProducts() throws {
        var random = SplitMix64(3401)
        for isSliced in [false, true, true] {
            let m = isSliced ? Int.random(in: 1...150, using: &random) : 64
            let n = isSliced ? Int.random(in: 1...70, using: &random) : 32
            let k = Int.random(in: 1...40, using: &random), pitch = k + Int.random(in: 0...3, using: &random)
            let left = numbers(m * pitch, &random), right = numbers(k * n, &random)
            let a = Tensor(TestBuffer(left, label: "a"), [k, m], strides: [1, pitch])
            let b = Tensor(TestBuffer(right, label: "b"), [n, k])
            let c = Tensor(TestBuffer([Float](repeating: 9, count: m * n), label: "c"), [n, m])
            let tiles =
                isSliced
                ? "auto x = a.slice(0, group.y * 64); auto y = b.slice(group.x * 32, 0); "
                    + "auto z = c.slice(group.x * 32, group.y * 64); op.run(x, y, z);"
                : "op.run(a, b, c);"
            let source = """
                using Matrix = tensor<device half, dextents<int32_t, 2>>;
                kernel void k(Matrix a [[buffer(0)]], tensor<device half, dextents<int32_t, 2>> b,
                              metal::tensor<device float, dextents<int, 2>, tensor_handle> c\(unused(3, from: 3)),
                              uint2 group [[threadgroup_position_in_grid]]) {
                  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(64, 32, static_cast<int>(dynamic_extent));
                  mpp::tensor_ops::matmul2d<shape, execution_simdgroups<4>> op;
                  \(tiles)
                }
                """
            let found = try checked {
                try run(source, [a, b, c], grid: ((n + 31) / 32 * 128, (m + 63) / 64, 1), group: (128, 1, 1))
            }
            assertSilent(found)
            let result: [Float] = c.elements.array()
            for row in 0..<m {
                for column in 0..<n {
                    var sum: Float = 0
                    for at in 0..<k { sum += Float(left[row * pitch + at]) * Float(right[at * n + column]) }
                    XCTAssertEqual(result[row * n + column], sum, "\(m) x \(n) x \(k) at \(row), \(column)")
                }
            }
        }
    }

    /// Elements by subscripts of several numbers, arrays, load and store, from parameters, slices and an argument
    /// buffer. Element (i, j, l) of `t` is 100 l + 10 j + i.
    func testElements() throws {
        let elements = (0..<24).map { (at: Int) -> Float in
            let (i, j, l) = (at % 4, at / 4 % 3, at / 12)
            return Float(100 * l + 10 * j + i)
        }
        let t = Tensor(TestBuffer(elements, label: "t"), [4, 3, 2])
        let u = Tensor(TestBuffer([Float](repeating: 0, count: 6), label: "u"), [2, 3])
        let y = TestBuffer([Float](repeating: 0, count: 12))
        let arguments = TestBuffer([t.handle.array(UInt64.self)[0], 7])
        let source = """
            struct Arguments { tensor<device float, dextents<int, 3>> t; uint n; };
            kernel void k(tensor<device float, extents<int, 4, 3, 2>> t, tensor<device float, dextents<ushort, 2>> u,
                          device float *y, constant Arguments &all\(unused(2, from: 4))) {
              static_assert(decltype(t)::get_rank() == 3 && decltype(t)::get_static_extent(1) == 3, "");
              static_assert(sizeof(Arguments) == 16 && is_same_v<decltype(t.load(0, 0, 0)), float>, "");
              auto s = t.slice(1, 1, 0);
              tensor<device float, extents<int, 2, 1, 1>, tensor_handle, tensor_offset> r = s.slice<2, 1, 1>(1, 1, 1);
              y[0] = t[3, 2, 1];
              y[1] = t[array<int, 3>{1, 2, 0}];
              y[2] = s[0, 1, 1] + t.load(4, 0, 0) + t.load(-1, 0, 0);
              y[3] = r[1, 0, 0];
              y[4] = s.get_extent(0) * 100 + s.get_extent(1) * 10 + s.get_extent(2);
              y[5] = t.get_stride(0) * 1000 + s.get_stride(1) * 100 + r.get_stride(2);
              y[6] = all.t[2, 1, 1] + all.n;
              y[7] = all.t.slice(0, 2, 0)[3, 0, 1];
              u[1, 2] = 5;
              u.store(6, 0, 1);
              u.store(8, 2, 0);
              u.store(7, array<int, 2>{1, 0});
              u[0, 0] += u.load(array<short, 2>{1, 2});
              y[8] = tensor(y, dextents<int, 1>(12))[7];
              int w[3] = {1, 2, 3}, i = 0;
              y[9] = w[i, 2];
            }
            """
        let found = try checked {
            try run(source, [t, u], [y, arguments], grid: (1, 1, 1), group: (1, 1, 1))
        }
        assertSilent(found)
        let wantedY: [Float] = [123, 21, 121, 123, 322, 1412, 119, 123, 123, 3, 0, 0]
        let wantedU: [Float] = [5, 7, 6, 0, 0, 5]
        XCTAssertEqual(y.array(Float.self), wantedY)
        XCTAssertEqual(u.elements.array(Float.self), wantedU)
    }

    /// The checker compares a subscript with the tensor's sizes, which its memory may exceed.
    func testFindings() throws {
        let mistakes: [(String, String)] = [
            ("t[4, i, 0] = 1;", "refers to position 4 of a dimension of a tensor of size 4"),
            ("t[i - 1, 1, 0] = 1;", "refers to position -1 of a dimension of a tensor of size 4"),
            ("t.slice(1, 0, 0)[3, 0, 0] = 1;", "refers to position 3 of a dimension of a tensor of size 3"),
            ("t.slice(0, i + 4, 0);", "slices a tensor from position 4 of a dimension of size 3"),
            ("t.slice<2, 2, 2>(0, 2, 0);", "slices a tensor up to position 4 of a dimension of size 3"),
        ]
        for (statement, text) in mistakes {
            let t = Tensor(TestBuffer([Float](repeating: 0, count: 100), label: "t"), [4, 3, 2])
            let source = """
                kernel void k(tensor<device float, dextents<int, 3>> t, uint lane [[thread_position_in_grid]]\(
                    unused(1, from: 1))) {
                  const int i = lane;
                  \(statement)  // HERE
                }
                """
            let found = try checked { try run(source, [t], grid: (1, 1, 1), group: (1, 1, 1)) }
            assertFound(found, "out-of-bounds", in: Self.header + source, says: text)
        }
    }

    /// Programs that Metal rejects, each with a similar legal program.
    func testRefusals() throws {
        let pairs: [(String, String, String)] = [
            ("tensor<device float, dextents<int, 2>> t", "tensor<threadgroup float, dextents<int, 2>> t", ""),
            ("tensor<device float, dextents<int, 2>> t", "tensor<device float, dextents<int, 2>, tensor_offset> t", ""),
            ("tensor<device float, dextents<int, 2>> t", "tensor<constant float, dextents<int, 2>> t", "t[0, 0] = 1;"),
            ("tensor<device float, dextents<int, 2>> t", "tensor<device float, dextents<int, 3>> t", "t[0, 1] = 1;"),
            ("tensor<device float, dextents<int, 2>> t", "tensor<device float, dextents<int, 3>> t", "t.slice(0, 0);"),
            (
                "tensor<device float, dextents<int, 2>> t", "tensor<device float, dextents<int, 3>> t",
                "t.slice<1, 2>(0, 0);"
            ),
        ]
        for (legal, illegal, statement) in pairs {
            let compile: (String) throws -> KernelFunction = { parameter in
                let source = "\(Self.header)kernel void k(\(parameter)) { \(statement) }"
                return try KernelLibrary(source, version: 0x40000).function("k")
            }
            XCTAssertNoThrow(try compile(legal), statement)
            XCTAssertThrowsError(try compile(illegal), illegal)
        }
    }
}
