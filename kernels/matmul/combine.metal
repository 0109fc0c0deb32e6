// out = alpha (the sum of the parts) + beta input (product.h): the second pass of products whose sums were split along
// k.
//
// One thread per element, grid (n, m, batch). Parts are added in order, in blocks of 16, so that the result is the same
// in every run, and the error does not grow with the number of parts.

#include <metal_stdlib>
using namespace metal;

#include "matmul/product.h"

#define COMBINE_BLOCK 16

// parts  [[buffer(0)]]  splits x batch x m x n, row-major, float32
// input  [[buffer(1)]]  m x n; not read without has_input
// out    [[buffer(2)]]  m x n
template <typename T>
kernel void combine(
    device const float *parts [[buffer(0)]],
    device const T *input [[buffer(1)]],
    device T *out [[buffer(2)]],
    constant Product &product [[buffer(3)]],
    uint3 position [[thread_position_in_grid]]) {
    const long element = (long(position.z) * product.m + position.y) * product.n + position.x;
    float total = 0.0f;
    for (long block = 0; block < product.splits; block += COMBINE_BLOCK) {
        float sum = 0.0f;
        for (long split = block; split < min(product.splits, block + COMBINE_BLOCK); split += 1) {
            sum += parts[split * product.split_stride + element];
        }
        total += sum;
    }
    device const T *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, position.z);
    write_element(product, input_matrix, out + out_offset(product, position.z, 0), position.y, position.x, total);
}

#define COMBINE(T)                                                \
    template [[host_name("combine_" #T)]] kernel void combine<T>( \
        device const float *, device const T *, device T *, constant Product &, uint3);

COMBINE(float)
COMBINE(half)
COMBINE(bfloat)
