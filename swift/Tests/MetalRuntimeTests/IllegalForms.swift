/// Further forms that the Metal Shading Language rejects: pointers of kernels, attributes of the wrong kind, keywords
/// as names, types and literals of other languages, constants, and resources that overlap. A `#` stands for the probe's
/// number.
let formProbes = [
    Probe(
        "4", "kernel void f#(device float *device *a [[buffer(0)]]) { a[0][0] = 1; }",
        "kernel void f#(device float **a [[buffer(0)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(device float *constant *a [[buffer(0)]]) { a[0][0] = 1; }",
        "kernel void f#(device float *thread *a [[buffer(0)]]) {}"),
    Probe(
        "4.2", "kernel void f#(device float *constant *a [[buffer(0)]]) { a[0][0] = 1; }",
        "kernel void f#(device float *constant *a [[buffer(0)]]) { a[0] = nullptr; }"),
    Probe(
        "4.2",
        "constant float v# = 1; constant float *constant q# = &v#; kernel void f#(device float *y) { y[0] = *q#; }",
        "constant float v# = 1; constant float *q# = &v#; kernel void f#(device float *y) { y[0] = *q#; }"),
    Probe(
        "4.2", "constant float2 q# = {1, 2}; kernel void f#(device float *y) { y[0] = q#.x; }",
        "constant float2 q# = {1, 2, 3}; kernel void f#(device float *y) { y[0] = q#.x; }"),
    Probe(
        "4.4",
        "kernel void f#(device float *y) { auto g = [](threadgroup float *x) { threadgroup float *z = x; return z[0]; "
            + "}; threadgroup float q; q = 1; y[0] = g(&q); }",
        "kernel void f#(device float *y) { auto g = [](float x) { threadgroup float z; return x; }; y[0] = g(1); }"),
    Probe(
        "5.2.1", "kernel void f#(sampler s [[sampler(0)]]) {}",
        "kernel void f#(sampler s [[texture(0)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(texture2d<float> t [[texture(0)]]) {}",
        "kernel void f#(texture2d<float> t [[sampler(0)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(threadgroup float &t [[threadgroup(0)]]) { t = 1; }",
        "kernel void f#(constant float &t [[threadgroup(0)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(device float *a [[buffer(1)]]) {}",
        "kernel void f#(device float *a [[buffer(0)]] [[buffer(1)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(device float *a [[buffer(1)]]) {}",
        "kernel void f#(device float *a [[buffer(0, 1)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(device float *a [[buffer(1)]]) {}",
        "kernel void f#(device float *a [[buffer(1.5)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(array<texture2d<float>, 2> t [[texture(126)]]) {}",
        "kernel void f#(array<texture2d<float>, 4> t [[texture(126)]]) {}"),
    Probe(
        "5.2.1", "kernel void f#(array<sampler, 2> s [[sampler(14)]]) {}",
        "kernel void f#(array<sampler, 4> s [[sampler(14)]]) {}"),
    Probe(
        "5.2.1",
        "kernel void f#(array<texture2d<float>, 3> t [[texture(0)]], texture2d<float> s [[texture(3)]]) {}",
        "kernel void f#(array<texture2d<float>, 4> t [[texture(0)]], texture2d<float> s [[texture(3)]]) {}"),
    Probe(
        "2.13",
        "struct A# { array<device float *, 2> p [[id(2)]]; device float *q [[id(4)]]; }; kernel void f#(constant A# "
            + "&a) {}",
        "struct A# { array<device float *, 4> p [[id(2)]]; device float *q [[id(4)]]; }; kernel void f#(constant A# "
            + "&a) {}"),
    Probe(
        "2.13", "struct A# { device float *p [[id(2)]]; }; kernel void f#(constant A# &a) {}",
        "struct A# { device float *p [[id(2.5)]]; }; kernel void f#(constant A# &a) {}"),
    Probe(
        "5.1.7", "[[max_total_threads_per_threadgroup(64)]] kernel void f#(device float *y) { y[0] = 1; }",
        "[[max_total_threads_per_threadgroup(64.5)]] kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "5.8", "constant int n# [[function_constant(1)]]; kernel void f#(device float *y) { y[0] = n#; }",
        "constant int n# [[function_constant(1.5)]]; kernel void f#(device float *y) { y[0] = n#; }"),
    Probe(
        "5.8",
        "constant int n# [[function_constant(0)]]; constant int m# = n# + 1; kernel void f#(device float *y) { y[0] = "
            + "m#; }",
        "constant int n# [[function_constant(0)]]; constexpr constant int m# = n# + 1; kernel void f#(device float "
            + "*y) { y[0] = m#; }"),
    Probe(
        "5.1", "kernel void f#(device float4 *y) { float4 vertex_ = 1; y[0] = vertex_; }",
        "kernel void f#(device float4 *y) { float4 vertex = 1; y[0] = vertex; }"),
    Probe(
        "5.1", "kernel void f#(device float4 *y) { float4 fragments = 1; y[0] = fragments; }",
        "kernel void f#(device float4 *y) { float4 fragment = 1; y[0] = fragment; }"),
    Probe(
        "4.5", "kernel void f#(device float *y) { float ray = 1; y[0] = ray; }",
        "kernel void f#(device float *y) { float ray_data = 1; y[0] = ray_data; }"),
    Probe(
        "4.5", "float g#(float object) { return object; } kernel void f#(device float *y) { y[0] = g#(1); }",
        "float g#(float object_data) { return 1; } kernel void f#(device float *y) { y[0] = g#(1); }"),
    Probe(
        "2.1", "kernel void f#(device float *y) { y[0] = 1.0f + 0x1p3f + 1e3f; }",
        "kernel void f#(device float *y) { y[0] = 1.0L; }"),
    Probe(
        "2.1", "kernel void f#(device long *y) { y[0] = 1L + 0xEL; }",
        "kernel void f#(device float *y) { y[0] = 1e3l; }"),
    Probe(
        "2.1", "kernel void f#(device float *y) { long q = 1; y[0] = q; }",
        "kernel void f#(device float *y) { __int128 q = 1; y[0] = q; }"),
    Probe(
        "2.1", "kernel void f#(device float *y) { half q = 1; y[0] = q; }",
        "kernel void f#(device float *y) { _Float16 q = 1; y[0] = q; }"),
    Probe(
        "2.1", "kernel void f#(device float *y) { float2 q = 1; y[0] = q.x; }",
        "kernel void f#(device float *y) { _Complex float q = 1; y[0] = 1; }"),
    Probe(
        "5.9", "kernel void f#(device float *y) { float q = 1; y[0] = q; }",
        "kernel void f#(device float *y) { extern float q; y[0] = 1; }"),
    Probe(
        "6.12", "kernel void f#(texture2d<float, access::read_write> t) { t.fence(); }",
        "kernel void f#(texture2d<float, access::read> t) { t.fence(); }"),
    Probe(
        "1.5.4", "kernel void f#(device float *y) { switch (int(y[0])) { case 1: y[0] = 1; default: y[0] = 2; } }",
        "kernel void f#(device float *y) { if (y[0] > 0) y[0] = 1; end: y[0] = 2; }"),
    Probe(
        "1.5.4", "float main#() { return 1; } kernel void f#(device float *y) { y[0] = main#(); }",
        "float main() { return 1; } kernel void f#(device float *y) { y[0] = main(); }"),
    Probe(
        "2.12", "kernel void f#(device float *y) { float q[1]; q[0] = 1; y[0] = q[0]; }",
        "kernel void f#(device float *y) { float q[0]; y[0] = 1; }"),
    Probe(
        "4",
        "void g#(device const float *thread &p, threadgroup float *thread *q, constant float *const thread &c) { "
            + "p += 1; **q = *p + *c; } kernel void f#(device float *y, constant float &c) { threadgroup float t; "
            + "device const float *p = y; threadgroup float *q = &t; g#(p, &q, &c); y[0] = *p; }",
        "void g#(float *thread &p) { p += 1; } kernel void f#(device float *y) { y[0] = 1; }"),
    Probe(
        "4",
        "template <typename T> T g#(device T *const thread &p, const device T *&q) { q += 1; return *p + *q; } kernel "
            + "void f#(device float *y) { const device float *q = y; y[0] = g#(y + 1, q); }",
        "void g#(device const float *thread &p) { *p = 1; } kernel void f#(device float *y) { y[0] = 1; }"),
]
