import MetalRuntime
import XCTest

/// Kernels in the styles of well-known libraries: each compiles, runs, and computes the expected numbers.
final class CompilerStyleTests: XCTestCase {
    /// Operators as functors, one kernel template, and instances by a macro with `decltype`.
    func testElementwiseWithFunctors() throws {
        let library = try KernelLibrary(
            """
            #define instantiate_kernel(name, func, \
            ...) template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
            struct Add { template <typename T> T operator()(T a, T b) { return a + b; } };
            struct Power {
              template <typename T> metal::enable_if_t<!metal::is_integral_v<T>, T> operator()(T a, T b) { return \
            metal::pow(a, b); }
              template <typename T> metal::enable_if_t<metal::is_integral_v<T>, T> operator()(T a, T b) { T r = 1; \
            while (b--) r *= a; return r; }
            };
            template <typename T, typename U, typename Op>
            [[kernel]] void binary(device const T *a, device const T *b, device U *c, \
            uint i [[thread_position_in_grid]]) { c[i] = Op()(a[i], b[i]); }
            #define instantiate_types(op, functor) \\
              instantiate_kernel(#op "_float", binary, float, float, functor) \\
              instantiate_kernel(#op "_int", binary, int, int, functor)
            instantiate_types(add, Add)
            instantiate_types(power, Power)
            """)
        XCTAssertEqual(library.functionNames, ["add_float", "add_int", "power_float", "power_int"])
        let a = TestBuffer([Int32(2), 3]), b = TestBuffer([Int32(5), 4]), c = TestBuffer(length: 8)
        try library.function("power_int").run([a, b, c], grid: 2, group: 2)
        XCTAssertEqual(c.array(Int32.self), [32, 81])
    }

    /// A complex type with constructors and conversions for every address space.
    func testAComplexType() throws {
        let library = try KernelLibrary(
            """
            struct complex64 {
              float real, imag;
              constexpr complex64(float r, float i) : real(r), imag(i) {}
              constexpr complex64() : real(0), imag(0) {}
              constexpr complex64() threadgroup : real(0), imag(0) {}
              template <typename T, typename = metal::enable_if_t<metal::is_convertible_v<T, float>>> constexpr \
            complex64(T x) thread : real(x), imag(0) {}
              template <typename T, typename = metal::enable_if_t<metal::is_convertible_v<T, float>>> constexpr \
            complex64(T x) device : real(x), imag(0) {}
              template <typename T, typename = metal::enable_if_t<metal::is_convertible_v<T, float>>> constexpr \
            complex64(T x) constant : real(x), imag(0) {}
              constexpr operator float() const thread { return real; }
              constexpr operator float() const device { return real; }
              constexpr operator float() const threadgroup { return real; }
            };
            constexpr complex64 operator*(complex64 a, complex64 b) { return {a.real * b.real - a.imag * b.imag, \
            a.real * b.imag + a.imag * b.real}; }
            template <typename T> kernel void square(device const T *x, device T *y, \
            uint i [[thread_position_in_grid]]) {
              threadgroup T held[4];
              held[i] = x[i];
              threadgroup_barrier(mem_flags::mem_threadgroup);
              T value = held[i];
              y[i] = i % 2 ? value * value : T(0);
            }
            template [[host_name("square_complex")]] kernel void square<complex64>(device const complex64 *, \
            device complex64 *, uint);
            template [[host_name("square_float")]] kernel void square<float>(device const float *, \
            device float *, uint);
            """)
        let x = TestBuffer([Float](arrayLiteral: 1, 2, 3, 4)), y = TestBuffer(length: 16)
        try library.function("square_complex").run([x, y], grid: 2, group: 2)
        XCTAssertEqual(y.array(Float.self), [0, 0, -7, 24])
    }

