// out = x Wᵀ + bias, or x W (product.h), in the registers of simdgroup_matrix. A threadgroup computes a tile of ROWS x
// COLUMNS, which its DOWN x ACROSS SIMD-groups divide.
//
//     sums = 0
//     for each DEPTH of the summed axis:
//         x_tile, w_tile = the next DEPTH columns of x and the corresponding weights, 0 out of bounds
//         sums += x_tile w_tile                       in products of 8 x 8
//     out = sums + bias                               only elements in bounds
//
// Packed weights are copied to threadgroup memory, each byte once, and each value is unpacked once. For x Wᵀ,
// `run_parts` parts of COLUMNS rows, which are whole blocks, are copied at a time; for x W, all COLUMNS of DEPTH rows.
// Values and sums are in float32, as on the other backends. Grid: threadgroups (columns of out / COLUMNS, count /
// ROWS), rounded up.
#include <metal_stdlib>
using namespace metal;

#include "common/matrix.h"
#include "quant/product.h"

constant uint run_parts [[function_constant(7)]];
constant uint x_quads [[function_constant(10)]];  // columns are adjacent, and rows start at multiples of 4 elements

// Loads rows from several batches; the distance between them is not constant.
template <typename T, int ROWS, int DEPTH, int THREADS>
inline void load_batches(
    threadgroup float *tile,
    device const T *x,
    constant QuantProduct &product,
    long row,
    long column,
    long columns,
    int index) {
    for (int at = index; at < ROWS * DEPTH; at += THREADS) {
        const int i = at / DEPTH;
        const int j = at % DEPTH;
        const bool inside = row + i < product.count && column + j < columns;
        const long from = row_start(product, row + i) + (column + j) * product.x_strides[2];
        tile[i * tile_pitch<float>(DEPTH) + j] = inside ? float(x[from]) : 0.0f;
    }
}

enum ProductKind { FORWARD, TRANSPOSED, GATED };

// First the tiles, later a strip of 8 rows of sums for each SIMD-group.
constexpr int tiled_floats(int rows, int columns, int depth, int down, bool is_transposed) {
    const int tiles = rows * tile_pitch<float>(depth) +
                      (is_transposed ? depth * tile_pitch<float>(columns) : columns * tile_pitch<float>(depth));
    return tile_larger(tiles, down * 8 * columns);
}

