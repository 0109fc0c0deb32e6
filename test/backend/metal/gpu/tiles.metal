// A product of 2 x 2 matrices of 8 x 8, as kernels compute it: for the test of the instructions that it becomes.
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void tiles(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device float *out [[buffer(2)]]) {
    simdgroup_matrix<T, 8, 8> left[2];
    simdgroup_matrix<T, 8, 8> right[2];
    simdgroup_matrix<float, 8, 8> sums[2][2];
    for (int i = 0; i < 2; i += 1) {
        simdgroup_load(left[i], a + i * 128, 16);
        simdgroup_load(right[i], b + i * 8, 16);
        for (int j = 0; j < 2; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0);
        }
    }
    for (int i = 0; i < 2; i += 1) {
        for (int j = 0; j < 2; j += 1) {
            simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
        }
    }
    for (int i = 0; i < 2; i += 1) {
        for (int j = 0; j < 2; j += 1) {
            simdgroup_store(sums[i][j], out + i * 128 + j * 8, 16);
        }
    }
}

template [[host_name("tiles_half")]] kernel void tiles<half>(device const half *, device const half *, device float *);
template [[host_name("tiles_bfloat")]] kernel void
tiles<bfloat>(device const bfloat *, device const bfloat *, device float *);
