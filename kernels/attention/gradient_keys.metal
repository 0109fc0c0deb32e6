// gradK and gradV of attention (problem.h), parallel over keys; probabilities are recomputed from L.
//
//     key_sums = 0, value_sums = 0                                of each key, in registers
//     for each query head that shares the keys, for each tile of queries that attend to any key of the threadgroup:
//         scores = k q^T, grads = v gradOut^T                     in products of 8 x 8
//         p = exp(score - L), z = dropout(p)                       of attended pairs, else 0
//         du = scale · p (dropout(grad) - Δ)
//         value_sums += z gradOut, key_sums += du q
//     gradK = key_sums, gradV = value_sums
//
// Source: see gradient_queries.metal. The heads of a group are added one after the other in registers, so no two
// threadgroups add to the same sum. Tiling (tiles.h): a threadgroup computes DOWN · TALL · 8 keys, and loads QUERIES
// queries at a time. Grid: threadgroups (keys / rows, heads of keys, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"
#include "attention/tiles.h"

// GRADIENT_ARGUMENTS (problem.h), and
// grad_k, grad_v      [[buffer(11, 12)]]   the shapes of k and v
template <typename T, int WIDTH, int DOWN, int ACROSS, int QUERIES, int TALL>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void gradient_keys(
    GRADIENT_ARGUMENTS(T),
    device T *grad_k [[buffer(11)]],
    device T *grad_v [[buffer(12)]],
    constant Attention &a [[buffer(13)]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int simd_rows = TALL * 8;
    constexpr int strip = simd_rows * strip_pitch(QUERIES);
    constexpr int simd_blocks = WIDTH / ACROSS / 8;

    threadgroup float4 memory[2 * QUERIES * pitch * int(sizeof(T)) / 16];
    threadgroup float2 score_memory[simdgroups * strip / 2];
    threadgroup float2 grad_memory[simdgroups * strip / 2];
    threadgroup float scratches[simdgroups * 64];
    threadgroup RowSums rows[QUERIES];
    threadgroup uint nonfinite_queries[simdgroups];
    threadgroup uint nonfinite_grads[simdgroups];
    threadgroup float *score_strips = reinterpret_cast<threadgroup float *>(score_memory);
    threadgroup float *grad_strips = reinterpret_cast<threadgroup float *>(grad_memory);
    threadgroup T *q_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *grad_tile = q_tile + QUERIES * pitch;
    threadgroup float *scratch = scratches + simdgroup * 64;

    const Sequence s = sequence_of(a, sequences, group.z);
    const int first_key = int(group.x) * DOWN * simd_rows;
    if (first_key >= s.keys) {
        return;
    }
    const SimdPlace place = simd_place<ACROSS>(simdgroup, lane);
    const int simd_key = first_key + place.down * simd_rows;
    const int rows_left = s.keys - simd_key;

    RowBlocks<T, simd_blocks, TALL> keys;
    RowBlocks<T, simd_blocks, TALL> values;
    threadgroup T *scratch_rows = reinterpret_cast<threadgroup T *>(scratch);
    keys.load(
        k + row_offset(a.k, s.batch, group.y, s.key_start + simd_key), a.k, rows_left, DIM, place.dims, scratch_rows,
        lane);
    values.load(
        v + row_offset(a.v, s.batch, group.y, s.key_start + simd_key), a.v, rows_left, VALUE_DIM, place.values,
        scratch_rows, lane);
    SumBlocks<simd_blocks, TALL> key_sums;
    SumBlocks<simd_blocks, TALL> value_sums;
    key_sums.clear();
    value_sums.clear();

    threadgroup float *row_scores = score_strips + place.down * ACROSS * strip;
    threadgroup float *row_grads = grad_strips + place.down * ACROSS * strip;

    const Interval range = queries_of(a, s, first_key, min(first_key + DOWN * simd_rows, s.keys) - 1);
    for (uint head = group.y * uint(a.group); head < (group.y + 1) * uint(a.group); head += 1) {
        const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
        device const T *queries = q + row_offset(a.q, s.batch, head, s.query_start);
        device const T *grads = grad_out + row_offset(a.grad_out, s.batch, head, s.query_start);
        for (int query = range.first / 2 * 2; query < range.end; query += QUERIES) {
            threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
            const int left = range.end - query;
            const bool nonfinite_query =
                load_rows<T, QUERIES, pitch, threads>(q_tile, queries + query * a.q.row, a.q, left, DIM, thread_index);
            const bool nonfinite_grad = load_rows<T, QUERIES, pitch, threads>(
                grad_tile, grads + query * a.grad_out.row, a.grad_out, left, VALUE_DIM, thread_index);
            report_nonfinite(nonfinite_queries, nonfinite_query, simdgroup, lane);
            report_nonfinite(nonfinite_grads, nonfinite_grad, simdgroup, lane);
            for (int row = int(thread_index); row < QUERIES; row += threads) {
                rows[row] = row_sums(a, s, head, query + row, log_sum_exp, log_sum_exp_low, delta);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            multiply_rows<T, simd_blocks, QUERIES, pitch>(row_scores + place.across * strip, keys, q_tile, place.dims);
            multiply_rows<T, simd_blocks, QUERIES, pitch>(
                row_grads + place.across * strip, values, grad_tile, place.values);
            threadgroup_barrier(mem_flags::mem_threadgroup);

            const bool all_count = all_attend(a, s, {query, query + QUERIES}, {simd_key, simd_key + simd_rows});
            UNROLLED
            for (int high = 0; high < TALL; high += 1) {
                const int simd_row = high * 8 + place.lane.row;
                for (int column = place.lane.column; column < QUERIES; column += lane_step(ACROSS)) {
                    const int at = simd_row * strip_pitch(QUERIES) + column;
                    const float2 products = summed<ACROSS, strip>(row_scores, at);
                    const float2 grad = summed<ACROSS, strip>(row_grads, at);
                    const float2 kept = kept_along_queries(a, s, head, query + column, simd_key + simd_row);
                    float2 dropped;
                    float2 gradients;
                    for (int i = 0; i < 2; i += 1) {
                        const RowSums row = rows[column + i];
                        const Score score =
                            score_of(a, pairs, all_count, query + column + i, simd_key + simd_row, products[i]);
                        const PairGradient gradient = gradient_of(a, score, grad[i], kept[i], row);
                        dropped[i] = gradient.dropped;
                        gradients[i] = gradient.product;
                    }
                    write_pair(row_scores, at, dropped);
                    write_pair(row_grads, at, gradients);
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (any_nonfinite<simdgroups>(nonfinite_grads, lane)) {
                without_nonfinite<T, QUERIES, pitch, threads>(
                    value_sums, true, row_scores, grad_tile, VALUE_DIM, place.values, scratch, thread_index);
            }
            if (any_nonfinite<simdgroups>(nonfinite_queries, lane)) {
                without_nonfinite<T, QUERIES, pitch, threads>(
                    key_sums, true, row_grads, q_tile, DIM, place.dims, scratch, thread_index);
            }
            value_sums.template add<T, QUERIES, pitch>(row_scores, grad_tile, place.values);
            key_sums.template add<T, QUERIES, pitch>(row_grads, q_tile, place.dims);
        }
    }
    key_sums.store(
        grad_k + row_offset(a.grad_k, s.batch, group.y, s.key_start + simd_key), a.grad_k, rows_left, DIM, place.dims,
        nullptr, scratch, lane);
    value_sums.store(
        grad_v + row_offset(a.grad_v, s.batch, group.y, s.key_start + simd_key), a.grad_v, rows_left, VALUE_DIM,
        place.values, nullptr, scratch, lane);
}

#define GRADIENT_KEYS(T, WIDTH, DOWN, ACROSS, QUERIES, TALL)                                                        \
    template [[host_name("gradient_keys_" #T "_" #WIDTH "_" #DOWN "x" #ACROSS "x" #QUERIES "x" #TALL)]] kernel void \
    gradient_keys<T, WIDTH, DOWN, ACROSS, QUERIES, TALL>(                                                           \
        device const T *, device const T *, device const T *, device const bool *, device const T *,                \
        device const float *, device const int *, device const T *, device const float *, device const float *,     \
        device const float *, device T *, device T *, constant Attention &, uint3, uint, uint, uint);

#define GRADIENT_KEYS_HALVES(WIDTH, DOWN, ACROSS, QUERIES, TALL) \
    GRADIENT_KEYS(half, WIDTH, DOWN, ACROSS, QUERIES, TALL)      \
    GRADIENT_KEYS(bfloat, WIDTH, DOWN, ACROSS, QUERIES, TALL)

GRADIENT_KEYS(float, 32, 4, 1, 16, 1)
GRADIENT_KEYS(float, 64, 2, 2, 16, 2)
GRADIENT_KEYS(float, 128, 1, 4, 16, 2)
GRADIENT_KEYS(float, 256, 2, 4, 8, 1)
GRADIENT_KEYS(float, 32, 2, 1, 32, 1)
GRADIENT_KEYS(float, 64, 1, 2, 32, 2)
GRADIENT_KEYS_HALVES(64, 2, 2, 16, 2)
GRADIENT_KEYS_HALVES(128, 4, 2, 16, 1)
GRADIENT_KEYS_HALVES(256, 2, 4, 16, 1)
GRADIENT_KEYS_HALVES(64, 2, 1, 64, 1)
GRADIENT_KEYS_HALVES(128, 2, 2, 32, 1)
