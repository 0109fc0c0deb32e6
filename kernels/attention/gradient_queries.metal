// gradQ of attention (problem.h), parallel over queries; probabilities are recomputed from L.
//
//     sums = 0                                                    of each query, in registers
//     for each tile of keys that any query of the threadgroup attends to:
//         scores = q k^T, grads = gradOut v^T                     in products of 8 x 8
//         p = exp(score - L), du = scale · p (dropout(grad) - Δ)   of attended pairs, else 0
//         sums += du k
//     gradQ = sums
//
// Source: Dao, "FlashAttention-2", 2023, algorithm 2. It is split in two, so that no two threadgroups add to the same
// sum; gradient_keys.metal is the other half. Tiling: as in forward.metal, but the tiles of k and v are in threadgroup
// memory at the same time. Grid: threadgroups (queries / rows, heads, sequences).

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"
#include "attention/tiles.h"

// GRADIENT_ARGUMENTS (problem.h), and
// grad_q              [[buffer(11)]]       [B, H, M, D]
template <typename T, int WIDTH, int DOWN, int ACROSS, int KEYS, int TALL>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void gradient_queries(
    GRADIENT_ARGUMENTS(T),
    device T *grad_q [[buffer(11)]],
    constant Attention &a [[buffer(12)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int simd_rows = TALL * 8;
    constexpr int strip = simd_rows * strip_pitch(KEYS);
    constexpr int simd_blocks = WIDTH / ACROSS / 8;

    threadgroup float4 memory[2 * KEYS * pitch * int(sizeof(T)) / 16];
    threadgroup float2 score_memory[simdgroups * strip / 2];
    threadgroup float2 grad_memory[simdgroups * strip / 2];
    threadgroup float scratches[simdgroups * 64];
    threadgroup uint nonfinite_values[simdgroups];
    threadgroup float *score_strips = reinterpret_cast<threadgroup float *>(score_memory);
    threadgroup float *grad_strips = reinterpret_cast<threadgroup float *>(grad_memory);
    threadgroup T *k_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *v_tile = k_tile + KEYS * pitch;
    threadgroup float *scratch = scratches + simdgroup * 64;

    const Sequence s = sequence_of(a, sequences, group.z);
    // The last queries come first: in causal attention they have the most keys, so they should not start last.
    const int first_query = int(groups.x - 1 - group.x) * DOWN * simd_rows;
    if (first_query >= s.queries) {
        return;
    }
    const SimdPlace place = simd_place<ACROSS>(simdgroup, lane);
    const uint head = group.y;
    const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
    const int simd_query = first_query + place.down * simd_rows;
    const int rows_left = s.queries - simd_query;
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    RowBlocks<T, simd_blocks, TALL> queries;
    RowBlocks<T, simd_blocks, TALL> grads;
    threadgroup T *scratch_rows = reinterpret_cast<threadgroup T *>(scratch);
    queries.load(
        q + row_offset(a.q, s.batch, head, s.query_start + simd_query), a.q, rows_left, DIM, place.dims, scratch_rows,
        lane);
    grads.load(
        grad_out + row_offset(a.grad_out, s.batch, head, s.query_start + simd_query), a.grad_out, rows_left, VALUE_DIM,
        place.values, scratch_rows, lane);
    SumBlocks<simd_blocks, TALL> sums;
    sums.clear();

    RowSums row[TALL];
    UNROLLED
    for (int high = 0; high < TALL; high += 1) {
        row[high] = row_sums(a, s, head, simd_query + high * 8 + place.lane.row, log_sum_exp, log_sum_exp_low, delta);
    }
    threadgroup float *row_scores = score_strips + place.down * ACROSS * strip;
    threadgroup float *row_grads = grad_strips + place.down * ACROSS * strip;

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * simd_rows, s.queries) - 1);
    for (int key = range.first / 2 * 2; key < range.end; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        const bool is_nonfinite =
            load_rows<T, KEYS, pitch, threads>(k_tile, keys + key * a.k.row, a.k, range.end - key, DIM, thread_index);
        load_rows<T, KEYS, pitch, threads>(
            v_tile, values + key * a.v.row, a.v, range.end - key, VALUE_DIM, thread_index);
        report_nonfinite(nonfinite_values, is_nonfinite, simdgroup, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        multiply_rows<T, simd_blocks, KEYS, pitch>(row_scores + place.across * strip, queries, k_tile, place.dims);
        multiply_rows<T, simd_blocks, KEYS, pitch>(row_grads + place.across * strip, grads, v_tile, place.values);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const bool all_count = all_attend(a, s, {simd_query, simd_query + simd_rows}, {key, key + KEYS});
        UNROLLED
        for (int high = 0; high < TALL; high += 1) {
            const int simd_row = high * 8 + place.lane.row;
            const int query = simd_query + simd_row;
            for (int column = place.lane.column; column < KEYS; column += lane_step(ACROSS)) {
                const int at = simd_row * strip_pitch(KEYS) + column;
                const float2 products = summed<ACROSS, strip>(row_scores, at);
                const float2 grad = summed<ACROSS, strip>(row_grads, at);
                const float2 kept = kept_along_keys(a, s, head, query, key + column);
                float2 gradients;
                for (int i = 0; i < 2; i += 1) {
                    const Score score = score_of(a, pairs, all_count, query, key + column + i, products[i]);
                    gradients[i] = gradient_of(a, score, grad[i], kept[i], row[high]).product;
                }
                write_pair(row_scores, at, gradients);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (any_nonfinite<simdgroups>(nonfinite_values, lane)) {
            without_nonfinite<T, KEYS, pitch, threads>(
                sums, true, row_scores, k_tile, DIM, place.dims, scratch, thread_index);
        }
        sums.template add<T, KEYS, pitch>(row_scores, k_tile, place.dims);
    }
    sums.store(
        grad_q + row_offset(a.grad_q, s.batch, head, s.query_start + simd_query), a.grad_q, rows_left, DIM, place.dims,
        nullptr, scratch, lane);
}

#define GRADIENT_QUERIES(T, WIDTH, DOWN, ACROSS, KEYS, TALL)                                                        \
    template [[host_name("gradient_queries_" #T "_" #WIDTH "_" #DOWN "x" #ACROSS "x" #KEYS "x" #TALL)]] kernel void \
    gradient_queries<T, WIDTH, DOWN, ACROSS, KEYS, TALL>(                                                           \
        device const T *, device const T *, device const T *, device const bool *, device const T *,                \
        device const float *, device const int *, device const T *, device const float *, device const float *,     \
        device const float *, device T *, constant Attention &, uint3, uint3, uint, uint, uint);

#define GRADIENT_QUERIES_HALVES(WIDTH, DOWN, ACROSS, KEYS, TALL) \
    GRADIENT_QUERIES(half, WIDTH, DOWN, ACROSS, KEYS, TALL)      \
    GRADIENT_QUERIES(bfloat, WIDTH, DOWN, ACROSS, KEYS, TALL)

GRADIENT_QUERIES(float, 32, 4, 1, 16, 1)
GRADIENT_QUERIES(float, 64, 2, 2, 16, 2)
GRADIENT_QUERIES(float, 128, 1, 4, 16, 2)
GRADIENT_QUERIES(float, 256, 2, 4, 8, 1)
GRADIENT_QUERIES(float, 32, 2, 1, 64, 1)
GRADIENT_QUERIES(float, 64, 1, 2, 32, 2)
GRADIENT_QUERIES_HALVES(64, 2, 2, 16, 2)
GRADIENT_QUERIES_HALVES(128, 4, 2, 16, 1)
GRADIENT_QUERIES_HALVES(256, 2, 4, 16, 1)
GRADIENT_QUERIES_HALVES(64, 2, 1, 64, 1)
GRADIENT_QUERIES_HALVES(128, 2, 2, 32, 1)
