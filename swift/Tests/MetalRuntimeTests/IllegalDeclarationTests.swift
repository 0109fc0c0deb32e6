import MetalRuntime
import XCTest

/// Declarations that the Metal Shading Language rejects, each with a similar one that it accepts: address spaces of
/// members and variables, function constants, atomics, textures, samplers, inputs of kernels, and argument buffers. A
/// `#` stands for the probe's number, so that many probes form one program with one probe in a line.
private let declarationProbes = [
    Probe(
        "4.4",
        "kernel void f#(device float *y) { struct A# { float a[4]; }; threadgroup A# q; q.a[0] = 1; y[0] = q.a[0]; }",
        "kernel void f#(device float *y) { struct A# { threadgroup float a[4]; }; y[0] = 1; }"),
    Probe(
        "4.4", "kernel void f#(device float *y) { struct A# { threadgroup float *a; }; y[0] = 1; }",
        "kernel void f#(device float *y) { struct A# { threadgroup float a; }; y[0] = 1; }"),
    Probe(
        "4.1", "kernel void f#(device float *y) { struct A# { device float *a; }; A# a = {y}; a.a[0] = 1; }",
        "kernel void f#(device float *y) { struct A# { device float a[2]; }; y[0] = 1; }"),
    Probe(
        "4.2", "kernel void f#(device float *y) { struct A# { constant float *a; }; y[0] = 1; }",
        "kernel void f#(device float *y) { struct A# { constant float a; }; y[0] = 1; }"),
    Probe(
        "4",
        "union A# { float a[2]; uint b[2]; }; kernel void f#(device float *y) { A# q; q.b[0] = 0; y[0] = q.a[0]; }",
        "union A# { threadgroup float a[2]; uint b[2]; }; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "4",
        "template <typename T> struct A# { T a[2]; }; kernel void f#(device float *y) { A#<float> q; "
            + "q.a[0] = 0; y[0] = q.a[0]; }",
        "template <typename T> struct A# { threadgroup T a[2]; }; kernel void f#(device float *y) { "
            + "y[0] = sizeof(A#<float>); }"
    ),
    Probe(
        "4",
        "struct B# { struct A# { float a[2]; } b; }; kernel void f#(device float *y) { B# q; q.b.a[0] = "
            + "0; y[0] = q.b.a[0]; }",
        "struct B# { struct A# { threadgroup float a[2]; }; }; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "4", "typedef threadgroup float *P#; struct A# { P# a; }; kernel void f#(device float *y) { y[0] = 1; }",
        "typedef threadgroup float P#; struct A# { P# a; }; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "4.2", "kernel void f#(device float *y) { threadgroup float q; q = 1; y[0] = q; }",
        "kernel void f#(device float *y) { static threadgroup float q; q = 1; y[0] = q; }"),
    Probe(
        "4", "kernel void f#(device float *y) { device float *q = y; q[0] = 1; }",
        "kernel void f#(device float *y) { device float q; y[0] = 1; }"),
    Probe(
        "4.2", "kernel void f#(device float *y) { constant float *q = nullptr; y[0] = q ? 1 : 0; }",
        "kernel void f#(device float *y) { constant float q = 1; y[0] = q; }"),
    Probe(
        "4", "struct A# { device float &a; }; kernel void f#(device float *y) { A# a = {y[0]}; a.a = 1; }",
        "struct A# { float &a; }; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "4", "device float *g#(device float *y) { return y; } kernel void f#(device float *y) { g#(y)[0] = 1; }",
        "float *g#(device float *y) { return y; } kernel void f#(device float *y) { g#(y)[0] = 1; }"),
    Probe(
        "4", "kernel void f#(device float *y) { device int *q = reinterpret_cast<device int *>(y); q[0] = 1; }",
        "kernel void f#(device float *y) { threadgroup int *q = reinterpret_cast<threadgroup int *>(y); q[0] = 1; }"),
    Probe(
        "4", "kernel void f#(device float *y) { device int *q = (device int *)y; q[0] = 1; }",
        "kernel void f#(device float *y) { thread int *q = (thread int *)y; q[0] = 1; }"),
    Probe(
        "4.3",
        "void g#(thread float *p) { *p = 1; } kernel void f#(device float *y) { float q = 0; g#(&q); y[0] = q; }",
        "void g#(device float *p) { *p = 1; } kernel void f#(device float *y) { float q = 0; g#(&q); y[0] = q; }"),
    Probe(
        "5.8", "constant int n# = 4; kernel void f#(device float *y) { float q[n#]; q[0] = 1; y[0] = q[0]; }",
        "constant int n# [[function_constant(0)]]; kernel void f#(device float *y) { float q[n#]; q[0] "
            + "= 1; y[0] = q[0]; }"
    ),
    Probe(
        "5.8",
        "constant int n# = 4; template <int N> float g#() { return N; } kernel void f#(device float *y) "
            + "{ y[0] = g#<n#>(); }",
        "constant int n# [[function_constant(0)]]; template <int N> float g#() { return N; } kernel "
            + "void f#(device float *y) { y[0] = g#<n#>(); }"
    ),
    Probe(
        "5.8", "constant float4 n# [[function_constant(0)]]; kernel void f#(device float *y) { y[0] = n#.x; }",
        "constant float2x2 n# [[function_constant(0)]]; kernel void f#(device float *y) { y[0] = n#[0].x; }"),
    Probe(
        "5.8",
        "constant int n# [[function_constant(0)]]; kernel void f#(device float *y) { int m# = n#; m# = 3; y[0] = m#; }",
        "constant int n# [[function_constant(0)]]; kernel void f#(device float *y) { n# = 3; y[0] = n#; }"),
    Probe(
        "5.8", "constant int n# [[function_constant(0)]]; kernel void f#(device float *y) { y[0] = n#; }",
        "kernel void f#(device float *y) { constant int n# [[function_constant(0)]]; y[0] = n#; }"),
    Probe(
        "5.8", "constant int n# = 4; static_assert(n# == 4, \"\"); kernel void f#(device float *y) { y[0] = n#; }",
        "constant int n# [[function_constant(0)]]; static_assert(n# == 4, \"\"); kernel void f#(device "
            + "float *y) { y[0] = n#; }"
    ),
    Probe(
        "5.8",
        "constant int n# [[function_constant(0)]]; kernel void f#(device float *y) { y[0] = "
            + "is_function_constant_defined(n#) ? 1 : 0; }",
        "constant int n# = 3; kernel void f#(device float *y) { y[0] = is_function_constant_defined(n#) ? 1 : 0; }"),
    Probe(
        "5.8.1.1",
        "constant bool n# [[function_constant(0)]]; kernel void f#(device float *y, device float *z "
            + "[[buffer(1), function_constant(n#)]]) { if (n#) y[0] = z[0]; }",
        "constant float4 n# [[function_constant(0)]]; kernel void f#(device float *y, device float *z "
            + "[[buffer(1), function_constant(n#)]]) { y[0] = 1; }"
    ),
    Probe(
        "6.15", "kernel void f#(device atomic_float *y) { atomic_fetch_add_explicit(y, 1.0f, memory_order_relaxed); }",
        "kernel void f#(threadgroup atomic_float *y) { atomic_fetch_add_explicit(y, 1.0f, memory_order_relaxed); }"),
    Probe(
        "6.15", "kernel void f#(device atomic_uint *y) { atomic_fetch_and_explicit(y, 1u, memory_order_relaxed); }",
        "kernel void f#(device atomic_float *y) { atomic_fetch_and_explicit(y, 1.0f, memory_order_relaxed); }"),
    Probe(
        "6.15", "kernel void f#(device atomic_int *y) { atomic_fetch_max_explicit(y, 1, memory_order_relaxed); }",
        "kernel void f#(device atomic_float *y) { atomic_fetch_max_explicit(y, 1.0f, memory_order_relaxed); }"),
    Probe(
        "6.15", "kernel void f#(device atomic_int *y) { atomic_store_explicit(y, 1, memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { atomic_store_explicit(y, 1, memory_order_seq_cst); }"),
    Probe(
        "6.15",
        "kernel void f#(device atomic_int *y) { atomic_store_explicit(y, atomic_load_explicit(y, "
            + "memory_order_relaxed), memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { atomic_store_explicit(y, atomic_load_explicit(y, "
            + "memory_order_acquire), memory_order_relaxed); }"
    ),
    Probe(
        "6.15",
        "kernel void f#(device atomic_int *y) { threadgroup atomic_int q; atomic_store_explicit(&q, 1, "
            + "memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { atomic_int q; atomic_store_explicit(&q, 1, memory_order_relaxed); }"),
    Probe(
        "6.15", "kernel void f#(device atomic_int *y) { atomic_store_explicit(y, 1, memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { *y = 1; }"),
    Probe(
        "6.15", "kernel void f#(device atomic_int *y) { atomic_fetch_add_explicit(y, 1, memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { (*y)++; }"),
    Probe(
        "6.15",
        "kernel void f#(device atomic_int *y) { device atomic_int *q = y; atomic_store_explicit(q, 1, "
            + "memory_order_relaxed); }",
        "kernel void f#(device atomic_int *y) { atomic_int q = *y; }"),
    Probe(
        "6.15", "kernel void f#(device atomic<uint> *y) { atomic_store_explicit(y, 1u, memory_order_relaxed); }",
        "kernel void f#(device atomic<half> *y) { atomic_store_explicit(y, 1.0h, memory_order_relaxed); }"),
    Probe(
        "6.15",
        "kernel void f#(const device atomic_int *y, device int *z) { z[0] = atomic_load_explicit(y, "
            + "memory_order_relaxed); }",
        "kernel void f#(constant atomic_int *y, device int *z) { z[0] = atomic_load_explicit(y, "
            + "memory_order_relaxed); }"
    ),
    Probe(
        "6.15", "kernel void f#(device atomic_bool *y) { atomic_store_explicit(y, true, memory_order_relaxed); }",
        "kernel void f#(device atomic_bool *y) { atomic_fetch_add_explicit(y, true, memory_order_relaxed); }"),
    Probe(
        "6.15", "kernel void f#(device atomic_ulong *y) { atomic_max_explicit(y, 1ul, memory_order_relaxed); }",
        "kernel void f#(device atomic_ulong *y) { atomic_fetch_add_explicit(y, 1ul, memory_order_relaxed); }"),
    Probe(
        "6.12", "kernel void f#(texture2d<float, access::read> t, device float *y) { y[0] = t.read(uint2(0)).x; }",
        "kernel void f#(texture2d<float, access::write> t, device float *y) { y[0] = t.read(uint2(0)).x; }"),
    Probe(
        "6.12", "kernel void f#(texture_buffer<float> t, device float *y) { y[0] = t.read(0u).x; }",
        "kernel void f#(texture_buffer<float> t, sampler s, device float *y) { y[0] = t.sample(s, 0.0f).x; }"),
    Probe(
        "6.12", "kernel void f#(depth2d<float, access::read> t, device float *y) { y[0] = t.read(uint2(0)); }",
        "kernel void f#(depth2d<float, access::write> t) { t.write(1.0f, uint2(0)); }"),
    Probe(
        "2.9", "kernel void f#(depth2d<float> t, sampler s, device float *y) { y[0] = t.sample(s, float2(0)); }",
        "kernel void f#(depth2d<half> t, sampler s, device float *y) { y[0] = t.sample(s, float2(0)); }"),
    Probe(
        "2.9", "kernel void f#(texture2d<float> t) {}",
        "kernel void f#(texture2d<float4> t) {}"),
    Probe(
        "2.9", "kernel void f#(texture2d<short> t) {}",
        "kernel void f#(texture2d<char> t) {}"),
    Probe(
        "2.9", "kernel void f#(texture2d<float, access::sample> t) {}",
        "kernel void f#(texture_buffer<float, access::sample> t) {}"),
    Probe(
        "2.9", "kernel void f#(texture2d<float> t, device float *y) { texture2d<float> q = t; y[0] = q.get_width(); }",
        "texture2d<float> q; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "2.10",
        "constexpr sampler s#(filter::linear); kernel void f#(texture2d<float> t, device float *y) { "
            + "y[0] = t.sample(s#, float2(0)).x; }",
        "sampler s#(filter::linear); kernel void f#(texture2d<float> t, device float *y) { y[0] = "
            + "t.sample(s#, float2(0)).x; }"
    ),
    Probe(
        "2.10",
        "constexpr sampler s#(address::repeat); kernel void f#(texture2d<float> t, device float *y) { "
            + "y[0] = t.sample(s#, float2(0)).x; }",
        "constexpr sampler s#(address::wrap); kernel void f#(texture2d<float> t, device float *y) { "
            + "y[0] = t.sample(s#, float2(0)).x; }"
    ),
    Probe(
        "6.12", "kernel void f#(texture2d<float> t, sampler s, device float *y) { y[0] = t.sample(s, float2(0)).x; }",
        "kernel void f#(texture2d<float> t, sampler s, device float *y) { y[0] = t.sample(s, uint3(0)).x; }"),
    Probe(
        "6.12", "kernel void f#(texture2d<float> t, sampler s, device float *y) { y[0] = t.gather(s, float2(0)).x; }",
        "kernel void f#(texture3d<float> t, sampler s, device float *y) { y[0] = t.gather(s, float3(0)).x; }"),
    Probe(
        "6.12",
        "kernel void f#(texture2d<float> t, sampler s, device float *y) { y[0] = t.sample(s, float2(0), level(0)).x; }",
        "kernel void f#(texture2d<float> t, sampler s, device float *y) { y[0] = "
            + "t.calculate_unclamped_lod(s, float2(0)); }"
    ),
    Probe(
        "6.5", "kernel void f#(device float *y) { y[0] = fabs(y[1]); }",
        "kernel void f#(device float *y) { y[0] = dfdx(y[1]); }"),
    Probe(
        "6.5", "kernel void f#(device float *y) { return; }",
        "kernel void f#(device float *y) { discard_fragment(); }"),
    Probe(
        "5.1", "kernel void f#(device float *y, uint i [[thread_position_in_grid]]) { y[i] = 1; }",
        "kernel void f#(device float *y, bool i [[front_facing]]) { y[0] = i; }"),
    Probe(
        "5.2", "kernel void f#(device float *y, uint i [[thread_index_in_simdgroup]]) { y[i] = 1; }",
        "kernel void f#(device float *y, uint i [[sample_id]]) { y[i] = 1; }"),
    Probe(
        "5.2", "kernel void f#(device float *y, uint i [[thread_index_in_quadgroup]]) { y[i] = 1; }",
        "kernel void f#(device float *y, uint i [[instance_id]]) { y[i] = 1; }"),
    Probe(
        "5.2", "kernel void f#(device float *y [[buffer(0)]]) { y[0] = 1; }",
        "struct P# { float a; }; kernel void f#(object_data P# &p [[payload]]) { p.a = 1; }"),
    Probe(
        "6.13", "kernel void f#(device float *y [[buffer(0)]]) { y[0] = 1; }",
        "kernel void f#(mesh_grid_properties m, device float *y) { y[0] = 1; }"),
    Probe(
        "5.1.7", "[[max_total_threads_per_threadgroup(64)]] kernel void f#(device float *y) { y[0] = 1; }",
        "[[max_total_threads_per_threadgroup(0)]] kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "5.1.7", "[[max_total_threads_per_threadgroup(1024)]] kernel void f#(device float *y) { y[0] = 1; }",
        "[[max_total_threads_per_threadgroup(-4)]] kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "5.2",
        "kernel void f#(device float *y, uint i [[thread_position_in_grid]], uint j "
            + "[[thread_index_in_threadgroup]]) { y[i] = j; }",
        "kernel void f#(device float *y, uint i [[thread_position_in_grid, thread_index_in_threadgroup]]) { y[i] = 1; }"
    ),
    Probe(
        "5.1", "kernel void f#(device float *y) { y[0] = 1; } kernel void g#(device int *y) { y[0] = 1; }",
        "kernel void f#(device float *y) { y[0] = 1; } kernel void f#(device int *y) { y[0] = 1; }"),
    Probe(
        "5.1", "kernel void f#(device float *y, constant float &x) { y[0] = x; }",
        "kernel void f#(device float *y, uint i [[thread_position_in_grid]] = 0) { y[i] = 1; }"),
    Probe(
        "5.1", "struct A# { float a; }; kernel void f#(device float *y, constant A# &a) { y[0] = a.a; }",
        "struct A# { float a; }; kernel void f#(device float *y, A# a [[buffer(1)]]) { y[0] = a.a; }"),
    Probe(
        "2.8", "kernel void f#(device float *y) { array<float, 2> q = {1, 2}; y[0] = q[0]; }",
        "kernel void f#(device float *y) { array<float, -1> q; y[0] = 1; }"),
    Probe(
        "6.9", "kernel void f#(device float *y) { threadgroup_barrier(mem_flags::mem_none); y[0] = 1; }",
        "kernel void f#(device float *y) { threadgroup_barrier(); y[0] = 1; }"),
    Probe(
        "6.9", "kernel void f#(device float *y) { y[0] = simd_shuffle(y[0], ushort(1)); }",
        "struct A# { float a; }; kernel void f#(device float *y) { A# a = {1}; y[0] = simd_shuffle(a, ushort(1)).a; }"),
    Probe(
        "6.9", "kernel void f#(device int *y) { y[0] = simd_sum(y[1]); }",
        "kernel void f#(device int *y) { y[0] = simd_sum(y[1] > 0); }"),
    Probe(
        "6.9", "kernel void f#(device int *y) { y[0] = simd_and(y[1]); }",
        "kernel void f#(device float *y) { y[0] = simd_and(y[1]); }"),
    Probe(
        "6.9", "kernel void f#(device int *y) { y[0] = simd_sum(y[1]); }",
        "kernel void f#(device long *y) { y[0] = simd_sum(y[1]); }"),
    Probe(
        "2.4", "kernel void f#(device float *y) { simdgroup_matrix<float, 8, 8> m(1); simdgroup_store(m, y); }",
        "kernel void f#(device int *y) { simdgroup_matrix<int, 8, 8> m(1); simdgroup_store(m, y); }"),
    Probe(
        "2.4", "kernel void f#(device float *y) { simdgroup_float8x8 m(1); simdgroup_store(m, y); }",
        "kernel void f#(device float *y) { simdgroup_matrix<float, 4, 4> m(1); simdgroup_store(m, y); }"),
    Probe(
        "2.4", "kernel void f#(device float *y) { simdgroup_float8x8 m; simdgroup_load(m, y); simdgroup_store(m, y); }",
        "kernel void f#(device half *y, device float *z) { simdgroup_float8x8 m; simdgroup_load(m, y); "
            + "simdgroup_store(m, z); }"
    ),
    Probe(
        "1.5",
        "template <typename... A#> float g#(A#... a) { return sizeof...(a); } kernel void f#(device "
            + "float *y) { y[0] = g#(1, 2); }",
        "float g#(int n, ...) { return n; } kernel void f#(device float *y) { y[0] = g#(1, 2); }"),
    Probe(
        "1.5",
        "struct A# { static constexpr constant float a = 1; }; kernel void f#(device float *y) { y[0] = A#::a; }",
        "struct A# { static float a; }; kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "1.5", "struct A# { ~A#() thread {} }; kernel void f#(device float *y) { A# a; y[0] = 1; }",
        "struct A# { void *operator new(size_t n); }; kernel void f#(device float *y) { A# a; y[0] = 1; }"),
    Probe(
        "1.5", "float g#(float x) { return x; } kernel void f#(device float *y) { y[0] = g#(1); }",
        "float (*g#)(float); kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "2.1", "kernel void f#(device int *y) { y[0] = y[0] << 2; }",
        "kernel void f#(device half *y) { y[0] = y[0] << 2; }"),
    Probe(
        "2.1", "kernel void f#(device float *y) { y[0] = fmod(y[0], 2.0f); }",
        "kernel void f#(device float *y) { y[0] = y[0] % 2.0f; }"),
    Probe(
        "2.5", "kernel void f#(device packed_float3 *y) { y[0] = packed_float3(1); }",
        "kernel void f#(device packed_float3 *y) { y[0] = packed_float5(1); }"),
    Probe(
        "2.13", "struct A# { device float *p [[id(0)]]; }; kernel void f#(constant A# &a) { a.p[0] = 1; }",
        "struct A# { device float *p [[id(-1)]]; }; kernel void f#(constant A# &a) { a.p[0] = 1; }"),
    Probe(
        "2.13",
        "struct A# { device float *p [[id(0)]]; float v [[id(1)]]; }; kernel void f#(constant A# &a) { a.p[0] = a.v; }",
        "struct A# { threadgroup float *p [[id(0)]]; }; kernel void f#(constant A# &a) { a.p[0] = 1; }"),
    Probe(
        "5.2.1", "struct A# { float a; }; kernel void f#(threadgroup A# *a [[threadgroup(0)]]) { a[0].a = 1; }",
        "struct A# { device float *a; }; kernel void f#(device A# *a [[threadgroup(0)]]) { a[0].a[0] = 1; }"),
    Probe(
        "4.8", "kernel void f#(device float *y) { y[0] = 1; }",
        "kernel void f#(coherent(device) threadgroup float *y) { y[0] = 1; }"),
    Probe(
        "4.5", "kernel void f#(device float *y) { y[0] = 1; }",
        "kernel void f#(ray_data float *y) { y[0] = 1; }"),
    Probe(
        "4.7", "kernel void f#(device float *y) { threadgroup float q; q = 1; y[0] = q; }",
        "kernel void f#(device float *y) { object_data float q; y[0] = 1; }"),
]

