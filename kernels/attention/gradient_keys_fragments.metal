// Computes the same as gradient_keys.metal, but keeps scores and their gradients in registers instead of threadgroup
// memory (fragments.h). The factors of gradOut and q are rounded to their type, as in FlashAttention-2 (Dao, 2023). The
// host uses this kernel on NVIDIA GPUs.
//
// A threadgroup computes 16 · DOWN keys of one head, 16 in each SIMD-group, and loads QUERIES queries and their gradOut
// at a time. Grid: threadgroups (keys / rows, heads of keys, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/fragments.h"

// GRADIENT_ARGUMENTS (problem.h), and
// grad_k, grad_v      [[buffer(11, 12)]]   the shapes of k and v
template <typename T, int WIDTH, int DOWN, int QUERIES>
[[kernel, max_total_threads_per_threadgroup(DOWN * 32)]] void gradient_keys_fragments(
    GRADIENT_ARGUMENTS(T),
    device T *grad_k [[buffer(11)]],
    device T *grad_v [[buffer(12)]],
    constant Attention &a [[buffer(13)]],
    TILE_ARGUMENTS) {
    constexpr int threads = DOWN * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int blocks = WIDTH / 8;

    threadgroup float4 memory[2 * QUERIES * pitch * int(sizeof(T)) / 16];
    threadgroup float4 strips[DOWN * TALL_ROWS * QUERIES * int(sizeof(T)) / 16];
    threadgroup RowSums rows[QUERIES];
    threadgroup uint nonfinite_queries[DOWN];
    threadgroup uint nonfinite_grads[DOWN];
    threadgroup T *q_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *grad_tile = q_tile + QUERIES * pitch;
    threadgroup T *strip = reinterpret_cast<threadgroup T *>(strips) + int(simdgroup) * TALL_ROWS * QUERIES;

    const Sequence s = sequence_of(a, sequences, group.z);
    const int first_key = int(group.x) * DOWN * TALL_ROWS;
    if (first_key >= s.keys) {
        return;
    }
    const Blocks dim_blocks = blocks_of(DIM, 1, 0);
    const Blocks value_blocks = blocks_of(VALUE_DIM, 1, 0);
    const int simd_key = first_key + int(simdgroup) * TALL_ROWS;
    const int rows_left = s.keys - simd_key;
    const fragment_place place = place_of_lane(ushort(lane));

    simdgroup_matrix<T, 8, 8> keys[2][blocks];
    simdgroup_matrix<T, 8, 8> values[2][blocks];
    load_fragments(keys, k + row_offset(a.k, s.batch, group.y, s.key_start + simd_key), a.k, rows_left, DIM, place);
    load_fragments(
        values, v + row_offset(a.v, s.batch, group.y, s.key_start + simd_key), a.v, rows_left, VALUE_DIM, place);
    SumBlocks<blocks, 2> key_sums;
    SumBlocks<blocks, 2> value_sums;
    key_sums.clear();
    value_sums.clear();

    const Interval range = queries_of(a, s, first_key, min(first_key + DOWN * TALL_ROWS, s.keys) - 1);
    for (uint head = group.y * uint(a.group); head < (group.y + 1) * uint(a.group); head += 1) {
        const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
        device const T *queries = q + row_offset(a.q, s.batch, head, s.query_start);
        device const T *grads = grad_out + row_offset(a.grad_out, s.batch, head, s.query_start);
        for (int query = range.first / 2 * 2; query < range.end; query += QUERIES) {
            threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
            const NonfiniteTiles nonfinite = load_two_tiles<T, QUERIES, WIDTH, threads>(
                q_tile, queries + query * a.q.row, a.q, DIM, grad_tile, grads + query * a.grad_out.row, a.grad_out,
                VALUE_DIM, range.end - query, thread_index);
            report_nonfinite(nonfinite_queries, nonfinite.first, simdgroup, lane);
            report_nonfinite(nonfinite_grads, nonfinite.second, simdgroup, lane);
            for (int row = int(thread_index); row < QUERIES; row += threads) {
                rows[row] = row_sums(a, s, head, query + row, log_sum_exp, log_sum_exp_low, delta);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);

            Sums scores[2][QUERIES / 8];
            Sums products[2][QUERIES / 8];
            simdgroup_matrix<T, 8, 8> dropped_weights[2][QUERIES / 8];
            simdgroup_matrix<T, 8, 8> weights[2][QUERIES / 8];
            multiply_by_rows<T, blocks, QUERIES, pitch>(scores, keys, q_tile, dim_blocks.count);
            multiply_by_rows<T, blocks, QUERIES, pitch>(products, values, grad_tile, value_blocks.count);
            const bool all_count = all_attend(a, s, {query, query + QUERIES}, {simd_key, simd_key + TALL_ROWS});
            UNROLLED
            for (int high = 0; high < 2; high += 1) {
                const int key = simd_key + high * 8 + place.row;
                UNROLLED
                for (int block = 0; block < QUERIES / 8; block += 1) {
                    const int column = block * 8 + place.column;
                    const float2 score = fragment_elements(scores[high][block]);
                    const float2 grad = fragment_elements(products[high][block]);
                    const float2 kept = kept_along_queries(a, s, head, query + column, key);
                    float2 dropped;
                    float2 gradients;
                    UNROLLED
                    for (int i = 0; i < 2; i += 1) {
                        const RowSums row = rows[column + i];
                        const PairGradient gradient = gradient_for<T>(
                            a, score_of(a, pairs, all_count, query + column + i, key, score[i]), grad[i], kept[i], row);
                        dropped[i] = gradient.dropped;
                        gradients[i] = gradient.product;
                    }
                    dropped_weights[high][block] = rounded_fragment<T>(dropped);
                    weights[high][block] = rounded_fragment<T>(gradients);
                }
            }
            if (any_nonfinite<DOWN>(nonfinite_grads, lane)) {
                without_nonfinite_values<T, blocks, QUERIES, pitch, threads>(
                    value_sums, dropped_weights, grad_tile, strip, VALUE_DIM, value_blocks.count, place, thread_index);
            }
            if (any_nonfinite<DOWN>(nonfinite_queries, lane)) {
                without_nonfinite_values<T, blocks, QUERIES, pitch, threads>(
                    key_sums, weights, q_tile, strip, DIM, dim_blocks.count, place, thread_index);
            }
            add_weighted_rows<T, blocks, QUERIES, pitch>(value_sums, dropped_weights, grad_tile, value_blocks.count);
            add_weighted_rows<T, blocks, QUERIES, pitch>(key_sums, weights, q_tile, dim_blocks.count);
        }
    }
    const float factors[2] = {1.0f, 1.0f};
    store_fragments(
        key_sums, grad_k + row_offset(a.grad_k, s.batch, group.y, s.key_start + simd_key), a.grad_k, rows_left, DIM,
        factors, place);
    store_fragments(
        value_sums, grad_v + row_offset(a.grad_v, s.batch, group.y, s.key_start + simd_key), a.grad_v, rows_left,
        VALUE_DIM, factors, place);
}

#define GRADIENT_KEYS_FRAGMENTS(T, WIDTH, DOWN, QUERIES)                                                        \
    template [[host_name("gradient_keys_fragments_" #T "_" #WIDTH "_" #DOWN "x" #QUERIES)]] kernel void         \
    gradient_keys_fragments<T, WIDTH, DOWN, QUERIES>(                                                           \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, device T *, constant Attention &, uint3, uint, uint, uint);

GRADIENT_KEYS_FRAGMENTS(half, 64, 4, 32)
GRADIENT_KEYS_FRAGMENTS(bfloat, 64, 4, 32)
