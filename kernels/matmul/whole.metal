// out = alpha a b + beta input (product.h) for integers, which wrap around. Sums are computed modulo 2^32, or 2^64 for
// long, and truncated to the type at the end; this equals arithmetic modulo the type's range.
//
// A threadgroup computes 16 x 16 elements, one per thread, from tiles of 16 x 16 of a and b. Grid: threadgroups (n /
// 16, m / 16, batch), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "matmul/product.h"

#define WHOLE_TILE 16

// Unsigned, since signed overflow is undefined in C++.
template <typename T> struct Modular {
    using type = uint;
};
template <> struct Modular<long> {
    using type = ulong;
};

template <typename T>
kernel void whole(
    PRODUCT_ARGUMENTS(T, T),
    uint3 group [[threadgroup_position_in_grid]],
    uint3 thread_position [[thread_position_in_threadgroup]]) {
    using Number = typename Modular<T>::type;
    threadgroup T a_tile[WHOLE_TILE][WHOLE_TILE];
    threadgroup T b_tile[WHOLE_TILE][WHOLE_TILE];
    const int x = int(thread_position.x);
    const int y = int(thread_position.y);
    const long row = long(group.y) * WHOLE_TILE + y;
    const long column = long(group.x) * WHOLE_TILE + x;
    device const T *a_row = a + matrix_offset(product, PRODUCT_A, group.z) + row * product.row_strides[PRODUCT_A];
    device const T *b_column =
        b + matrix_offset(product, PRODUCT_B, group.z) + column * product.column_strides[PRODUCT_B];

    Number sum = 0;
    for (long k = 0; k < product.k; k += WHOLE_TILE) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        a_tile[y][x] = row < product.m && k + x < product.k ? a_row[(k + x) * product.column_strides[PRODUCT_A]] : T(0);
        b_tile[y][x] =
            column < product.n && k + y < product.k ? b_column[(k + y) * product.row_strides[PRODUCT_B]] : T(0);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int i = 0; i < WHOLE_TILE; i += 1) {
            sum += Number(a_tile[y][i]) * Number(b_tile[i][x]);
        }
    }
    if (row < product.m && column < product.n) {
        Number value = Number(product.whole_alpha) * sum;
        if (product.has_input) {
            const long from =
                matrix_offset(product, PRODUCT_INPUT, group.z) + element_offset(product, PRODUCT_INPUT, row, column);
            value += Number(product.whole_beta) * Number(input[from]);
        }
        out[out_offset(product, group.z, 0) + element_offset(product, PRODUCT_OUT, row, column)] = T(value);
    }
}

#define WHOLE(T)                                              \
    template [[host_name("whole_" #T)]] kernel void whole<T>( \
        device const T *, device const T *, device const T *, device T *, constant Product &, uint3, uint3);

WHOLE(long)
WHOLE(int)
WHOLE(uint)
WHOLE(char)
WHOLE(uchar)
