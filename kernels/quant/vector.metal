// out = x Wᵀ + bias (product.h) for x with 1 to 4 rows. Memory bandwidth determines the time, so each byte of the
// weights is read once, and x is read once for all rows of a threadgroup.
//
//     for each 512 columns:
//         x_tile = those columns of x, in float32
//         for each two of the SIMD-group's rows of W:
//             bytes = those columns of the two rows, packed
//             each lane: unpack 32 values of one row in registers, multiply them by those of each row of x
//             totals of the row += the sum over its 16 lanes
//     out = totals + bias
//
// Sums are in float32, in an order that depends on sizes only. Grid: threadgroups of 8 SIMD-groups; each SIMD-group has
// `own_rows` rows of W, an even number.

#include <metal_stdlib>
using namespace metal;

#include "quant/product.h"

#define SIMDGROUPS 8
#define MOST_ROWS 32      // largest number of rows of W per SIMD-group
#define MOST_COUNT 4      // largest number of rows of x
#define TILE_PARTS 16     // parts of a row at a time: half as many as a SIMD-group has lanes
#define PITCH (PART + 4)  // distance between parts of x, so that adjacent lanes read different banks

constant uint x_rows [[function_constant(7)]];  // at most MOST_COUNT

// Multiplies a SIMD-group's rows: `own_rows` of W, or half as many of the gate and of `up` each. Rows are processed in
// pairs: two of W, or one of the gate and one of `up`.
template <typename T, bool GATED>
inline void multiply_rows(
    QuantMatrix first,
    QuantMatrix second,
    device const T *x,
    device const T *bias,
    device const T *second_bias,
    device T *out,
    constant QuantProduct &product,
    threadgroup uchar *bytes,
    threadgroup float4 *x_tile,
    threadgroup float *totals,
    uint group,
    uint thread_index,
    uint simdgroup_index,
    uint lane) {
    const long columns = product.weights.columns;
    const int out_rows = GATED ? int(product.own_rows) / 2 : int(product.own_rows);
    const long first_row = (long(group) * SIMDGROUPS + simdgroup_index) * out_rows;
    const int tile_bytes = bytes_of(TILE_PARTS);
    threadgroup uchar *simd_bytes = bytes + int(simdgroup_index) * 2 * tile_bytes;
    threadgroup float *simd_totals = totals + int(simdgroup_index) * MOST_ROWS * MOST_COUNT;
    const int lane_row = int(lane) / TILE_PARTS;
    const int lane_part = int(lane) % TILE_PARTS;
    const QuantMatrix weights = GATED && lane_row == 1 ? second : first;
    threadgroup uchar *block = simd_bytes + lane_row * tile_bytes + bytes_of(lane_part);
    threadgroup const float4 *part_x = x_tile + lane_part * (PITCH / 4);

    for (long column = 0; column < columns; column += TILE_PARTS * PART) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tile was read
        threadgroup float *tile = reinterpret_cast<threadgroup float *>(x_tile);
        for (int at = int(thread_index); at < int(x_rows) * TILE_PARTS * PART; at += SIMDGROUPS * 32) {
            const int row = at / (TILE_PARTS * PART);
            const int at_column = at % (TILE_PARTS * PART);
            const long from = row_start(product, row) + (column + at_column) * product.x_strides[2];
            tile[(row * TILE_PARTS + at_column / PART) * PITCH + at_column % PART] =
                column + at_column < columns ? float(x[from]) : 0.0f;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        for (int row_pair = 0; row_pair < int(product.own_rows); row_pair += 2) {
            const long row = first_row + (GATED ? row_pair / 2 : row_pair);
            if (row >= product.weights.rows) {
                break;
            }
            const long matrix_row = GATED ? row : row + lane_row;
            const long tile_part = column / PART;
            const int rows_at_once = GATED ? 1 : 2;
            load_rows(
                simd_bytes, first.packed, product.weights, row, tile_part, rows_at_once, TILE_PARTS, int(lane), 32);
            if (GATED) {
                load_rows(
                    simd_bytes + tile_bytes, second.packed, product.weights, row, tile_part, 1, TILE_PARTS, int(lane),
                    32);
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);

            // Several lanes share a group's scale; the first of them reads it for the others.
            const ushort leader = ushort(lane - lane % group_parts);
            Scales lane_scales = {0.0f, 0.0f};
            if (lane == leader) {
                lane_scales =
                    group_scales(product.weights, weights.scales, weights.biases, matrix_row, tile_part + lane_part);
            }
            lane_scales.scale = simd_shuffle(lane_scales.scale, leader);
            lane_scales.low = simd_shuffle(lane_scales.low, leader);

            float sums[MOST_COUNT] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (int first = 0; first < PART; first += 16) {
                float values[16];
                unpack<16>(block, lane_part % int(block_parts), first, lane_scales, values);
                for (int at = 0; at < MOST_COUNT; at += 1) {
                    // The number of iterations is constant, so that sums stay in registers.
                    if (at < int(x_rows)) {
                        float sum = 0.0f;
                        for (int four = 0; four < 4; four += 1) {
                            const float4 some_x = part_x[at * TILE_PARTS * (PITCH / 4) + first / 4 + four];
                            const float4 products = some_x * float4(
                                                                 values[4 * four], values[4 * four + 1],
                                                                 values[4 * four + 2], values[4 * four + 3]);
                            sum += (products.x + products.y) + (products.z + products.w);
                        }
                        sums[at] += sum;
                    }
                }
            }
            for (int at = 0; at < MOST_COUNT; at += 1) {
                if (at < int(x_rows)) {
                    for (ushort distance = TILE_PARTS / 2; distance > 0; distance /= 2) {
                        sums[at] += simd_shuffle_xor(sums[at], distance);
                    }
                    if (lane_part == 0) {
                        threadgroup float *total = simd_totals + (row_pair + lane_row) * MOST_COUNT + at;
                        *total = column == 0 ? sums[at] : *total + sums[at];
                    }
                }
            }
            simdgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    for (int at = int(lane); at < out_rows * int(x_rows); at += 32) {
        const int row = at % out_rows;
        const int x_row = at / out_rows;
        const long out_column = first_row + row;
        if (out_column < product.weights.rows) {
            device T &element = out[x_row * product.weights.rows + out_column];
            if (GATED) {
                const float gate = columns == 0 ? 0.0f : simd_totals[2 * row * MOST_COUNT + x_row];
                const float up = columns == 0 ? 0.0f : simd_totals[(2 * row + 1) * MOST_COUNT + x_row];
                element = gated_element(gate, up, bias, second_bias, out_column);
            } else {
                element = with_bias(columns == 0 ? 0.0f : simd_totals[row * MOST_COUNT + x_row], bias, out_column);
            }
        }
    }
}

#define TILE_OF_X (MOST_COUNT * TILE_PARTS * PITCH / 4)
#define TOTALS (SIMDGROUPS * MOST_ROWS * MOST_COUNT)
#define VECTOR_THREADS                                                                              \
    uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]], \
        uint simdgroup_index [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]