    /// Quantized blocks, a dequantizer as a template argument, the kernel's type as a typedef, parameters in a struct.
    func testQuantisedBlocks() throws {
        let library = try KernelLibrary(
            """
            typedef struct { half d; int8_t qs[4]; } block_q;
            typedef struct { int32_t ne0; uint64_t nb1; } args_t;
            constant short FC_SCALE [[function_constant(600 + 1)]];
            template <typename type4> void dequantize_q(device const block_q *xb, short il, thread type4 &reg) {
              for (int i = 0; i < 4; i++) reg[i] = (float)xb->d * xb->qs[i] + il;
            }
            template <typename block, short nl, void (*dequantize)(device const block *, short, thread float4 &)>
            kernel void kernel_get_rows(constant args_t &args, device const char *src [[buffer(1)]], \
            device float4 *dst [[buffer(2)]],
                                        uint3 tgpig [[threadgroup_position_in_grid]], ushort tiitg \
            [[thread_index_in_threadgroup]]) {
              device const block *x = (device const block *)(src + tgpig.x * args.nb1);
              float4 value;
              dequantize(x, nl, value);
              if (tiitg == 0) dst[tgpig.x] = value * FC_SCALE;
            }
            typedef decltype(kernel_get_rows<block_q, 2, dequantize_q>) get_rows_t;
            template [[host_name("kernel_get_rows_q")]] kernel get_rows_t kernel_get_rows<block_q, 2, dequantize_q>;
            """)
        var blocks = Data()
        for d in [Float16(0.5), 2] {
            withUnsafeBytes(of: d) { blocks.append(contentsOf: $0) }; blocks.append(contentsOf: [1, 2, 0xff, 4])
        }
        var arguments = Data(count: 16)
        arguments[0] = 4
        arguments[8] = 6
        var scale = mrt_constant_value()
        scale.index = 601
        scale.type = 37
        scale.value.0 = 3
        let y = TestBuffer(length: 32)
        try library.function("kernel_get_rows_q", constants: [scale]).run(
            [TestBuffer([UInt8](arguments)), TestBuffer([UInt8](blocks)), y], grid: 64, group: 32)
        XCTAssertEqual(y.array(Float.self), [7.5, 9, 4.5, 12, 12, 18, 0, 30])
    }

    /// Reductions over SIMD-groups, threadgroup memory passed by the host, several row sizes.
    func testRowSoftmax() throws {
        let library = try KernelLibrary(
            """
            template <typename T> METAL_FUNC T reduce(T value, threadgroup T *buf, uint sgitg, uint tiisg, uint nsg) {
              value = simd_sum(value);
              if (tiisg == 0) buf[sgitg] = value;
              threadgroup_barrier(mem_flags::mem_threadgroup);
              return simd_sum(tiisg < nsg ? buf[tiisg] : T(0));
            }
            #define REGISTER(T) \\
              template [[host_name("softmax_" #T)]] kernel void softmax<T>(device const T *x [[buffer(0)]], \
            device T *y [[buffer(1)]], \\
                constant uint &n [[buffer(2)]], threadgroup float *buf [[threadgroup(0)]], \
            uint tid [[thread_position_in_threadgroup]], \\
                uint lsize [[threads_per_threadgroup]], uint sgitg [[simdgroup_index_in_threadgroup]], uint tiisg \
            [[thread_index_in_simdgroup]], \\
                uint nsg [[simdgroups_per_threadgroup]])
            template <typename T> kernel void softmax(device const T *x [[buffer(0)]], \
            device T *y [[buffer(1)]], constant uint &n [[buffer(2)]],
                threadgroup float *buf [[threadgroup(0)]], uint tid [[thread_position_in_threadgroup]], uint lsize \
            [[threads_per_threadgroup]],
                uint sgitg [[simdgroup_index_in_threadgroup]], uint tiisg [[thread_index_in_simdgroup]], uint nsg \
            [[simdgroups_per_threadgroup]]) {
              float sum = 0.0;
              for (uint i = tid; i < n; i += lsize) sum += metal::precise::exp(float(x[i]));
              sum = reduce(sum, buf, sgitg, tiisg, nsg);
              for (uint i = tid; i < n; i += lsize) y[i] = static_cast<T>(metal::precise::exp(float(x[i])) / sum);
            }
            REGISTER(float);
            REGISTER(half);
            REGISTER(bfloat);
            """)
        let values = (0..<100).map { Float($0 % 7) / 4 }, y = TestBuffer(length: 400)
        try library.function("softmax_float").run(
            [TestBuffer(values), y, TestBuffer([UInt32(100)])], grid: 64, group: 64, threadgroupLengths: [128])
        let total = values.map { exp(Double($0)) }.reduce(0, +)
        for (value, got) in zip(values, y.array(Float.self)) {
            XCTAssertEqual(Double(got), exp(Double(value)) / total, accuracy: 4e-7 * exp(Double(value)) / total)
        }
        XCTAssertTrue(try library.function("softmax_half").info.uses_simd)
    }

    /// The checked and the contracted builds of the same text.
    func testEveryBuildGivesTheSame() throws {
        let source =
            "kernel void f(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { threadgroup "
            + "float t[32]; t[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[31 - i] * 2 + "
            + "1; }"
        let x = TestBuffer((0..<32).map(Float.init)), expected = (0..<32).map { Float(31 - $0) * 2 + 1 }
        for (name, value) in [("check", "0"), ("check", "1"), ("contract", "1"), ("fast", "1"), ("strict", "0")] {
            let y = TestBuffer(length: 128)
            _ = try withSetting(name, value) {
                try KernelLibrary(source).function("f").run([x, y], grid: 32, group: 32)
            }
            XCTAssertEqual(y.array(Float.self), expected, "\(name) \(value)")
        }
    }
}
