// Computes the same as gradient_keys.metal, but keeps scores and their gradients in registers instead of threadgroup
// memory (fragments.h). The factors of gradOut and q are rounded to their type, as in FlashAttention-2 (Dao, 2023). The
// host uses this kernel on NVIDIA GPUs.
//
// A threadgroup computes 16 · DOWN keys of one head, and loads QUERIES queries and their gradOut at a time. ACROSS
// SIMD-groups share 16 keys, and each has a share of the elements along D and E. Grid: threadgroups (keys / rows, heads
// of keys, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/factor_tiles.h"

// GRADIENT_ARGUMENTS (problem.h), and
// grad_k, grad_v      [[buffer(11, 12)]]   the shapes of k and v
template <typename T, typename F, int WIDTH, int DOWN, int QUERIES, int ACROSS>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void gradient_keys_fragments(
    GRADIENT_ARGUMENTS(T),
    device T *grad_k [[buffer(11)]],
    device T *grad_v [[buffer(12)]],
    constant Attention &a [[buffer(13)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int parts = part_count<T>();
    constexpr int pitch = tile_pitch<F>(WIDTH);
    constexpr int share = WIDTH / ACROSS;  // elements of a SIMD-group
    constexpr int blocks = share / 8;

    threadgroup float4 memory[2 * parts * QUERIES * pitch * int(sizeof(F)) / 16];
    constexpr int strip_elements = parts * TALL_ROWS * QUERIES;  // of a SIMD-group
    constexpr int shared_bytes = ACROSS > 1 ? QUERIES / 8 * 64 * 8 : 0;
    threadgroup float4 strips[simdgroups * tile_larger(strip_elements * int(sizeof(F)), shared_bytes) / 16];
    threadgroup RowSums rows[QUERIES];
    threadgroup uint nonfinite_queries[simdgroups];
    threadgroup uint nonfinite_grads[simdgroups];
    threadgroup F *q_tile = reinterpret_cast<threadgroup F *>(memory);
    threadgroup F *grad_tile = q_tile + parts * QUERIES * pitch;
    threadgroup F *strip = reinterpret_cast<threadgroup F *>(strips) + int(simdgroup) * strip_elements;
    threadgroup float2 *exchange = reinterpret_cast<threadgroup float2 *>(strips);  // strips are used later

    const Sequence s = sequence_of(a, sequences, group.z);
    // The first keys come first: in causal attention they have the most queries.
    const TileOfHead place_in_grid =
        tile_of_head(group, groups, s.queries * a.group * long(DIM + VALUE_DIM) * long(sizeof(T)));
    const int first_key = place_in_grid.tile * DOWN * TALL_ROWS;
    const uint key_head = uint(place_in_grid.head);
    if (first_key >= s.keys) {
        return;
    }
    const int first = int(simdgroup) % ACROSS * share;  // its first element
    const int dim = int(DIM) - first;
    const int value_dim = int(VALUE_DIM) - first;
    const int dim_blocks = ACROSS > 1 ? blocks : blocks_of(DIM, 1, 0).count;
    const int value_blocks = ACROSS > 1 ? blocks : blocks_of(VALUE_DIM, 1, 0).count;
    const int simd_key = first_key + int(simdgroup) / ACROSS * TALL_ROWS;
    const int rows_left = s.keys - simd_key;
    const fragment_place place = place_of_lane(ushort(lane));

    device const T *simd_keys = k + row_offset(a.k, s.batch, key_head, s.key_start + simd_key);
    device const T *simd_values = v + row_offset(a.v, s.batch, key_head, s.key_start + simd_key);
    Factors<F, parts, blocks> keys;
    Factors<F, parts, blocks> values;
    report_nonfinite(
        nonfinite_queries, keys.load(simd_keys + first * a.k.column, a.k, rows_left, dim, place), simdgroup, lane);
    report_nonfinite(
        nonfinite_grads, values.load(simd_values + first * a.v.column, a.v, rows_left, value_dim, place), simdgroup,
        lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool has_nonfinite_key = any_nonfinite<simdgroups>(nonfinite_queries, lane);
    const bool has_nonfinite_value = any_nonfinite<simdgroups>(nonfinite_grads, lane);
    SumBlocks<blocks, 2> key_sums;
    SumBlocks<blocks, 2> value_sums;
    key_sums.clear();
    value_sums.clear();

    const Interval range = queries_of(a, s, first_key, min(first_key + DOWN * TALL_ROWS, s.keys) - 1);
    for (uint head = key_head * uint(a.group); head < (key_head + 1) * uint(a.group); head += 1) {
        const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
        device const T *queries = q + row_offset(a.q, s.batch, head, s.query_start);
        device const T *grads = grad_out + row_offset(a.grad_out, s.batch, head, s.query_start);
        for (int query = range.first / 2 * 2; query < range.end; query += QUERIES) {
            threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
            const NonfiniteTiles nonfinite = load_two_tiles<T, F, QUERIES, WIDTH, threads>(
                q_tile, queries + query * a.q.row, a.q, DIM, grad_tile, grads + query * a.grad_out.row, a.grad_out,
                VALUE_DIM, range.end - query, ACROSS > 1, thread_index);
            report_nonfinite(nonfinite_queries, nonfinite.first, simdgroup, lane);
            report_nonfinite(nonfinite_grads, nonfinite.second, simdgroup, lane);
            for (int row = int(thread_index); row < QUERIES; row += threads) {
                rows[row] = row_sums(a, s, head, query + row, log_sum_exp, log_sum_exp_low, delta);
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);

            Sums scores[2][QUERIES / 8];
            Sums products[2][QUERIES / 8];
            Factors<F, parts, QUERIES / 8> dropped_weights;
            Factors<F, parts, QUERIES / 8> weights;
            multiply_by_rows<F, parts, blocks, QUERIES, pitch>(scores, keys, q_tile + first, dim_blocks);
            add_shares<ACROSS, QUERIES>(scores, exchange, simdgroup, lane);
            if (parts > 1 && (has_nonfinite_key || any_nonfinite<simdgroups>(nonfinite_queries, lane))) {
                replace_products<T, QUERIES>(
                    scores, simd_keys, a.k, rows_left, queries + query * a.q.row, a.q, range.end - query, DIM, place);
            }
            multiply_by_rows<F, parts, blocks, QUERIES, pitch>(products, values, grad_tile + first, value_blocks);
            add_shares<ACROSS, QUERIES>(products, exchange, simdgroup, lane);
            if (parts > 1 && (has_nonfinite_value || any_nonfinite<simdgroups>(nonfinite_grads, lane))) {
                replace_products<T, QUERIES>(
                    products, simd_values, a.v, rows_left, grads + query * a.grad_out.row, a.grad_out,
                    range.end - query, VALUE_DIM, place);
            }
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
                    dropped_weights.set(high, block, dropped);
                    weights.set(high, block, gradients);
                }
            }
            if (any_nonfinite<simdgroups>(nonfinite_grads, lane)) {
                without_nonfinite_values<T, F, parts, blocks, QUERIES, pitch, threads>(
                    value_sums, dropped_weights, grad_tile, VALUE_DIM,
                    grads + query * a.grad_out.row + first * a.grad_out.column, a.grad_out, range.end - query, strip,
                    value_dim, value_blocks, place, thread_index);
            }
            if (any_nonfinite<simdgroups>(nonfinite_queries, lane)) {
                without_nonfinite_values<T, F, parts, blocks, QUERIES, pitch, threads>(
                    key_sums, weights, q_tile, DIM, queries + query * a.q.row + first * a.q.column, a.q,
                    range.end - query, strip, dim, dim_blocks, place, thread_index);
            }
            add_weighted_rows<F, parts, blocks, QUERIES, pitch>(
                value_sums, dropped_weights, grad_tile + first, value_blocks);
            add_weighted_rows<F, parts, blocks, QUERIES, pitch>(key_sums, weights, q_tile + first, dim_blocks);
        }
    }
    const float factors[2] = {1.0f, 1.0f};
    store_fragments(
        key_sums, grad_k + row_offset(a.grad_k, s.batch, key_head, s.key_start + simd_key) + first * a.grad_k.column,
        a.grad_k, rows_left, dim, factors, place);
    store_fragments(
        value_sums, grad_v + row_offset(a.grad_v, s.batch, key_head, s.key_start + simd_key) + first * a.grad_v.column,
        a.grad_v, rows_left, value_dim, factors, place);
}

#define GRADIENT_KEYS_FRAGMENTS(T, F, WIDTH, DOWN, QUERIES, ACROSS)                                             \
    template [[host_name("gradient_keys_fragments_" #T "_" #WIDTH "_" #DOWN "x" #QUERIES)]] kernel void         \
    gradient_keys_fragments<T, F, WIDTH, DOWN, QUERIES, ACROSS>(                                                \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, device T *, constant Attention &, uint3, uint3, uint, uint, uint);

GRADIENT_KEYS_FRAGMENTS(float, bfloat, 64, 4, 16, 1)
GRADIENT_KEYS_FRAGMENTS(float, bfloat, 128, 2, 16, 2)
GRADIENT_KEYS_FRAGMENTS(half, half, 64, 4, 32, 1)
GRADIENT_KEYS_FRAGMENTS(half, half, 128, 2, 32, 2)
GRADIENT_KEYS_FRAGMENTS(bfloat, bfloat, 64, 4, 32, 1)
GRADIENT_KEYS_FRAGMENTS(bfloat, bfloat, 128, 2, 32, 2)
