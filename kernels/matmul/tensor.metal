// out = alpha a b + beta input (product.h) for half and bfloat, by the matrix units of Apple10 GPUs (M5, A19).
//
// The tensor form of tiled.metal, which computes the same sums in the same tiles where a GPU has no tensors:
//
//     sums = 0                                        in the registers of all SIMD-groups
//     for each DEPTH of k:
//         a_tile, b_tile = the next DEPTH columns of a and rows of b, 0 out of bounds
//         sums += a_tile b_tile                       one matmul2d of ROWS x COLUMNS x DEPTH
//     out = alpha sums + beta input                   only elements in bounds
//
// Grid: threadgroups (n / COLUMNS, m / ROWS, batch * splits), rounded up. The tile sizes are rows of the table in
// src/ops/matmul/tiles.ts; matmul2d requires that one of ROWS and COLUMNS is a multiple of 16, and COLUMNS of 8.
// Compiled at Metal 4.0.

#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;

#include "common/matrix.h"
#include "matmul/product.h"

constant uint a_quads [[function_constant(0)]];  // whether four elements may be loaded at once
constant uint b_quads [[function_constant(1)]];

// a      [[buffer(0)]]  m x k
// b      [[buffer(1)]]  k x n
// input  [[buffer(2)]]  m x n; not read without has_input
// out    [[buffer(3)]]  m x n; the partial sums if they are split
//
// A_DOWN, B_DOWN: whether a tile is stored transposed, so that elements that are adjacent in memory are adjacent in it.
template <typename T, typename Out, int ROWS, int COLUMNS, int DEPTH, int SIMDGROUPS, int A_DOWN, int B_DOWN>
kernel void tensor_tiled(
    PRODUCT_ARGUMENTS(T, Out),
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    constexpr int threads = 32 * SIMDGROUPS;
    constexpr int a_elements = tile_elements<T>(ROWS, DEPTH);
    constexpr int b_elements = tile_elements<T>(DEPTH, COLUMNS);
    constexpr int a_inner = A_DOWN ? ROWS : DEPTH;
    constexpr int a_outer = A_DOWN ? DEPTH : ROWS;
    constexpr int b_inner = B_DOWN ? DEPTH : COLUMNS;
    constexpr int b_outer = B_DOWN ? COLUMNS : DEPTH;

    // Declared as float4, since loads of four elements need that alignment.
    threadgroup float4 memory[(a_elements + b_elements) * int(sizeof(T)) / 16];
    threadgroup T *a_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *b_tile = a_tile + a_elements;

    const ProductPart part = product_part(product, group.z);
    const long row = long(group.y) * ROWS;
    const long column = long(group.x) * COLUMNS;
    device const T *a_matrix = a + matrix_offset(product, PRODUCT_A, part.batch) + row * product.row_strides[PRODUCT_A];
    device const T *b_matrix =
        b + matrix_offset(product, PRODUCT_B, part.batch) + column * product.column_strides[PRODUCT_B];
    const long a_across = product.column_strides[PRODUCT_A];
    const long a_down = product.row_strides[PRODUCT_A];
    const long b_across = product.column_strides[PRODUCT_B];
    const long b_down = product.row_strides[PRODUCT_B];

    // Dimension 0 of a tensor is the contiguous one.
    auto a_tensor = tensor(a_tile, dextents<int32_t, 2>(a_inner, a_outer), array<int, 2>({1, tile_pitch<T>(a_inner)}));
    auto b_tensor = tensor(b_tile, dextents<int32_t, 2>(b_inner, b_outer), array<int, 2>({1, tile_pitch<T>(b_inner)}));
    constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(
        ROWS, COLUMNS, DEPTH, A_DOWN != 0, B_DOWN != 0, false, mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);
    mpp::tensor_ops::matmul2d<shape, execution_simdgroups<SIMDGROUPS>> multiply;
    auto sums = multiply.template get_destination_cooperative_tensor<decltype(a_tensor), decltype(b_tensor), float>();
    for (ushort i = 0; i < sums.get_capacity(); ++i) {
        sums[i] = 0.0f;
    }

    for (long k = part.first; k < part.last; k += DEPTH) {
        device const T *a_next = a_matrix + k * a_across;
        device const T *b_next = b_matrix + k * b_down;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        load_tile<T, a_outer, a_inner, threads>(
            a_tile, a_next, A_DOWN ? a_across : a_down, A_DOWN ? a_down : a_across,
            A_DOWN ? part.last - k : product.m - row, A_DOWN ? product.m - row : part.last - k, a_quads, thread_index);
        load_tile<T, b_outer, b_inner, threads>(
            b_tile, b_next, B_DOWN ? b_across : b_down, B_DOWN ? b_down : b_across,
            B_DOWN ? product.n - column : part.last - k, B_DOWN ? part.last - k : product.n - column, b_quads,
            thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        multiply.run(a_tensor, b_tensor, sums);
    }

    device const Out *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, part.batch);
    device Out *out_matrix = out + out_offset(product, part.batch, part.split);
    for (ushort i = 0; i < sums.get_capacity(); ++i) {
        if (!sums.is_valid_element(i)) {
            continue;
        }
        const auto place = sums.get_multidimensional_index(i);
        const long at_row = row + place[1];
        const long at_column = column + place[0];
        if (at_row < product.m && at_column < product.n) {
            write_element(product, input_matrix, out_matrix, at_row, at_column, sums[i]);
        }
    }
}

#define TENSOR_TILED(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, A, B)                                                 \
    template [[host_name("tensor_tiled_" #T "_" #Out "_" #ROWS "x" #COLUMNS "x" #DEPTH "_" #A #B)]] kernel void      \
    tensor_tiled<T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, A, B>(                                                    \
        device const T *, device const T *, device const Out *, device Out *, constant Product &, uint3, uint);

#define TENSOR_TILED_LAYOUTS(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS)     \
    TENSOR_TILED(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, 0, 0)           \
    TENSOR_TILED(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, 0, 1)           \
    TENSOR_TILED(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, 1, 0)           \
    TENSOR_TILED(T, Out, ROWS, COLUMNS, DEPTH, SIMDGROUPS, 1, 1)

// Out is float if sums are split into parts.
#define TENSOR_TILED_TYPES(ROWS, COLUMNS, DEPTH, SIMDGROUPS)               \
    TENSOR_TILED_LAYOUTS(half, half, ROWS, COLUMNS, DEPTH, SIMDGROUPS)     \
    TENSOR_TILED_LAYOUTS(half, float, ROWS, COLUMNS, DEPTH, SIMDGROUPS)    \
    TENSOR_TILED_LAYOUTS(bfloat, bfloat, ROWS, COLUMNS, DEPTH, SIMDGROUPS) \
    TENSOR_TILED_LAYOUTS(bfloat, float, ROWS, COLUMNS, DEPTH, SIMDGROUPS)

TENSOR_TILED_TYPES(16, 16, 16, 4)
TENSOR_TILED_TYPES(16, 64, 32, 4)
TENSOR_TILED_TYPES(64, 16, 32, 4)
TENSOR_TILED_TYPES(32, 32, 32, 4)
TENSOR_TILED_TYPES(64, 64, 32, 4)
