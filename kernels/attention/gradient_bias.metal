// gradBias of attention (problem.h): ds = p (dropout(grad) - Δ), summed over the axes of [B, H, M, N] along which the
// bias has size 1.
//
//     sums = 0                                                    of each pair of the threadgroup's tile
//     for each batch, head, tile of queries and tile of keys that share the elements:
//         scores = q k^T, grads = gradOut v^T                     in products of 8 x 8
//         sums += exp(score - L) (dropout(grad) - Δ)               of the attended pairs
//     gradBias = sums, added along the axes of a tile along which the bias has size 1
//
// Every element is computed by one threadgroup, in an order that is the same in every run.
// Tiling: as in gradient_queries.metal, but rows and columns are counted over all sequences; a pair belongs to at most
// one sequence. Grid: threadgroups (tiles of keys, tiles of queries, B · H); an axis along which the bias has size 1
// counts as 1.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"
#include "attention/tiles.h"

// Returns the indices [first, end) to which one element of the bias is broadcast: all indices, or one.
inline Interval shared_indices(long bias_size, int index, long count) {
    return bias_size == 1 ? Interval{0, int(count)} : Interval{index, index + 1};
}

inline int tiles_of(long length, int tile) { return int((length + tile - 1) / tile); }

// Returns whether any of the rows may attend to any of the tile's keys, according to the sizes and the band.
inline bool any_attends(
    constant Attention &a, device const int *sequences, Interval in_batch, Interval rows, Interval keys) {
    for (int index = in_batch.first; index < in_batch.end; index += 1) {
        const Sequence s = sequence_of(a, sequences, uint(index));
        const Interval in_sequence = {max(rows.first - s.query_start, 0), min(rows.end - s.query_start, s.queries)};
        if (in_sequence.first < in_sequence.end) {
            const Interval reached = keys_of(a, s, in_sequence.first, in_sequence.end - 1);
            if (keys.first - s.key_start < reached.end && keys.end - s.key_start > reached.first) {
                return true;
            }
        }
    }
    return false;
}

// Returns ds of the pairs (i, j) and (i, j + 1), computed from their products.
template <typename T>
inline float2 score_gradients(
    constant Attention &a, thread const Pairs<T> &pairs, RowSums row, int i, int j, float2 products, float2 grads) {
    float2 gradients;
    for (int c = 0; c < 2; c += 1) {
        const Score score = score_of(a, pairs, false, i, j + c, products[c]);
        gradients[c] = gradient_of(a, score, grads[c], kept(a, pairs.sequence, pairs.head, i, j + c), row).score;
    }
    return gradients;
}

