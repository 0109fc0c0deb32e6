// Overloads that differ in address spaces, so that the text keeps them, beside each kind of threadgroup memory.
#include <metal_stdlib>
using namespace metal;

inline float weighted(device const float *values, uint i) { return values[i]; }
inline float weighted(threadgroup const float *values, uint i) { return 2 * values[i]; }
inline float weighted(constant const float *values, uint i) { return 3 * values[i]; }

kernel void blend(device float *y [[buffer(0)]], constant float *c [[buffer(1)]],
                  threadgroup float *given [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float own[64];
  threadgroup atomic_uint count;
  own[i] = y[i];
  given[i] = float(i);
  if (i == 0) atomic_store_explicit(&count, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);
  y[i] = weighted(own, i) + weighted(given, 63 - i) + weighted(y, i) + weighted(c, i);
}

kernel void product(device const half *x [[buffer(0)]], device float *y [[buffer(1)]],
                    threadgroup half *given [[threadgroup(0)]], uint i [[thread_index_in_simdgroup]]) {
  threadgroup half own[64];
  threadgroup float result[64];
  simdgroup_half8x8 a, b;
  simdgroup_float8x8 c(0);
  for (uint k = i; k < 64; k += 32) own[k] = given[k] = x[k];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(a, own, 8);
  simdgroup_load(b, given, 8, 0, true);
  simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, result, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = weighted(result, i) + weighted(y, i);
}
