// Computes the same as gradient_queries.metal, but keeps scores and their gradients in registers instead of threadgroup
// memory (fragments.h). The factors of k are rounded to its type, as in FlashAttention-2 (Dao, 2023). The host uses
// this kernel on NVIDIA GPUs.
//
// A threadgroup computes 16 · DOWN queries of one head, and loads KEYS keys and their values at a time. ACROSS
// SIMD-groups share 16 queries, and each has a share of the elements along D and E. Grid: threadgroups (queries / rows,
// heads, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/factor_tiles.h"

// Sets the gradients of the scores of the queries from `query` on and the keys from `key` on. `all_count`: see score_of
// (pairs.h). It is a constant in each of two calls, so that a call has no branches and its exponentials overlap.
template <typename T, typename F, int PARTS, int KEYS>
inline void set_gradients(
    constant Attention &a,
    thread const Pairs<T> &pairs,
    bool all_count,
    int query,
    int key,
    fragment_place place,
    thread const Sums (&scores)[2][KEYS / 8],
    thread const Sums (&products)[2][KEYS / 8],
    thread const RowSums (&rows)[2],
    thread Factors<F, PARTS, KEYS / 8> &weights) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = query + high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < KEYS / 8; block += 1) {
            const int column = key + block * 8 + place.column;
            const float2 score = fragment_elements(scores[high][block]);
            const float2 grad = fragment_elements(products[high][block]);
            const float2 kept = kept_along_keys(a, pairs.sequence, pairs.head, row, column);
            float2 gradients;
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const Score of_pair = score_of(a, pairs, all_count, row, column + i, score[i]);
                gradients[i] = gradient_for<T>(a, of_pair, grad[i], kept[i], rows[high]).product;
            }
            weights.set(high, block, gradients);
        }
    }
}

