// Products of bytes: x Wᵀ + bias, or a gated product (product.h), where x was rounded to bytes by round.metal.
//
//     sums = 0
//     for each part, 32 values of the summed axis:
//         x_tile, w_tile = levels of x and of the weights                      0 out of bounds
//         dots = x_tile w_tileᵀ                                                in products of 8 x 8
//         sums += dots · (scale of w · scale of x) + low of w · (scale of x · Σ levels of x)
//     out = sums + bias                                                        only elements in bounds
//
// Halves of a part are two steps if their weights have different scales. Levels are integers up to 127 and 255, so dots
// of 32 terms are less than 2^21: exact in float32, as in 32-bit integers. A GPU has matrices of halves, not of bytes.
// The dots pass through threadgroup memory, 8 rows at a time, so that each lane owns the sums of one column.
//
// Grid: threadgroups (columns of out / COLUMNS, count / ROWS), rounded up.
#include <metal_stdlib>
using namespace metal;

#include "common/matrix.h"
#include "quant/product.h"

constant uint run_parts [[function_constant(7)]];

#define PITCH tile_pitch<half>(PART)
#define LANES 32  // columns per SIMD-group

// The bytes of x, from the first row of a tile.
struct ByteRows {
    device const char4 *levels;
    device const float *scales;
    device const short2 *sums;
};

// A tile of one part in threadgroup memory.
template <int ROWS, int COLUMNS> struct ByteTile {
    half4 x[ROWS * PITCH / 4];  // levels
    half4 w[COLUMNS * PITCH / 4];
    float x_scales[ROWS];
    float x_sums[2 * ROWS];  // scale · Σ level of the first half of a part for all rows, then of the second half
    float w_scales[2 * COLUMNS];
    float w_lows[2 * COLUMNS];
};

template <int ROWS, int COLUMNS, int THREADS>
inline void load_bytes(
    threadgroup ByteTile<ROWS, COLUMNS> &tile, ByteRows x, long part, long count, long rows_left, int index) {
    for (int at = index; at < ROWS * PART / 4; at += THREADS) {
        const int row = at / (PART / 4);
        const int four = at % (PART / 4);
        const half4 levels = row < rows_left ? half4(x.levels[part * count * (PART / 4) + at]) : half4(0.0h);
        tile.x[row * PITCH / 4 + four] = levels;
    }
    if (index < ROWS) {
        const bool inside = index < rows_left;
        const float scale = inside ? x.scales[part * count + index] : 0.0f;
        tile.x_scales[index] = scale;
        if (has_lows()) {
            const short2 sums = inside ? x.sums[part * count + index] : short2(0);
            tile.x_sums[index] = scale * float(sums.x);
            tile.x_sums[ROWS + index] = scale * float(sums.y);
        }
    }
}

