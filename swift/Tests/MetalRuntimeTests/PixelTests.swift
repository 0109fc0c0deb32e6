import Foundation
import MetalRuntime
import XCTest

/// Pixel data types (MSL 2.7), against their definitions in float64.
final class PixelTests: XCTestCase {
    private var random = SplitMix64(4127)

    private func run(_ source: String, _ buffers: [TestBuffer], count: Int) throws {
        try KernelLibrary(source).function("k").run(buffers, grid: count, group: min(count, 64))
    }

    /// Returns the bytes of `count` pixels stored from `values`, and the values that a kernel reads from them.
    private func stored(_ type: String, _ alu: String, _ values: [SIMD4<Float>]) throws -> ([UInt8], [SIMD4<Float>]) {
        let size = ["r8": 1, "rg8": 2, "r16": 2, "rgba16": 8].first { type.hasPrefix($0.key + "unorm") }?.value
        let pixels = TestBuffer(length: values.count * (size ?? 4)), back = TestBuffer(values)
        let components = ["float": "x", "float2": "xy", "float3": "xyz", "float4": "xyzw"][alu]!
        try run(
            """
            kernel void k(device \(type)<\(alu)> *pixels [[buffer(0)]], device float4 *values [[buffer(1)]],
                          uint i [[thread_position_in_grid]]) {
              pixels[i] = values[i].\(components);
              \(alu) value = pixels[i];
              values[i] = 0;
              values[i].\(components) = value;
            }
            """, [pixels, back], count: values.count)
        return (pixels.array(), back.array())
    }

    private func values(_ range: ClosedRange<Float>, _ count: Int = 64) -> [SIMD4<Float>] {
        (0..<count).map { _ in SIMD4.random(in: range, using: &random) }
    }

    func testNormalizedComponents() throws {
        let formats: [(String, String, bits: Int, signed: Bool, count: Int)] = [
            ("r8unorm", "float", 8, false, 1), ("rg8unorm", "float2", 8, false, 2),
            ("rgba8unorm", "float4", 8, false, 4), ("rgba8snorm", "float4", 8, true, 4),
            ("r16unorm", "float", 16, false, 1), ("rg16snorm", "float2", 16, true, 2),
            ("rgba16unorm", "float4", 16, false, 4),
        ]
        for (type, alu, bits, signed, count) in formats {
            let given = values(-1.5...1.5), (bytes, back) = try stored(type, alu, given)
            let top = Double((1 << (signed ? bits - 1 : bits)) - 1), width = bits / 8
            for (i, value) in given.enumerated() {
                for component in 0..<count {
                    let x = min(max(Double(value[component]), signed ? -1 : 0), 1)
                    let expected = (x * top).rounded(.toNearestOrEven)
                    let at = (i * count + component) * width
                    let unsigned = (0..<width).reduce(0) { $0 | Int(bytes[at + $1]) << (8 * $1) }
                    let code = signed && unsigned >= 1 << (bits - 1) ? unsigned - 1 << bits : unsigned
                    // A product that is within float32's error of a half may round either way.
                    let part = abs(x * top).truncatingRemainder(dividingBy: 1)
                    let tolerance: Double = abs(part - 0.5) < 0.01 ? 1 : 0
                    XCTAssertEqual(Double(code), expected, accuracy: tolerance, "\(type) \(value[component])")
                    XCTAssertEqual(Double(back[i][component]), Double(code) / top, accuracy: 1e-6, type)
                }
            }
        }
    }

    func testSmallFloats() throws {
        let exponents: [Float] = [-20, -15, -14, -1, 0, 3, 15]
        var given: [SIMD4<Float>] = [SIMD4(-1, 0, 1e30, 0), SIMD4(.infinity, 65024, 64512, 0)]
        for exponent in exponents { given += values(0...2, 16).map { $0 * exp2(exponent) } }
        let (_, back) = try stored("rg11b10f", "float3", given)
        for (value, result) in zip(given, back) {
            for (component, mantissa) in [(0, 6), (1, 6), (2, 5)] {
                let x = max(Double(value[component]), 0)
                let step = exp2(max(floor(log2(max(x, 1e-30))), -14) - Double(mantissa))
                let nearest = (x / step).rounded(.toNearestOrEven) * step
                let expected = x.isInfinite || nearest >= 65536 ? Double.infinity : nearest
                XCTAssertEqual(Double(result[component]), expected, "\(value[component]) of \(mantissa) bits")
            }
        }
    }

