// The body of the tiled product (tiled.metal), for kernels that compute several products, or more than a product.

#ifndef ORCHARD_MATMUL_TILED_H
#define ORCHARD_MATMUL_TILED_H

#include "common/matrix.h"
#include "matmul/product.h"

// Whether tiles are stored transposed, so that elements that are adjacent in memory are adjacent in the tile, and
// whether four elements may be loaded at once.
struct TileLayout {
    uint a_transposed;  // 0: ROWS x DEPTH, 1: DEPTH x ROWS
    uint a_quads;
    uint b_transposed;  // 0: DEPTH x COLUMNS, 1: COLUMNS x DEPTH
    uint b_quads;
};

// The float4s of threadgroup memory that a product needs: first for the tiles of a and b, later for a strip of 8 rows
// of sums for each SIMD-group.
template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS> constexpr int tiled_memory() {
    return tile_larger(
               (tile_elements<T>(ROWS, DEPTH) + tile_elements<T>(DEPTH, COLUMNS)) * int(sizeof(T)),
               DOWN * ACROSS * 8 * (COLUMNS / ACROSS) * 4) /
           16;
}

// Writes elements as `write_element` does.
template <typename Out> struct ProductResult {
    device const Out *input;
    device Out *out;

    void write(constant Product &product, long input_start, long out_start, long row, long column, float sum) {
        write_element(product, input + input_start, out + out_start, row, column, sum);
    }
};

// Computes the tile of a threadgroup. `result.write` gets each sum, and the offsets of element (0, 0) of the matrices
// in the input and in the output.
template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS, typename Result>
inline void tiled_product(
    device const T *a,
    device const T *b,
    constant Product &product,
    TileLayout layout,
    Result result,
    threadgroup float4 *memory,
    uint3 group,
    uint thread_index,
    uint simdgroup_index,
    uint lane) {
    constexpr int threads = 32 * DOWN * ACROSS;
    constexpr int simd_rows = ROWS / DOWN / 8;  // rows per SIMD-group, in 8 x 8 matrices
    constexpr int simd_columns = COLUMNS / ACROSS / 8;
    constexpr int strip_columns = simd_columns * 8;
    constexpr int a_elements = tile_elements<T>(ROWS, DEPTH);
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
        if (layout.a_transposed) {
            load_tile<T, DEPTH, ROWS, threads>(
                a_tile, a_next, product.column_strides[PRODUCT_A], product.row_strides[PRODUCT_A], part.last - k,
                product.m - row, layout.a_quads, thread_index);
        } else {
            load_tile<T, ROWS, DEPTH, threads>(
                a_tile, a_next, product.row_strides[PRODUCT_A], product.column_strides[PRODUCT_A], product.m - row,
                part.last - k, layout.a_quads, thread_index);
        }
        if (layout.b_transposed) {
            load_tile<T, COLUMNS, DEPTH, threads>(
                b_tile, b_next, product.column_strides[PRODUCT_B], product.row_strides[PRODUCT_B], product.n - column,
                part.last - k, layout.b_quads, thread_index);
        } else {
            load_tile<T, DEPTH, COLUMNS, threads>(
                b_tile, b_next, product.row_strides[PRODUCT_B], product.column_strides[PRODUCT_B], part.last - k,
                product.n - column, layout.b_quads, thread_index);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (int depth = 0; depth < DEPTH; depth += 8) {
            simdgroup_matrix<T, 8, 8> left[simd_rows];
            simdgroup_matrix<T, 8, 8> right[simd_columns];
            for (int i = 0; i < simd_rows; i += 1) {
                const int at = simd_row + i * 8;
                if (layout.a_transposed) {
                    constexpr int pitch = tile_pitch<T>(ROWS);
                    simdgroup_load(left[i], a_tile + depth * pitch + at, pitch, ulong2(0), true);
                } else {
                    constexpr int pitch = tile_pitch<T>(DEPTH);
                    simdgroup_load(left[i], a_tile + at * pitch + depth, pitch);
                }
            }
            for (int j = 0; j < simd_columns; j += 1) {
                const int at = simd_column + j * 8;
                if (layout.b_transposed) {
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

    const long input_start = matrix_offset(product, PRODUCT_INPUT, part.batch);
    const long out_start = out_offset(product, part.batch, part.split);

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
                result.write(product, input_start, out_start, at_row, at_column, strip[element]);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#endif