final class IllegalDeclarationTests: XCTestCase {
    private let probes = declarationProbes + formProbes

    private func errors(_ source: String) -> [Substring] {
        do {
            _ = try KernelLibrary("#include <metal_stdlib>\nusing namespace metal;\n#line 1\n" + source)
            return []
        } catch { return "\(error)".split(separator: "\n").filter { $0.contains("error:") } }
    }

    private func program(_ declaration: String, number: Int) -> String {
        declaration.replacingOccurrences(of: "#", with: "\(number)")
    }

    private static func line(_ error: Substring) -> Int? {
        error.split(separator: ":").dropFirst().first.flatMap { Int($0) }
    }

    func testLegalDeclarationsCompile() {
        let source = probes.enumerated().map { program($1.legal, number: $0) }.joined(separator: "\n")
        for error in errors(source) {
            let probe = probes[(Self.line(error) ?? 1) - 1]
            XCTFail("\(probe.section): \(probe.legal)\n\(error)")
        }
    }

    /// Errors of one phase of the compiler hide those of later phases, so probes without an error are compiled again
    /// without the others, and the remaining ones one by one.
    func testIllegalDeclarationsAreRefused() {
        var left = Array(probes.enumerated())
        var reported = Set<Int>()
        repeat {
            let source = left.map { program($1.illegal, number: $0) }.joined(separator: "\n")
            reported = Set(errors(source).compactMap(Self.line))
            left = zip(1..., left).filter { !reported.contains($0.0) }.map(\.1)
        } while reported.count > 4
        for (number, probe) in left where errors(program(probe.illegal, number: number)).isEmpty {
            XCTFail("\(probe.section): accepted, but Metal refuses it: \(probe.illegal)")
        }
    }
}