template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS, ProductKind KIND>
inline void multiply_tile(
    QuantMatrix first_matrix,
    QuantMatrix second_matrix,
    device const T *x,
    device const T *bias,
    device const T *second_bias,
    device T *out,
    constant QuantProduct &product,
    threadgroup uchar *bytes,
    threadgroup float *memory,
    uint2 group,
    uint thread_index,
    uint simdgroup_index,
    uint lane) {
    constexpr int threads = 32 * DOWN * ACROSS;
    constexpr int simd_rows = ROWS / DOWN / 8;  // rows per SIMD-group, in 8 x 8 matrices
    constexpr int simd_columns = COLUMNS / ACROSS / 8;
    constexpr int strip_columns = simd_columns * 8;
    constexpr int x_pitch = tile_pitch<float>(DEPTH);
    constexpr int w_lines = KIND == TRANSPOSED ? DEPTH : COLUMNS;
    constexpr int w_length = KIND == TRANSPOSED ? COLUMNS : DEPTH;
    constexpr int w_pitch = tile_pitch<float>(w_length);
    constexpr int some = w_lines * w_length / threads;  // values that a thread unpacks
    static_assert(some <= 16 && 16 % some == 0, "a thread unpacks values of one half of a part");

    static_assert(KIND != GATED || ACROSS == 2, "a SIMD-group has columns of one of both products");

    threadgroup float *x_tile = memory;
    threadgroup float *w_tile = memory + ROWS * x_pitch;

    const long depth_end = KIND == TRANSPOSED ? product.weights.rows : product.weights.columns;
    const long out_columns = KIND == TRANSPOSED ? product.weights.columns : product.weights.rows;
    const long row = long(group.y) * ROWS;
    constexpr int out_width = KIND == GATED ? COLUMNS / 2 : COLUMNS;
    const long column = long(group.x) * out_width;
    const long last_row = min(row + ROWS, product.count) - 1;
    const bool is_one_batch =
        last_row < product.batch_rows || row / product.batch_rows == last_row / product.batch_rows;
    device const T *first_x = x + row_start(product, row);
    const int simd_row = int(simdgroup_index) / ACROSS * simd_rows * 8;
    const int simd_column = int(simdgroup_index) % ACROSS * strip_columns;
    const int line = int(thread_index) * some / w_length;  // the line of w_tile that this thread unpacks
    const int first = int(thread_index) * some % w_length;
    // For gated products, the first half of the lines are rows of the gate, and the second half rows of `up`.
    const QuantMatrix weights = KIND == GATED && line >= out_width ? second_matrix : first_matrix;
    const int matrix_line = KIND == GATED ? line % out_width : line;

    simdgroup_matrix<float, 8, 8> sums[simd_rows][simd_columns];
    clear_sums(sums);

    for (long k = 0; k < depth_end; k += DEPTH) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        const int run_part = KIND == TRANSPOSED ? 0 : int(k / PART % long(run_parts));
        const int line_parts = KIND == TRANSPOSED ? COLUMNS / PART : int(run_parts);
        if (KIND == TRANSPOSED) {
            load_rows(
                bytes, first_matrix.packed, product.weights, k, column / PART, DEPTH, COLUMNS / PART, int(thread_index),
                threads);
        } else if (run_part == 0) {
            load_rows(
                bytes, first_matrix.packed, product.weights, column, k / PART, out_width, int(run_parts),
                int(thread_index), threads);
            if (KIND == GATED) {
                load_rows(
                    bytes + out_width * bytes_of(int(run_parts)), second_matrix.packed, product.weights, column,
                    k / PART, out_width, int(run_parts), int(thread_index), threads);
            }
        }
        if (is_one_batch) {
            load_tile<float, ROWS, DEPTH, threads>(
                x_tile, first_x + k * product.x_strides[2], product.x_strides[1], product.x_strides[2],
                product.count - row, depth_end - k, x_quads, thread_index);
        } else {
            load_batches<T, ROWS, DEPTH, threads>(x_tile, x, product, row, k, depth_end, int(thread_index));
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const int part = run_part + first / PART;
        float values[some];
        unpack<some>(
            bytes + line * bytes_of(line_parts) + bytes_of(part), part % int(block_parts), first % PART,
            group_scales(
                product.weights, weights.scales, weights.biases, (KIND == TRANSPOSED ? k : column) + matrix_line,
                (KIND == TRANSPOSED ? column / PART : k / PART) + first / PART),
            values);
        for (int i = 0; i < some; i += 1) {
            w_tile[line * w_pitch + first + i] = values[i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (int depth = 0; depth < DEPTH; depth += 8) {
            simdgroup_matrix<float, 8, 8> left[simd_rows];
            simdgroup_matrix<float, 8, 8> right[simd_columns];
            for (int i = 0; i < simd_rows; i += 1) {
                simdgroup_load(left[i], x_tile + (simd_row + i * 8) * x_pitch + depth, x_pitch);
            }
            for (int j = 0; j < simd_columns; j += 1) {
                const int at = simd_column + j * 8;
                if (KIND == TRANSPOSED) {
                    simdgroup_load(right[j], w_tile + depth * w_pitch + at, w_pitch);
                } else {
                    simdgroup_load(right[j], w_tile + at * w_pitch + depth, w_pitch, ulong2(0), true);
                }
            }
            add_products(sums, left, right);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the last tiles were read

    const bool is_whole = row + ROWS <= product.count && column + out_width <= out_columns;
    // The layout of elements across lanes is unspecified, so sums go through memory, 8 rows at a time.
    threadgroup float *strip = memory + int(simdgroup_index) * 8 * strip_columns;
    for (int i = 0; i < simd_rows; i += 1) {
        for (int j = 0; j < simd_columns; j += 1) {
            simdgroup_store(sums[i][j], strip + j * 8, strip_columns);
        }
        const long strip_row = row + simd_row + i * 8;
        if (KIND == GATED) {
            // Two SIMD-groups have the sums of the two products, and divide the epilogue.
            threadgroup const float *gate = memory + int(simdgroup_index) / 2 * 2 * 8 * strip_columns;
            threadgroup const float *up = gate + 8 * strip_columns;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (int element = int(thread_index) % 64; element < 8 * strip_columns; element += 64) {
                const long at_row = strip_row + element / strip_columns;
                const long at_column = column + element % strip_columns;
                if (is_whole || (at_row < product.count && at_column < out_columns)) {
                    out[at_row * out_columns + at_column] =
                        gated_element(gate[element], up[element], bias, second_bias, at_column);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        } else {
            simdgroup_barrier(mem_flags::mem_threadgroup);
            for (int element = int(lane); element < 8 * strip_columns; element += 32) {
                const long at_row = strip_row + element / strip_columns;
                const long at_column = column + simd_column + element % strip_columns;
                if (is_whole || (at_row < product.count && at_column < out_columns)) {
                    out[at_row * out_columns + at_column] = with_bias(strip[element], bias, at_column);
                }
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
}

// packed  [[buffer(0)]]  rows x row_bytes
// scales  [[buffer(1)]]  of groups: rows x columns / group
// biases  [[buffer(2)]]  the same, if there are any
// x       [[buffer(3)]]  count x columns; for x W, count x rows
// bias    [[buffer(4)]]  one value for each column of out, if there is a bias
// out     [[buffer(5)]]  count x rows; for x W, count x columns
// bytes   [[threadgroup(0)]]  packed: COLUMNS rows of run_parts parts; for x W, DEPTH rows of COLUMNS / 32 parts
template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS, ProductKind KIND>
kernel void quant_tiled(
    PRODUCT_ARGUMENTS(T),
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float4 memory[tiled_floats(ROWS, COLUMNS, DEPTH, DOWN, KIND == TRANSPOSED) / 4];
    const QuantMatrix w = {packed, scales, biases};
    multiply_tile<T, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND>(
        w, w, x, bias, bias, out, product, bytes, reinterpret_cast<threadgroup float *>(memory), group, thread_index,
        simdgroup_index, lane);
}

// Multiplies by two matrices; a tile has COLUMNS / 2 rows of each. Buffers 0 to 2 are the gate, and 3 to 5 `up`; each
// has a bias.
template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN>
kernel void quant_gated_tiled(
    GATED_ARGUMENTS(T),
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float4 memory[tiled_floats(ROWS, COLUMNS, DEPTH, DOWN, false) / 4];
    const QuantMatrix gate = {gate_packed, gate_scales, gate_biases};
    const QuantMatrix up = {up_packed, up_scales, up_biases};
    multiply_tile<T, ROWS, COLUMNS, DEPTH, DOWN, 2, GATED>(
        gate, up, x, gate_bias, up_bias, out, product, bytes, reinterpret_cast<threadgroup float *>(memory), group,
        thread_index, simdgroup_index, lane);
}

#define TILED(T, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND)                                              \
    template[[host_name("quant_tiled_" #T suffix)]] kernel void                                                 \
    quant_tiled<T, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND>(                                                   \
        device const uchar *, device const ushort *, device const ushort *, device const T *, device const T *, \
        device T *, constant QuantProduct &, threadgroup uchar *, uint2, uint, uint, uint);

#define GATED_TILED(T, suffix, ROWS, COLUMNS, DEPTH, DOWN)                                                  \
    template[[host_name("quant_gated_tiled_" #T suffix)]] kernel void                                       \
    quant_gated_tiled<T, ROWS, COLUMNS, DEPTH, DOWN>(                                                       \
        device const uchar *, device const ushort *, device const ushort *, device const uchar *,           \
        device const ushort *, device const ushort *, device const T *, device const T *, device const T *, \
        device T *, constant QuantProduct &, threadgroup uchar *, uint2, uint, uint, uint);

// The sizes are rows of the table in src/quant/matmul/tiles.ts.
#define TILED_TYPES(suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND) \
    TILED(float, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND)    \
    TILED(half, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND)     \
    TILED(bfloat, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, KIND)
#define GATED_TYPES(suffix, ROWS, COLUMNS, DEPTH, DOWN)    \
    GATED_TILED(float, suffix, ROWS, COLUMNS, DEPTH, DOWN) \
    GATED_TILED(half, suffix, ROWS, COLUMNS, DEPTH, DOWN)  \
    GATED_TILED(bfloat, suffix, ROWS, COLUMNS, DEPTH, DOWN)

TILED_TYPES("_64x64", 64, 64, 32, 2, 2, FORWARD)
TILED_TYPES("_32x32", 32, 32, 32, 2, 2, FORWARD)
TILED_TYPES("_32x256_transposed", 32, 256, 16, 1, 8, TRANSPOSED)
GATED_TYPES("_64x64", 64, 64, 32, 2)
GATED_TYPES("_32x32", 32, 32, 32, 2)
