// out = x Wᵀ + bias, or x W (product.h), in the registers of simdgroup_matrix: a threadgroup computes a tile of ROWS x
// COLUMNS; its DOWN x ACROSS SIMD-groups divide the tile among them.
//
//     sums = 0
//     for each DEPTH of what is summed over:
//         x_tile, w_tile = the next DEPTH columns of x and the values that they meet, zero beyond the edges
//         sums += x_tile w_tile                       in products of 8 x 8
//     out = sums + bias                               only what lies inside
//
// Weights come packed to threadgroup memory, each byte once, and each value is unpacked once: of x Wᵀ `run_parts` parts
// of COLUMNS rows at a time, whole blocks; of x W all COLUMNS of DEPTH rows. Values and sums are in float32, as on the
// other backends. Grid: threadgroups (columns of out / COLUMNS, count / ROWS), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "common/matrix.h"
#include "quant/product.h"

constant uint run_parts [[function_constant(7)]];

template <typename T, int ROWS, int DEPTH, int THREADS>
inline void load_x(
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
        const long from = product.x_start + (row + i) * product.x_strides[0] + (column + j) * product.x_strides[1];
        tile[i * tile_pitch<float>(DEPTH) + j] = inside ? float(x[from]) : 0.0f;
    }
}

// packed  [[buffer(0)]]  rows x row_bytes
// scales  [[buffer(1)]]  of groups: rows x columns / group
// biases  [[buffer(2)]]  the same, where there are some
// x       [[buffer(3)]]  count x columns; of x W count x rows
// bias    [[buffer(4)]]  a value for each column of out, where there is one
// out     [[buffer(5)]]  count x rows; of x W count x columns
// bytes   [[threadgroup(0)]]  packed: COLUMNS rows of run_parts parts; of x W DEPTH rows of COLUMNS / 32 parts
template <typename T, int ROWS, int COLUMNS, int DEPTH, int DOWN, int ACROSS, bool TRANSPOSED>
kernel void quant_tiled(
    device const uchar *packed [[buffer(0)]],
    device const ushort *scales [[buffer(1)]],
    device const ushort *biases [[buffer(2)]],
    device const T *x [[buffer(3)]],
    device const T *bias [[buffer(4)]],
    device T *out [[buffer(5)]],
    constant QuantProduct &product [[buffer(6)]],
    threadgroup uchar *bytes [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr int threads = 32 * DOWN * ACROSS;
    constexpr int own_rows = ROWS / DOWN / 8;  // of a SIMD-group, in matrices of 8 x 8
    constexpr int own_columns = COLUMNS / ACROSS / 8;
    constexpr int strip_columns = own_columns * 8;
    constexpr int x_pitch = tile_pitch<float>(DEPTH);
    constexpr int w_lines = TRANSPOSED ? DEPTH : COLUMNS;
    constexpr int w_length = TRANSPOSED ? COLUMNS : DEPTH;
    constexpr int w_pitch = tile_pitch<float>(w_length);
    constexpr int some = w_lines * w_length / threads;  // values that a thread unpacks
    constexpr int tile_floats = ROWS * x_pitch + w_lines * w_pitch;
    constexpr int strip_floats = DOWN * ACROSS * 8 * strip_columns;
    static_assert(some <= 16 && 16 % some == 0, "a thread unpacks values of one half of a part");

    // First the tiles, later a strip of 8 rows of sums for each SIMD-group.
    threadgroup float memory[tile_larger(tile_floats, strip_floats)];
    threadgroup float *x_tile = memory;
    threadgroup float *w_tile = memory + ROWS * x_pitch;

    const long depth_end = TRANSPOSED ? product.weights.rows : product.weights.columns;
    const long out_columns = TRANSPOSED ? product.weights.columns : product.weights.rows;
    const long row = long(group.y) * ROWS;
    const long column = long(group.x) * COLUMNS;
    const int own_row = int(simdgroup_index) / ACROSS * own_rows * 8;
    const int own_column = int(simdgroup_index) % ACROSS * strip_columns;
    const int line = int(thread_index) * some / w_length;  // of w_tile, that this thread unpacks values of
    const int first = int(thread_index) * some % w_length;

    simdgroup_matrix<float, 8, 8> sums[own_rows][own_columns];
    for (int i = 0; i < own_rows; i += 1) {
        for (int j = 0; j < own_columns; j += 1) {
            sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        }
    }

    for (long k = 0; k < depth_end; k += DEPTH) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the tiles before were read
        const int run_part = TRANSPOSED ? 0 : int(k / PART % long(run_parts));
        const int line_parts = TRANSPOSED ? COLUMNS / PART : int(run_parts);
        if (TRANSPOSED) {
            load_rows(
                bytes, packed, product.weights, k, column / PART, DEPTH, COLUMNS / PART, int(thread_index), threads);
        } else if (run_part == 0) {
            load_rows(
                bytes, packed, product.weights, column, k / PART, COLUMNS, int(run_parts), int(thread_index), threads);
        }
        load_x<T, ROWS, DEPTH, threads>(x_tile, x, product, row, k, depth_end, int(thread_index));
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const int part = run_part + first / PART;
        float values[some];
        unpack<some>(
            bytes + line * bytes_of(line_parts) + bytes_of(part), part % int(block_parts), first % PART,
            group_scales(
                product.weights, scales, biases, (TRANSPOSED ? k : column) + line,
                (TRANSPOSED ? column / PART : k / PART) + first / PART),
            values);
        for (int i = 0; i < some; i += 1) {
            w_tile[line * w_pitch + first + i] = values[i];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (int depth = 0; depth < DEPTH; depth += 8) {
            simdgroup_matrix<float, 8, 8> left[own_rows];
            simdgroup_matrix<float, 8, 8> right[own_columns];
            for (int i = 0; i < own_rows; i += 1) {
                simdgroup_load(left[i], x_tile + (own_row + i * 8) * x_pitch + depth, x_pitch);
            }
            for (int j = 0; j < own_columns; j += 1) {
                const int at = own_column + j * 8;
                if (TRANSPOSED) {
                    simdgroup_load(right[j], w_tile + depth * w_pitch + at, w_pitch);
                } else {
                    simdgroup_load(right[j], w_tile + at * w_pitch + depth, w_pitch, ulong2(0), true);
                }
            }
            for (int i = 0; i < own_rows; i += 1) {
                for (int j = 0; j < own_columns; j += 1) {
                    simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the last tiles were read

    // Which lane holds which element is not specified, so that sums go through memory, 8 rows at a time.
    threadgroup float *strip = memory + int(simdgroup_index) * 8 * strip_columns;
    for (int i = 0; i < own_rows; i += 1) {
        for (int j = 0; j < own_columns; j += 1) {
            simdgroup_store(sums[i][j], strip + j * 8, strip_columns);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (int element = int(lane); element < 8 * strip_columns; element += 32) {
            const long at_row = row + own_row + i * 8 + element / strip_columns;
            const long at_column = column + own_column + element % strip_columns;
            if (at_row < product.count && at_column < out_columns) {
                out[at_row * out_columns + at_column] = with_bias(strip[element], bias, at_column);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#define TILED(T, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED)                                        \
    template[[host_name("quant_tiled_" #T suffix)]] kernel void                                                 \
    quant_tiled<T, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED>(                                             \
        device const uchar *, device const ushort *, device const ushort *, device const T *, device const T *, \
        device T *, constant QuantProduct &, threadgroup uchar *, uint2, uint, uint, uint);

// The sizes are rows of src/quant/matmul/tiles.ts.
#define TILED_TYPES(suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED) \
    TILED(float, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED)    \
    TILED(half, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED)     \
    TILED(bfloat, suffix, ROWS, COLUMNS, DEPTH, DOWN, ACROSS, TRANSPOSED)

TILED_TYPES("_64x64", 64, 64, 32, 2, 2, false)
TILED_TYPES("_32x32", 32, 32, 32, 2, 2, false)
TILED_TYPES("_32x256_transposed", 32, 256, 16, 1, 8, true)
