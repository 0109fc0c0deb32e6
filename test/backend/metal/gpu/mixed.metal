// A product of float by a type of 16 bits: for the test of the instructions that it becomes.
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void mixed(device const float *a [[buffer(0)]], device const T *b [[buffer(1)]],
                  device float *out [[buffer(2)]]) {
  simdgroup_matrix<float, 8, 8> left;
  simdgroup_matrix<T, 8, 8> right;
  simdgroup_matrix<float, 8, 8> sums = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8, ulong2(0), true);
  simdgroup_multiply_accumulate(sums, left, right, sums);
  simdgroup_store(sums, out, 8);
}

template [[host_name("mixed_half")]] kernel void mixed<half>(device const float *, device const half *, device float *);
template [[host_name("mixed_bfloat")]] kernel void mixed<bfloat>(device const float *, device const bfloat *,
                                                                 device float *);