// Adds 8 x DEPTHS columns of a part, from column `first` on, whose weights have the scales of one half.
template <int DEPTHS, int SIMD_ROWS, int ROWS, int COLUMNS>
inline void add_part(
    thread float (&sums)[SIMD_ROWS * 8],
    threadgroup const ByteTile<ROWS, COLUMNS> &tile,
    threadgroup float *strip,
    int first,
    int simd_row,
    int simd_column,
    int lane) {
    threadgroup const half *x = reinterpret_cast<threadgroup const half *>(tile.x) + simd_row * PITCH + first;
    threadgroup const half *w = reinterpret_cast<threadgroup const half *>(tile.w) + simd_column * PITCH + first;
    simdgroup_half8x8 right[DEPTHS][LANES / 8];
    for (int depth = 0; depth < DEPTHS; depth += 1) {
        for (int j = 0; j < LANES / 8; j += 1) {
            simdgroup_load(right[depth][j], w + j * 8 * PITCH + depth * 8, PITCH, ulong2(0), true);
        }
    }
    const int column = first / 16 * COLUMNS + simd_column + lane;
    const float w_scale = tile.w_scales[column];
    const float w_low = tile.w_lows[column];
    for (int i = 0; i < SIMD_ROWS; i += 1) {
        simdgroup_matrix<float, 8, 8> dots[1][LANES / 8];
        clear_sums(dots);
        for (int depth = 0; depth < DEPTHS; depth += 1) {
            simdgroup_half8x8 left[1];
            simdgroup_load(left[0], x + i * 8 * PITCH + depth * 8, PITCH);
            add_products(dots, left, right[depth]);
        }
        for (int j = 0; j < LANES / 8; j += 1) {
            simdgroup_store(dots[0][j], strip + j * 8, LANES);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (int r = 0; r < 8; r += 1) {
            const int row = simd_row + i * 8 + r;
            float sum = sums[i * 8 + r];
            if (has_lows()) {
                const float x_sum =
                    DEPTHS == 4 ? tile.x_sums[row] + tile.x_sums[ROWS + row] : tile.x_sums[first / 16 * ROWS + row];
                sum = fma(w_low, x_sum, sum);
            }
            sums[i * 8 + r] = fma(strip[r * LANES + lane], w_scale * tile.x_scales[row], sum);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);  // before the next rows overwrite the strip
    }
}

// Multiplies with 2 x 2 SIMD-groups. For gated products, the first half of a tile's columns are rows of the gate, and
// the second half rows of `up`.
template <typename T, int ROWS, int COLUMNS, bool IS_GATED>
inline void multiply_bytes(
    QuantMatrix first_matrix,
    QuantMatrix second_matrix,
    ByteRows x,
    device const T *bias,
    device const T *second_bias,
    device T *out,
    constant QuantProduct &product,
    threadgroup uchar *bytes,
    threadgroup ByteTile<ROWS, COLUMNS> &tile,
    threadgroup float *strips,
    uint2 group,
    int index,
    int simdgroup_index,
    int lane) {
    static_assert(COLUMNS == 2 * LANES, "two SIMD-groups divide the columns");
    constexpr int threads = 128;
    constexpr int simd_rows = ROWS / 2 / 8;         // rows per SIMD-group, in 8 x 8 matrices
    constexpr int some = COLUMNS * PART / threads;  // values that a thread unpacks
    static_assert(some == 16, "a thread unpacks one half of a part");
    constexpr int out_width = IS_GATED ? COLUMNS / 2 : COLUMNS;

    const long row = long(group.y) * ROWS;
    const long column = long(group.x) * out_width;
    const long rows_left = product.count - row;
    const int simd_row = simdgroup_index / 2 * simd_rows * 8;
    const int simd_column = simdgroup_index % 2 * LANES;
    threadgroup float *strip = strips + simdgroup_index * 8 * LANES;
    x.levels += row * (PART / 4);
    x.scales += row;
    x.sums += row;

    const int line = index / 2;  // the row of w_tile of which this thread unpacks one half
    const int first = index % 2 * some;
    const bool is_second = IS_GATED && line >= out_width;
    const QuantMatrix weights = is_second ? second_matrix : first_matrix;
    const long matrix_row = column + (IS_GATED ? line % out_width : line);

    float sums[simd_rows * 8];
    for (int i = 0; i < simd_rows * 8; i += 1) {
        sums[i] = 0.0f;
    }
    for (long part = 0; part < product.weights.columns / PART; part += 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tile was read
        const int run_part = int(part % long(run_parts));
        if (run_part == 0) {
            load_rows(
                bytes, first_matrix.packed, product.weights, column, part, out_width, int(run_parts), index, threads);
            if (IS_GATED) {
                load_rows(
                    bytes + out_width * bytes_of(int(run_parts)), second_matrix.packed, product.weights, column, part,
                    out_width, int(run_parts), index, threads);
            }
        }
        load_bytes<ROWS, COLUMNS, threads>(tile, x, part, product.count, rows_left, index);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        threadgroup half *w = reinterpret_cast<threadgroup half *>(tile.w) + line * PITCH + first;
        half levels[some];
        const Scales scales = unpack_levels<some>(
            bytes + line * bytes_of(int(run_parts)) + bytes_of(run_part), run_part % int(block_parts), first,
            group_scales(product.weights, weights.scales, weights.biases, matrix_row, part), levels);
        for (int i = 0; i < some; i += 1) {
            w[i] = levels[i];
        }
        tile.w_scales[index % 2 * COLUMNS + line] = scales.scale;
        tile.w_lows[index % 2 * COLUMNS + line] = scales.low;
        threadgroup_barrier(mem_flags::mem_threadgroup);

        if (has_halves()) {
            add_part<2, simd_rows>(sums, tile, strip, 0, simd_row, simd_column, lane);
            add_part<2, simd_rows>(sums, tile, strip, 16, simd_row, simd_column, lane);
        } else {
            add_part<4, simd_rows>(sums, tile, strip, 0, simd_row, simd_column, lane);
        }
    }

    const long at_column = column + (IS_GATED ? 0 : simd_column) + lane;
    const bool inside = at_column < product.weights.rows;
    const bool is_up = IS_GATED && simd_column > 0;
    for (int i = 0; i < simd_rows; i += 1) {
        if (is_up) {
            // Hands the sums of `up` to the SIMD-group with those of the gate, which is the one before this one.
            for (int r = 0; r < 8; r += 1) {
                strip[r * LANES + lane] = sums[i * 8 + r];
            }
        }
        if (IS_GATED) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        for (int r = 0; r < 8; r += 1) {
            const long at_row = row + simd_row + i * 8 + r;
            if (is_up || !inside || at_row >= product.count) {
                continue;
            }
            const float sum = sums[i * 8 + r];
            device T *to = out + at_row * product.weights.rows + at_column;
            *to = IS_GATED ? gated_element(sum, strip[(8 + r) * LANES + lane], bias, second_bias, at_column)
                           : with_bias(sum, bias, at_column);
        }
        if (IS_GATED) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
}

// levels, x_scales, x_sums  of x, as round.metal writes them; the other operands are those of tiled.metal
template <typename T, int ROWS>
kernel void quant_bytes(
    device const uchar *packed [[buffer(0)]],
    device const ushort *scales [[buffer(1)]],
    device const ushort *biases [[buffer(2)]],
    device const char4 *levels [[buffer(3)]],
    device const float *x_scales [[buffer(4)]],
    device const short2 *x_sums [[buffer(5)]],
    device const T *bias [[buffer(6)]],
    device T *out [[buffer(7)]],
    constant QuantProduct &product [[buffer(8)]],
    threadgroup uchar *bytes [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup ByteTile<ROWS, 64> tile;
    threadgroup float strips[4 * 8 * LANES];
    const QuantMatrix w = {packed, scales, biases};
    const ByteRows x = {levels, x_scales, x_sums};
    multiply_bytes<T, ROWS, 64, false>(
        w, w, x, bias, bias, out, product, bytes, tile, strips, group, int(thread_index), int(simdgroup_index),
        int(lane));
}

// Multiplies by two matrices; a tile has 32 rows of each.
template <typename T, int ROWS>
kernel void quant_gated_bytes(
    device const uchar *gate_packed [[buffer(0)]],
    device const ushort *gate_scales [[buffer(1)]],
    device const ushort *gate_biases [[buffer(2)]],
    device const uchar *up_packed [[buffer(3)]],
    device const ushort *up_scales [[buffer(4)]],
    device const ushort *up_biases [[buffer(5)]],
    device const char4 *levels [[buffer(6)]],
    device const float *x_scales [[buffer(7)]],
    device const short2 *x_sums [[buffer(8)]],
    device const T *gate_bias [[buffer(9)]],
    device const T *up_bias [[buffer(10)]],
    device T *out [[buffer(11)]],
    constant QuantProduct &product [[buffer(12)]],
    threadgroup uchar *bytes [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup ByteTile<ROWS, 64> tile;
    threadgroup float strips[4 * 8 * LANES];
    const QuantMatrix gate = {gate_packed, gate_scales, gate_biases};
    const QuantMatrix up = {up_packed, up_scales, up_biases};
    const ByteRows x = {levels, x_scales, x_sums};
    multiply_bytes<T, ROWS, 64, true>(
        gate, up, x, gate_bias, up_bias, out, product, bytes, tile, strips, group, int(thread_index),
        int(simdgroup_index), int(lane));
}

#define BYTES(T, ROWS)                                                                                      \
    template [[host_name("quant_bytes_" #T "_" #ROWS "x64")]] kernel void quant_bytes<T, ROWS>(             \
        device const uchar *, device const ushort *, device const ushort *, device const char4 *,           \
        device const float *, device const short2 *, device const T *, device T *, constant QuantProduct &, \
        threadgroup uchar *, uint2, uint, uint, uint);                                                      \
    template [[host_name("quant_gated_bytes_" #T "_" #ROWS "x64")]] kernel void quant_gated_bytes<T, ROWS>( \
        device const uchar *, device const ushort *, device const ushort *, device const uchar *,           \
        device const ushort *, device const ushort *, device const char4 *, device const float *,           \
        device const short2 *, device const T *, device const T *, device T *, constant QuantProduct &,     \
        threadgroup uchar *, uint2, uint, uint, uint);

// The sizes are rows of the table in src/quant/matmul/tiles.ts.
BYTES(float, 64)
BYTES(half, 64)
BYTES(bfloat, 64)
BYTES(float, 32)
BYTES(half, 32)
BYTES(bfloat, 32)
