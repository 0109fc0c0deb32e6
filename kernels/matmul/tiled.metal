// out = alpha a b + beta input (product.h) for floats: sums in float32, in the registers of simdgroup_matrix.
//
// A threadgroup computes a tile of ROWS x COLUMNS of one matrix of the batch, which its DOWN x ACROSS SIMD-groups
// divide.
//
//     sums = 0
//     for each DEPTH of k:
//         a_tile, b_tile = the next DEPTH columns of a and rows of b, 0 out of bounds
//         sums += a_tile b_tile                       in products of 8 x 8
//     out = alpha sums + beta input                   only elements in bounds
//
// Grid: threadgroups (n / COLUMNS, m / ROWS, batch * splits), rounded up. The tile sizes are rows of the table in
// src/ops/matmul/tiles.ts. Any sizes and strides are supported; loads and stores at the edges are guarded.

#include <metal_stdlib>
using namespace metal;

#include "matmul/tiled.h"

// The fields of `TileLayout`.
constant uint a_transposed [[function_constant(0)]];
constant uint a_quads [[function_constant(1)]];
constant uint b_transposed [[function_constant(2)]];
constant uint b_quads [[function_constant(3)]];

// a      [[buffer(0)]]  m x k
// b      [[buffer(1)]]  k x n
// input  [[buffer(2)]]  m x n; not read without has_input
// out    [[buffer(3)]]  m x n; the partial sums if they are split
template <typename T, typename Out, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS>
kernel void tiled(
    PRODUCT_ARGUMENTS(T, Out),
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    // Declared as float4, since loads of four elements need that alignment.
    threadgroup float4 memory[tiled_memory<T, ROWS, COLUMNS, DEPTH, DOWN, ACROSS>()];
    const TileLayout layout = {a_transposed, a_quads, b_transposed, b_quads};
    const ProductResult<Out> result = {input, out};
    tiled_product<T, ROWS, COLUMNS, DEPTH, DOWN, ACROSS>(
        a, b, product, layout, result, memory, group, thread_index, simdgroup_index, lane);
}

#define TILED(T, Out, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)                                                            \
    template [[host_name("tiled_" #T "_" #Out "_" #ROWS "x" #COLUMNS "x" #DEPTH)]] kernel void                       \
    tiled<T, Out, ROWS, COLUMNS, DEPTH, DOWN, ACROSS>(                                                               \
        device const T *, device const T *, device const Out *, device Out *, constant Product &, uint3, uint, uint, \
        uint);

// Out is float if sums are split into parts.
#define TILED_TYPES(ROWS, COLUMNS, DEPTH, DOWN, ACROSS)       \
    TILED(float, float, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)   \
    TILED(half, half, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)     \
    TILED(half, float, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)    \
    TILED(bfloat, bfloat, ROWS, COLUMNS, DEPTH, DOWN, ACROSS) \
    TILED(bfloat, float, ROWS, COLUMNS, DEPTH, DOWN, ACROSS)

TILED_TYPES(16, 16, 16, 2, 2)
TILED_TYPES(8, 64, 32, 1, 4)
TILED_TYPES(64, 8, 32, 4, 1)
TILED_TYPES(16, 64, 32, 2, 2)
TILED_TYPES(64, 16, 32, 2, 2)
TILED_TYPES(32, 32, 32, 2, 2)
TILED_TYPES(64, 64, 32, 2, 2)
