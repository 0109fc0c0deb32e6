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

#include "common/matrix.h"
#include "matmul/product.h"

// Whether tiles are stored transposed, so that elements that are adjacent in memory are adjacent in the tile, and
// whether four elements may be loaded at once.
constant uint a_transposed [[function_constant(0)]];  // 0: ROWS x DEPTH, 1: DEPTH x ROWS
constant uint a_quads [[function_constant(1)]];
constant uint b_transposed [[function_constant(2)]];  // 0: DEPTH x COLUMNS, 1: COLUMNS x DEPTH
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
    constexpr int threads = 32 * DOWN * ACROSS;
    constexpr int simd_rows = ROWS / DOWN / 8;  // rows per SIMD-group, in 8 x 8 matrices
    constexpr int simd_columns = COLUMNS / ACROSS / 8;
    constexpr int strip_columns = simd_columns * 8;
    constexpr int a_elements = tile_elements<T>(ROWS, DEPTH);
    constexpr int b_elements = tile_elements<T>(DEPTH, COLUMNS);
    constexpr int strip_elements = DOWN * ACROSS * 8 * strip_columns;

    // First the tiles of a and b, later a strip of 8 rows of sums for each SIMD-group. Declared as float4, since loads
    // of four elements need that alignment.
    threadgroup float4 memory[tile_larger((a_elements + b_elements) * int(sizeof(T)), strip_elements * 4) / 16];
    threadgroup T *a_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *b_tile = a_tile + a_elements;

    const ProductPart part = product_part(product, group.z);
    const long row = long(group.y) * ROWS;
    const long column = long(group.x) * COLUMNS;
    const int simd_row = int(simdgroup_index) / ACROSS * simd_rows * 8;
    const int simd_column = int(simdgroup_index) % ACROSS * strip_columns;
    device const T *a_matrix = a + matrix_offset(product, PRODUCT_A, part.batch) + row * product.row_strides[PRODUCT_A];
    device const T *b_matrix =
        b + matrix_offset(product, PRODUCT_B, part.batch) + column * product.column_strides[PRODUCT_B];

    simdgroup_matrix<float, 8, 8> sums[simd_rows][simd_columns];
    clear_sums(sums);

    for (long k = part.first; k < part.last; k += DEPTH) {
        device const T *a_next = a_matrix + k * product.column_strides[PRODUCT_A];
        device const T *b_next = b_matrix + k * product.row_strides[PRODUCT_B];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        if (a_transposed) {
            load_tile<T, DEPTH, ROWS, threads>(
                a_tile, a_next, product.column_strides[PRODUCT_A], product.row_strides[PRODUCT_A], part.last - k,
                product.m - row, a_quads, thread_index);
        } else {
            load_tile<T, ROWS, DEPTH, threads>(
                a_tile, a_next, product.row_strides[PRODUCT_A], product.column_strides[PRODUCT_A], product.m - row,
                part.last - k, a_quads, thread_index);
        }
        if (b_transposed) {
            load_tile<T, COLUMNS, DEPTH, threads>(
                b_tile, b_next, product.column_strides[PRODUCT_B], product.row_strides[PRODUCT_B], product.n - column,
                part.last - k, b_quads, thread_index);
        } else {
            load_tile<T, DEPTH, COLUMNS, threads>(
                b_tile, b_next, product.row_strides[PRODUCT_B], product.column_strides[PRODUCT_B], part.last - k,
                product.n - column, b_quads, thread_index);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (int depth = 0; depth < DEPTH; depth += 8) {
            simdgroup_matrix<T, 8, 8> left[simd_rows];
            simdgroup_matrix<T, 8, 8> right[simd_columns];
            for (int i = 0; i < simd_rows; i += 1) {
                const int at = simd_row + i * 8;
                if (a_transposed) {
                    constexpr int pitch = tile_pitch<T>(ROWS);
                    simdgroup_load(left[i], a_tile + depth * pitch + at, pitch, ulong2(0), true);
                } else {
                    constexpr int pitch = tile_pitch<T>(DEPTH);
                    simdgroup_load(left[i], a_tile + at * pitch + depth, pitch);
                }
            }
            for (int j = 0; j < simd_columns; j += 1) {
                const int at = simd_column + j * 8;
                if (b_transposed) {
                    constexpr int pitch = tile_pitch<T>(DEPTH);
                    simdgroup_load(right[j], b_tile + at * pitch + depth, pitch, ulong2(0), true);
                } else {
                    constexpr int pitch = tile_pitch<T>(COLUMNS);
                    simdgroup_load(right[j], b_tile + depth * pitch + at, pitch);
                }
            }
            add_products(sums, left, right);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the last tiles were read

    device const Out *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, part.batch);
    device Out *out_matrix = out + out_offset(product, part.batch, part.split);

    // The layout of elements across lanes is unspecified, so sums go through memory, 8 rows at a time.
    threadgroup float *strip = reinterpret_cast<threadgroup float *>(memory) + int(simdgroup_index) * 8 * strip_columns;
    for (int i = 0; i < simd_rows; i += 1) {
        for (int j = 0; j < simd_columns; j += 1) {
            simdgroup_store(sums[i][j], strip + j * 8, strip_columns);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (int element = int(lane); element < 8 * strip_columns; element += 32) {
            const long at_row = row + simd_row + i * 8 + element / strip_columns;
            const long at_column = column + simd_column + element % strip_columns;
            if (at_row < product.m && at_column < product.n) {
                write_element(product, input_matrix, out_matrix, at_row, at_column, strip[element]);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
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