// GRADIENT_ARGUMENTS (problem.h), and
// grad_q              [[buffer(11)]]       [B, H, M, D]
template <typename T, typename F, int WIDTH, int DOWN, int KEYS, int ACROSS>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void gradient_queries_fragments(
    GRADIENT_ARGUMENTS(T),
    device T *grad_q [[buffer(11)]],
    constant Attention &a [[buffer(12)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int parts = part_count<T>();
    constexpr int pitch = tile_pitch<F>(WIDTH);
    constexpr int share = WIDTH / ACROSS;  // elements of a SIMD-group
    constexpr int blocks = share / 8;
    static_assert(simdgroups * TALL_ROWS <= pitch, "the strips fit into the tile of v");

    threadgroup float4 memory[2 * parts * KEYS * pitch * int(sizeof(F)) / 16];
    threadgroup uint nonfinite_keys[simdgroups];
    threadgroup uint nonfinite_values[simdgroups];
    threadgroup float2 exchange[ACROSS == 1 ? 1 : simdgroups * KEYS / 8 * 64];
    threadgroup F *k_tile = reinterpret_cast<threadgroup F *>(memory);
    threadgroup F *v_tile = k_tile + parts * KEYS * pitch;

    const Sequence s = sequence_of(a, sequences, group.z);
    const QueriesOfHead queries_of_group = queries_of_head<T>(s, group, groups, DOWN * TALL_ROWS);
    const int first_query = queries_of_group.first;
    if (first_query >= s.queries) {
        return;
    }
    const uint head = queries_of_group.head;
    const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
    const int first = int(simdgroup) % ACROSS * share;  // its first element
    const int dim = int(DIM) - first;
    const int value_dim = int(VALUE_DIM) - first;
    const int dim_blocks = ACROSS > 1 ? blocks : blocks_of(DIM, 1, 0).count;
    const int value_blocks = ACROSS > 1 ? blocks : blocks_of(VALUE_DIM, 1, 0).count;
    const int simd_query = first_query + int(simdgroup) / ACROSS * TALL_ROWS;
    const int rows_left = s.queries - simd_query;
    const fragment_place place = place_of_lane(ushort(lane));
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    device const T *simd_queries = q + row_offset(a.q, s.batch, head, s.query_start + simd_query);
    device const T *simd_grads = grad_out + row_offset(a.grad_out, s.batch, head, s.query_start + simd_query);
    Factors<F, parts, blocks> queries;
    Factors<F, parts, blocks> grads;
    report_nonfinite(
        nonfinite_keys, queries.load(simd_queries + first * a.q.column, a.q, rows_left, dim, place), simdgroup, lane);
    report_nonfinite(
        nonfinite_values, grads.load(simd_grads + first * a.grad_out.column, a.grad_out, rows_left, value_dim, place),
        simdgroup, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool has_nonfinite_query = any_nonfinite<simdgroups>(nonfinite_keys, lane);
    const bool has_nonfinite_grad = any_nonfinite<simdgroups>(nonfinite_values, lane);
    SumBlocks<blocks, 2> sums;
    sums.clear();
    RowSums rows[2];
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        rows[high] = row_sums(a, s, head, simd_query + high * 8 + place.row, log_sum_exp, log_sum_exp_low, delta);
    }

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * TALL_ROWS, s.queries) - 1);
    constexpr bool reads_ahead = parts == 1;  // otherwise there are too few registers
    TwoTiles<T, F, KEYS, WIDTH, threads, reads_ahead> tiles;
    const int first_key = range.first / 2 * 2;
    tiles.read_ahead(
        keys + first_key * a.k.row, a.k, values + first_key * a.v.row, a.v, range.end - first_key, thread_index);
    for (int key = first_key; key < range.end; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        const NonfiniteTiles nonfinite = tiles.write(
            k_tile, keys + key * a.k.row, a.k, v_tile, values + key * a.v.row, a.v, range.end - key, ACROSS > 1,
            thread_index);
        report_nonfinite(nonfinite_keys, nonfinite.first, simdgroup, lane);
        if (parts > 1) {
            report_nonfinite(nonfinite_values, nonfinite.second, simdgroup, lane);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const int next = key + KEYS;
        tiles.read_ahead(keys + next * a.k.row, a.k, values + next * a.v.row, a.v, range.end - next, thread_index);

        Sums scores[2][KEYS / 8];
        Sums products[2][KEYS / 8];
        Factors<F, parts, KEYS / 8> weights;
        multiply_by_rows<F, parts, blocks, KEYS, pitch>(scores, queries, k_tile + first, dim_blocks);
        add_shares<ACROSS, KEYS>(scores, exchange, simdgroup, lane);
        if (parts > 1 && (has_nonfinite_query || any_nonfinite<simdgroups>(nonfinite_keys, lane))) {
            replace_products<T, KEYS>(
                scores, simd_queries, a.q, rows_left, keys + key * a.k.row, a.k, range.end - key, DIM, place);
        }
        multiply_by_rows<F, parts, blocks, KEYS, pitch>(products, grads, v_tile + first, value_blocks);
        add_shares<ACROSS, KEYS>(products, exchange, simdgroup, lane);
        if (parts > 1 && (has_nonfinite_grad || any_nonfinite<simdgroups>(nonfinite_values, lane))) {
            replace_products<T, KEYS>(
                products, simd_grads, a.grad_out, rows_left, values + key * a.v.row, a.v, range.end - key, VALUE_DIM,
                place);
        }
        const bool all_count = all_attend(a, s, {simd_query, simd_query + TALL_ROWS}, {key, key + KEYS});
        if (simd_all(all_count)) {
            set_gradients<T, F, parts, KEYS>(a, pairs, true, simd_query, key, place, scores, products, rows, weights);
        } else {
            set_gradients<T, F, parts, KEYS>(a, pairs, false, simd_query, key, place, scores, products, rows, weights);
        }
        if (any_nonfinite<simdgroups>(nonfinite_keys, lane)) {
            without_nonfinite_values<T, F, parts, blocks, KEYS, pitch, threads>(
                sums, weights, k_tile, DIM, keys + key * a.k.row + first * a.k.column, a.k, range.end - key,
                v_tile + int(simdgroup) * parts * TALL_ROWS * KEYS, dim, dim_blocks, place, thread_index);
        }
        add_weighted_rows<F, parts, blocks, KEYS, pitch>(sums, weights, k_tile + first, dim_blocks);
    }
    const float factors[2] = {1.0f, 1.0f};
    store_fragments(
        sums, grad_q + row_offset(a.grad_q, s.batch, head, s.query_start + simd_query) + first * a.grad_q.column,
        a.grad_q, rows_left, dim, factors, place);
}

#define GRADIENT_QUERIES_FRAGMENTS(T, F, WIDTH, DOWN, KEYS, ACROSS)                                             \
    template [[host_name("gradient_queries_fragments_" #T "_" #WIDTH "_" #DOWN "x" #KEYS)]] kernel void         \
    gradient_queries_fragments<T, F, WIDTH, DOWN, KEYS, ACROSS>(                                                \
        device const T *, device const T *, device const T *, device const bool *, device const T *,            \
        device const float *, device const int *, device const T *, device const float *, device const float *, \
        device const float *, device T *, constant Attention &, uint3, uint3, uint, uint, uint);

GRADIENT_QUERIES_FRAGMENTS(float, bfloat, 64, 4, 32, 1)
GRADIENT_QUERIES_FRAGMENTS(float, bfloat, 128, 2, 16, 2)
GRADIENT_QUERIES_FRAGMENTS(half, half, 64, 4, 32, 1)
GRADIENT_QUERIES_FRAGMENTS(half, half, 128, 8, 32, 1)
GRADIENT_QUERIES_FRAGMENTS(bfloat, bfloat, 64, 4, 32, 1)
GRADIENT_QUERIES_FRAGMENTS(bfloat, bfloat, 128, 8, 32, 1)