// packed  [[buffer(0)]]  rows x row_bytes
// scales  [[buffer(1)]]  of groups: rows x columns / group
// biases  [[buffer(2)]]  the same, if there are any
// x       [[buffer(3)]]  count x columns
// bias    [[buffer(4)]]  rows, if there is one
// out     [[buffer(5)]]  count x rows
// bytes   [[threadgroup(0)]]  two rows of TILE_PARTS parts for each SIMD-group
template <typename T> kernel void quant_vector(PRODUCT_ARGUMENTS(T), VECTOR_THREADS) {
    threadgroup float4 x_tile[TILE_OF_X];
    threadgroup float totals[TOTALS];
    const QuantMatrix w = {packed, scales, biases};
    multiply_rows<T, false>(
        w, w, x, bias, bias, out, product, bytes, x_tile, totals, group, thread_index, simdgroup_index, lane);
}

// Multiplies by two matrices: buffers 0 to 2 are the gate, and 3 to 5 `up`; each has a bias.
template <typename T> kernel void quant_gated_vector(GATED_ARGUMENTS(T), VECTOR_THREADS) {
    threadgroup float4 x_tile[TILE_OF_X];
    threadgroup float totals[TOTALS];
    const QuantMatrix gate = {gate_packed, gate_scales, gate_biases};
    const QuantMatrix up = {up_packed, up_scales, up_biases};
    multiply_rows<T, true>(
        gate, up, x, gate_bias, up_bias, out, product, bytes, x_tile, totals, group, thread_index, simdgroup_index,
        lane);
}

#define VECTOR(T)                                                                                               \
    template [[host_name("quant_vector_" #T)]] kernel void quant_vector<T>(                                     \
        device const uchar *, device const ushort *, device const ushort *, device const T *, device const T *, \
        device T *, constant QuantProduct &, threadgroup uchar *, uint, uint, uint, uint);                      \
    template [[host_name("quant_gated_vector_" #T)]] kernel void quant_gated_vector<T>(                         \
        device const uchar *, device const ushort *, device const ushort *, device const uchar *,               \
        device const ushort *, device const ushort *, device const T *, device const T *, device const T *,     \
        device T *, constant QuantProduct &, threadgroup uchar *, uint, uint, uint, uint);

VECTOR(float)
VECTOR(half)
VECTOR(bfloat)
