// Computes the same as gradient_queries.metal, but keeps scores and their gradients in registers instead of threadgroup
// memory (fragments.h). The factors of k are rounded to its type, as in FlashAttention-2 (Dao, 2023). The host uses
// this kernel on NVIDIA GPUs.
//
// A threadgroup computes 16 · DOWN queries of one head, 16 in each SIMD-group, and loads KEYS keys and their values at
// a time. Grid: threadgroups (queries / rows, heads, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/fragments.h"

// GRADIENT_ARGUMENTS (problem.h), and
// grad_q              [[buffer(11)]]       [B, H, M, D]
template <typename T, int WIDTH, int DOWN, int KEYS>
[[kernel, max_total_threads_per_threadgroup(DOWN * 32)]] void gradient_queries_fragments(
    GRADIENT_ARGUMENTS(T),
    device T *grad_q [[buffer(11)]],
    constant Attention &a [[buffer(12)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int threads = DOWN * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int blocks = WIDTH / 8;
    static_assert(DOWN * TALL_ROWS <= pitch, "the strips fit into the tile of v");

    threadgroup float4 memory[2 * KEYS * pitch * int(sizeof(T)) / 16];
    threadgroup uint nonfinite_keys[DOWN];
    threadgroup T *k_tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup T *v_tile = k_tile + KEYS * pitch;

    const Sequence s = sequence_of(a, sequences, group.z);
    // The last queries come first: in causal attention they have the most keys, so they should not start last.
    const int first_query = int(groups.x - 1 - group.x) * DOWN * TALL_ROWS;
    if (first_query >= s.queries) {
        return;
    }
    const uint head = group.y;
    const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
    const Blocks dim_blocks = blocks_of(DIM, 1, 0);
    const Blocks value_blocks = blocks_of(VALUE_DIM, 1, 0);
    const int simd_query = first_query + int(simdgroup) * TALL_ROWS;
    const int rows_left = s.queries - simd_query;
    const fragment_place place = place_of_lane(ushort(lane));
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    simdgroup_matrix<T, 8, 8> queries[2][blocks];
    simdgroup_matrix<T, 8, 8> grads[2][blocks];
    load_fragments(queries, q + row_offset(a.q, s.batch, head, s.query_start + simd_query), a.q, rows_left, DIM, place);
    load_fragments(
        grads, grad_out + row_offset(a.grad_out, s.batch, head, s.query_start + simd_query), a.grad_out, rows_left,
        VALUE_DIM, place);
    SumBlocks<blocks, 2> sums;
    sums.clear();
    RowSums rows[2];
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        rows[high] = row_sums(a, s, head, simd_query + high * 8 + place.row, log_sum_exp, log_sum_exp_low, delta);
    }

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * TALL_ROWS, s.queries) - 1);
    for (int key = range.first / 2 * 2; key < range.end; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        const NonfiniteTiles nonfinite = load_two_tiles<T, KEYS, WIDTH, threads>(
            k_tile, keys + key * a.k.row, a.k, DIM, v_tile, values + key * a.v.row, a.v, VALUE_DIM, range.end - key,
            thread_index);
        report_nonfinite(nonfinite_keys, nonfinite.first, simdgroup, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);

        Sums scores[2][KEYS / 8];
        Sums products[2][KEYS / 8];
        simdgroup_matrix<T, 8, 8> weights[2][KEYS / 8];
        multiply_by_rows<T, blocks, KEYS, pitch>(scores, queries, k_tile, dim_blocks.count);
        multiply_by_rows<T, blocks, KEYS, pitch>(products, grads, v_tile, value_blocks.count);
        const bool all_count = all_attend(a, s, {simd_query, simd_query + TALL_ROWS}, {key, key + KEYS});
        UNROLLED
        for (int high = 0; high < 2; high += 1) {
            const int query = simd_query + high * 8 + place.row;
            UNROLLED
            for (int block = 0; block < KEYS / 8; block += 1) {
                const int column = key + block * 8 + place.column;
                const float2 score = fragment_elements(scores[high][block]);
                const float2 grad = fragment_elements(products[high][block]);
                const float2 kept = kept_along_keys(a, s, head, query, column);
                float2 gradients;
                UNROLLED
                for (int i = 0; i < 2; i += 1) {
                    gradients[i] =
                        gradient_for<T>(
                            a, score_of(a, pairs, all_count, query, column + i, score[i]), grad[i], kept[i], rows[high])
                            .product;
                }
                weights[high][block] = rounded_fragment<T>(gradients);
            }
        }
        if (any_nonfinite<DOWN>(nonfinite_keys, lane)) {
            without_nonfinite_values<T, blocks, KEYS, pitch, threads>(
                sums, weights, k_tile, v_tile + int(simdgroup) * TALL_ROWS * KEYS, DIM, dim_blocks.count, place,
                thread_index);
        }
        add_weighted_rows<T, blocks, KEYS, pitch>(sums, weights, k_tile, dim_blocks.count);
    }
    const float factors[2] = {1.0f, 1.0f};
    store_fragments(
        sums, grad_q + row_offset(a.grad_q, s.batch, head, s.query_start + simd_query), a.grad_q, rows_left, DIM,
        factors, place);
}

#define GRADIENT_QUERIES_FRAGMENTS(T, WIDTH, DOWN, KEYS)                                                        \
    template [[host_name("gradient_queries_fragments_" #T "_" #WIDTH "_" #DOWN "x" #KEYS)]] kernel void         \
    gradient_queries_fragments<T, WIDTH, DOWN, KEYS>(                                                           \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, constant Attention &, uint3, uint3, uint, uint, uint);

GRADIENT_QUERIES_FRAGMENTS(half, 64, 4, 32)
GRADIENT_QUERIES_FRAGMENTS(half, 128, 4, 32)
GRADIENT_QUERIES_FRAGMENTS(bfloat, 64, 4, 32)
GRADIENT_QUERIES_FRAGMENTS(bfloat, 128, 4, 32)