// GRADIENT_ARGUMENTS (problem.h), and
// grad_bias           [[buffer(11)]]       the shape of the bias
template <typename T, int WIDTH, int DOWN, int ACROSS, int KEYS>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void gradient_bias(
    GRADIENT_ARGUMENTS(T), device T *grad_bias [[buffer(11)]], constant Attention &a [[buffer(12)]], TILE_ARGUMENTS) {
    constexpr int rows = DOWN * 8;
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int strip = 8 * strip_pitch(KEYS);
    constexpr int simd_blocks = WIDTH / ACROSS / 8;
    constexpr int iterations = lane_iterations(ACROSS, KEYS);

    threadgroup float4 memory[2 * KEYS * pitch * int(sizeof(T)) / 16];
    threadgroup float2 score_memory[simdgroups * strip / 2];
    threadgroup float2 grad_memory[simdgroups * strip / 2];
    threadgroup float scratches[simdgroups * 64];
    threadgroup float *score_strips = reinterpret_cast<threadgroup float *>(score_memory);
    threadgroup float *grad_strips = reinterpret_cast<threadgroup float *>(grad_memory);
    threadgroup T *k_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *v_tile = k_tile + KEYS * pitch;
    threadgroup T *scratch = reinterpret_cast<threadgroup T *>(scratches + simdgroup * 64);

    const SimdPlace place = simd_place<ACROSS>(simdgroup, lane);
    threadgroup float *row_scores = score_strips + place.down * ACROSS * strip;
    threadgroup float *row_grads = grad_strips + place.down * ACROSS * strip;
    float2 sums[iterations];
    UNROLLED
    for (int iteration = 0; iteration < iterations; iteration += 1) {
        sums[iteration] = 0.0f;
    }

    const int bias_heads = int(a.bias_sizes[1]);
    const Interval batches = shared_indices(a.bias_sizes[0], int(group.z) / bias_heads, a.batch);
    const Interval heads = shared_indices(a.bias_sizes[1], int(group.z) % bias_heads, a.heads);
    const Interval query_tiles = shared_indices(a.bias_sizes[2], int(group.y), tiles_of(a.queries, rows));
    const Interval key_tiles = shared_indices(a.bias_sizes[3], int(group.x), tiles_of(a.keys, KEYS));
    for (int batch = batches.first; batch < batches.end; batch += 1) {
        const Interval in_batch =
            has(ATTENTION_OPTION_PACKED) ? Interval{0, int(a.sequences)} : Interval{batch, batch + 1};
        for (int head = heads.first; head < heads.end; head += 1) {
            for (int query_tile = query_tiles.first; query_tile < query_tiles.end; query_tile += 1) {
                const int simd_query = query_tile * rows + place.down * 8;
                const int rows_left = int(a.queries) - simd_query;
                RowBlocks<T, simd_blocks> queries;
                RowBlocks<T, simd_blocks> grads;
                queries.load(
                    q + row_offset(a.q, batch, head, simd_query), a.q, rows_left, DIM, place.dims, scratch, lane);
                grads.load(
                    grad_out + row_offset(a.grad_out, batch, head, simd_query), a.grad_out, rows_left, VALUE_DIM,
                    place.values, scratch, lane);
                for (int key_tile = key_tiles.first; key_tile < key_tiles.end; key_tile += 1) {
                    const int key = key_tile * KEYS;
                    const int left = int(a.keys) - key;
                    if (!any_attends(
                            a, sequences, in_batch, {query_tile * rows, query_tile * rows + rows}, {key, key + KEYS})) {
                        continue;
                    }
                    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the tiles and strips were read
                    load_rows<T, KEYS, pitch, threads>(
                        k_tile, k + row_offset(a.k, batch, head / a.group, key), a.k, left, DIM, thread_index);
                    load_rows<T, KEYS, pitch, threads>(
                        v_tile, v + row_offset(a.v, batch, head / a.group, key), a.v, left, VALUE_DIM, thread_index);
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    multiply_rows<T, simd_blocks, KEYS, pitch>(
                        row_scores + place.across * strip, queries, k_tile, place.dims);
                    multiply_rows<T, simd_blocks, KEYS, pitch>(
                        row_grads + place.across * strip, grads, v_tile, place.values);
                    threadgroup_barrier(mem_flags::mem_threadgroup);
                    for (int index = in_batch.first; index < in_batch.end; index += 1) {
                        const Sequence s = sequence_of(a, sequences, uint(index));
                        const int i = simd_query + place.lane.row - s.query_start;
                        if (uint(i) >= uint(s.queries)) {
                            continue;
                        }
                        const Pairs<T> pairs = pairs_of(a, s, uint(head), mask, bias, slopes);
                        const RowSums row = row_sums(a, s, uint(head), i, log_sum_exp, log_sum_exp_low, delta);
                        UNROLLED
                        for (int iteration = 0; iteration < iterations; iteration += 1) {
                            const int column = place.lane.column + iteration * lane_step(ACROSS);
                            if (column < KEYS) {
                                const int at = place.lane.row * strip_pitch(KEYS) + column;
                                const float2 products = summed<ACROSS, strip>(row_scores, at);
                                const float2 grads_here = summed<ACROSS, strip>(row_grads, at);
                                sums[iteration] +=
                                    score_gradients(a, pairs, row, i, key + column - s.key_start, products, grads_here);
                            }
                        }
                    }
                }
            }
        }
    }

    threadgroup_barrier(mem_flags::mem_threadgroup);
    UNROLLED
    for (int iteration = 0; iteration < iterations; iteration += 1) {
        const int column = place.lane.column + iteration * lane_step(ACROSS);
        if (column < KEYS) {
            write_pair(row_scores, place.lane.row * strip_pitch(KEYS) + column, sums[iteration]);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int out_rows = a.bias_sizes[2] == 1 ? 1 : rows;
    const int out_columns = a.bias_sizes[3] == 1 ? 1 : KEYS;
    device T *out = grad_bias + row_offset(a.grad_bias, batches.first, heads.first, 0);
    for (int element = int(thread_index); element < out_rows * out_columns; element += threads) {
        const int row = element / out_columns;
        const int column = element % out_columns;
        const long i = query_tiles.first * rows + row;
        const long j = key_tiles.first * KEYS + column;
        if (i >= a.bias_sizes[2] || j >= a.bias_sizes[3]) {
            continue;
        }
        float sum = 0.0f;
        for (int r = row; r < rows; r += out_rows) {
            for (int c = column; c < KEYS; c += out_columns) {
                sum += score_strips[r / 8 * ACROSS * strip + r % 8 * strip_pitch(KEYS) + c];
            }
        }
        out[i * a.grad_bias.row + j * a.grad_bias.column] = T(sum);
    }
}

#define GRADIENT_BIAS(T, WIDTH, DOWN, ACROSS, KEYS)                                                             \
    template [[host_name("gradient_bias_" #T "_" #WIDTH "_" #DOWN "x" #ACROSS "x" #KEYS)]] kernel void          \
    gradient_bias<T, WIDTH, DOWN, ACROSS, KEYS>(                                                                \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, constant Attention &, uint3, uint, uint, uint);

#define GRADIENT_BIAS_HALVES(WIDTH, DOWN, ACROSS, KEYS) \
    GRADIENT_BIAS(half, WIDTH, DOWN, ACROSS, KEYS)      \
    GRADIENT_BIAS(bfloat, WIDTH, DOWN, ACROSS, KEYS)

GRADIENT_BIAS(float, 32, 4, 1, 16)
GRADIENT_BIAS(float, 64, 4, 2, 16)
GRADIENT_BIAS(float, 128, 2, 4, 16)
GRADIENT_BIAS(float, 256, 2, 4, 8)
GRADIENT_BIAS_HALVES(64, 4, 1, 16)
GRADIENT_BIAS_HALVES(128, 4, 2, 16)
GRADIENT_BIAS_HALVES(256, 2, 4, 16)