    func testSharedExponents() throws {
        var given: [SIMD4<Float>] = [SIMD4(1e9, 0, 0, 0), SIMD4(0, 0, 0, 0), SIMD4(65408, 1, 511.75, 0)]
        let exponents: [Float] = [-30, -16, -3, 0, 7, 15]
        for exponent in exponents { given += values(-0.5...2, 16).map { $0 * exp2(exponent) } }
        let (_, back) = try stored("rgb9e5", "float3", given)
        for (value, result) in zip(given, back) {
            let c = (0..<3).map { min(max(Double(value[$0]), 0), 65408) }
            let first = max(-16, floor(log2(max(c.max()!, 1e-300)))) + 1
            let exponent = floor(c.max()! / exp2(first - 9) + 0.5) == 512 ? first + 1 : first
            for component in 0..<3 {
                let expected = floor(c[component] / exp2(exponent - 9) + 0.5) * exp2(exponent - 9)
                XCTAssertEqual(Double(result[component]), expected, "\(value)")
            }
        }
    }

    func testColorsAndWords() throws {
        let given = values(0...1), (bytes, _) = try stored("srgba8unorm", "float4", given)
        for (i, value) in given.enumerated() {
            let x = Double(value.x), curve = x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055
            XCTAssertEqual(Double(bytes[4 * i]), curve * 255, accuracy: 0.51)
            XCTAssertEqual(Double(bytes[4 * i + 3]), Double(value.w) * 255, accuracy: 0.51)
        }
        let (_, back) = try stored("rgb10a2", "float4", given)
        for (value, result) in zip(given, back) {
            XCTAssertEqual(result.z, value.z, accuracy: 0.51 / 1023)
            XCTAssertEqual(result.w, value.w, accuracy: 0.51 / 3)
        }
    }

    /// Pixels in each address space and in structs, compared with pixels and values.
    func testSpacesAndComparisons() throws {
        let bytes = TestBuffer([255, 0, 128, 64, 0, 255, 128, 64] as [UInt8])
        let out = TestBuffer([Int32](repeating: 9, count: 8))
        try run(
            """
            #include <metal_stdlib>
            #include <metal_pixel>
            using namespace metal;
            struct Pair { rgba8unorm<half4> a; rgba8unorm<half4> b; };
            static_assert(sizeof(Pair) == 8 && alignof(Pair) == 1 && alignof(rgb9e5<half3>) == 4, "Table 2.6");
            static_assert(sizeof(rg16unorm<float2>) == 4 && alignof(rg16unorm<float2>) == 2, "Table 2.6");
            kernel void k(constant Pair &pair [[buffer(0)]], device int *y [[buffer(1)]],
                          device const rgba8unorm<float4> *p [[buffer(2)]]) {
              threadgroup rgba8unorm<half4> shared[2];
              shared[0] = pair.a;
              shared[1] = all(p[1] == p[1]) ? half4(float4(p[1])) : half4(0);
              rgba8unorm<half4> copy = pair.b;
              y[0] = all(shared[0] == pair.a);
              y[1] = all(copy == half4(shared[1]));
              y[2] = any(copy != pair.b);
              y[3] = all(half4(pair.a) == shared[0]);
              y[4] = all(shared[0] == copy);
            }
            """, [bytes, out, bytes], count: 1)
        XCTAssertEqual(Array((out.array() as [Int32])[..<5]), [1, 1, 0, 1, 0])
    }

    func testOnlyTheTypesOfTheTable() {
        for type in ["rgba8unorm<float3>", "r16unorm<half>", "rg11b10f<float4>", "r8unorm<int>"] {
            XCTAssertThrowsError(
                try KernelLibrary("kernel void k(device \(type) *p [[buffer(0)]]) { p[0] = p[1]; }"), type)
        }
    }

    /// Names of render functions in structs and helper functions of a file with kernels.
    func testNamesOfRenderFunctions() throws {
        let library = try KernelLibrary(
            """
            struct Point { float4 position [[attribute(0)]]; };
            struct Patch { patch_control_point<Point> points; };
            struct Out { float4 position [[position]]; };
            struct In { interpolant<float4, interpolation::perspective> color; };
            using Triangles = mesh<Out, void, 3, 1, topology::triangle>;
            void emit(Triangles triangles, uint i) {
              Out out = {float4(0)};
              triangles.set_vertex(i, out);
              triangles.set_index(i, uchar(i));
              triangles.set_primitive_count(1);
            }
            [[patch(triangle, 3)]] vertex Out v(Patch patch [[stage_in]]) { return {patch.points[0].position}; }
            [[mesh]] void m(Triangles out, uint i [[thread_index_in_threadgroup]]) { emit(out, i); }
            kernel void k(device float *y [[buffer(0)]]) { y[0] = 1; }
            """)
        XCTAssertEqual(library.functionNames, ["k"])
    }
}
