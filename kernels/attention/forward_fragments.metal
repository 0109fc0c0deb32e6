// Computes the same as forward.metal, but keeps scores in registers instead of threadgroup memory (fragments.h).
// Probabilities are rounded to the type of v before the second product, as in FlashAttention-2 (Dao, 2023). The host
// uses this kernel on NVIDIA GPUs.
//
// A threadgroup computes 16 · DOWN queries of one head, 16 in each SIMD-group, and loads KEYS keys and their values at
// a time. Grid: threadgroups (queries / rows, heads, sequences), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "attention/factor_tiles.h"

#define LAZY_STEP (8.0f * LN_2)

// The state of a lane's two rows: the score that exponentials are relative to, and the lane's part of their sum.
struct RowState {
    float largest[2];
    float total[2];
};

// Replaces the scores by exp(score − largest) after dropout, and writes the factors by which earlier sums must be
// multiplied.
template <typename T, typename F, int PARTS, int KEYS>
inline void probabilities(
    constant Attention &a,
    thread const Pairs<T> &pairs,
    bool all_count,
    int query,
    int key,
    fragment_place place,
    thread const Sums (&scores)[2][KEYS / 8],
    thread RowState &state,
    thread Factors<F, PARTS, KEYS / 8> &weights,
    thread float (&factors)[2]) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = query + high * 8 + place.row;
        float2 values[KEYS / 8];
        float most = -INFINITY;
        UNROLLED
        for (int block = 0; block < KEYS / 8; block += 1) {
            const int column = key + block * 8 + place.column;
            const float2 products = fragment_elements(scores[high][block]);
            values[block].x = score_of(a, pairs, all_count, row, column, products.x).value;
            values[block].y = score_of(a, pairs, all_count, row, column + 1, products.y).value;
            most = max(most, max(values[block].x, values[block].y));
        }
        most = max(most, simd_shuffle_xor(most, place.neighbors[0]));
        most = max(most, simd_shuffle_xor(most, place.neighbors[1]));
        factors[high] = 1.0f;
        if (most > state.largest[high] + LAZY_STEP) {
            // If all earlier scores are −∞, there is nothing to rescale.
            factors[high] = state.largest[high] == -INFINITY ? 1.0f : exponential(state.largest[high] - most);
            state.largest[high] = most;
        }
        float total = state.total[high] * factors[high];
        // If all scores are −∞, their exponentials are 0.
        const float base = state.largest[high] == -INFINITY ? 0.0f : state.largest[high];
        UNROLLED
        for (int block = 0; block < KEYS / 8; block += 1) {
            const float2 p = {exponential_for<T>(values[block].x - base), exponential_for<T>(values[block].y - base)};
            const int column = key + block * 8 + place.column;
            total += p.x + p.y;
            weights.set(high, block, p * kept_along_keys(a, pairs.sequence, pairs.head, row, column));
        }
        state.total[high] = total;
    }
}

template <typename T, typename F, int WIDTH, int DOWN, int KEYS>
[[kernel, max_total_threads_per_threadgroup(DOWN * 32)]] void attention_forward_fragments(
    FORWARD_ARGUMENTS(T),
    constant Attention &a [[buffer(11)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int threads = DOWN * 32;
    constexpr int parts = part_count<T>();
    constexpr int pitch = tile_pitch<F>(WIDTH);
    constexpr int blocks = WIDTH / 8;
    constexpr bool reads_ahead = parts == 1 || WIDTH <= 64;  // otherwise there are too few registers
    static_assert(DOWN * TALL_ROWS <= pitch, "the strips fit into the tile of k");

    threadgroup float4 memory[2 * parts * KEYS * pitch * int(sizeof(F)) / 16];
    threadgroup uint nonfinite_keys[DOWN];
    threadgroup uint nonfinite_values[DOWN];
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
    const Blocks dim_blocks = blocks_of(DIM, 1, 0);
    const Blocks value_blocks = blocks_of(VALUE_DIM, 1, 0);
    const int simd_query = first_query + int(simdgroup) * TALL_ROWS;
    const fragment_place place = place_of_lane(ushort(lane));
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    device const T *simd_queries = q + row_offset(a.q, s.batch, head, s.query_start + simd_query);
    const int rows_left = s.queries - simd_query;
    Factors<F, parts, blocks> queries;
    const bool has_nonfinite_query = simd_any(queries.load(simd_queries, a.q, rows_left, int(DIM), place));
    SumBlocks<blocks, 2> sums;
    sums.clear();
    RowState state = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * TALL_ROWS, s.queries) - 1);
    const Interval simd_range = keys_of(a, s, simd_query, min(simd_query + TALL_ROWS, s.queries) - 1);
    TwoTiles<T, F, KEYS, WIDTH, threads, reads_ahead> tiles;
    const int first_key = range.first / 2 * 2;
    tiles.read_ahead(
        keys + first_key * a.k.row, a.k, values + first_key * a.v.row, a.v, range.end - first_key, thread_index);
    for (int key = first_key; key < range.end; key += KEYS) {
        // The condition is the same in all lanes. simd_any is evaluated again at each use, for the reason given in
        // forward.metal.
        const bool attends_any = simd_query < s.queries && key < simd_range.end && key + KEYS > simd_range.first;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the previous tiles were read
        const NonfiniteTiles nonfinite = tiles.write(
            k_tile, keys + key * a.k.row, a.k, v_tile, values + key * a.v.row, a.v, range.end - key, false,
            thread_index);
        if (parts > 1) {
            report_nonfinite(nonfinite_keys, nonfinite.first, simdgroup, lane);
        }
        report_nonfinite(nonfinite_values, nonfinite.second, simdgroup, lane);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const int next = key + KEYS;
        tiles.read_ahead(keys + next * a.k.row, a.k, values + next * a.v.row, a.v, range.end - next, thread_index);

        Factors<F, parts, KEYS / 8> weights;
        if (simd_any(attends_any)) {
            Sums scores[2][KEYS / 8];
            multiply_by_rows<F, parts, blocks, KEYS, pitch>(scores, queries, k_tile, dim_blocks.count);
            if (parts > 1 && (has_nonfinite_query || any_nonfinite<DOWN>(nonfinite_keys, lane))) {
                replace_products<T, KEYS>(
                    scores, simd_queries, a.q, rows_left, keys + key * a.k.row, a.k, range.end - key, DIM, place);
            }
            const bool all_count = all_attend(a, s, {simd_query, simd_query + TALL_ROWS}, {key, key + KEYS});
            float changes[2];
            if (simd_all(all_count)) {
                probabilities<T, F, parts, KEYS>(
                    a, pairs, true, simd_query, key, place, scores, state, weights, changes);
            } else {
                probabilities<T, F, parts, KEYS>(
                    a, pairs, false, simd_query, key, place, scores, state, weights, changes);
            }
            if (simd_any(changes[0] != 1.0f || changes[1] != 1.0f)) {
                UNROLLED
                for (int block = 0; block < blocks; block += 1) {
                    sums.at[0][block] = fragment_of(fragment_elements(sums.at[0][block]) * changes[0]);
                    sums.at[1][block] = fragment_of(fragment_elements(sums.at[1][block]) * changes[1]);
                }
            }
        } else {
            UNROLLED
            for (int block = 0; block < KEYS / 8; block += 1) {
                weights.set(0, block, 0.0f);
                weights.set(1, block, 0.0f);
            }
        }
        if (any_nonfinite<DOWN>(nonfinite_values, lane)) {
            without_nonfinite_values<T, F, parts, blocks, KEYS, pitch, threads>(
                sums, weights, v_tile, VALUE_DIM, values + key * a.v.row, a.v, range.end - key,
                k_tile + int(simdgroup) * parts * TALL_ROWS * KEYS, int(VALUE_DIM), value_blocks.count, place,
                thread_index);
        }
        if (simd_any(attends_any)) {
            add_weighted_rows<F, parts, blocks, KEYS, pitch>(sums, weights, v_tile, value_blocks.count);
        }
    }

    float factors[2];
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = high * 8 + place.row;
        float row_total = state.total[high];
        row_total += simd_shuffle_xor(row_total, place.neighbors[0]);
        row_total += simd_shuffle_xor(row_total, place.neighbors[1]);
        float row_largest = state.largest[high];
        const float factor = add_sink(a, sinks, head, row_largest, row_total);
        factors[high] = row_total == 0.0f ? 0.0f : factor / row_total;
        if (has(ATTENTION_OPTION_LOG_SUM_EXP) && place.column == 0 && simd_query + row < s.queries) {
            store_log_sum_exp(
                a, s, head, simd_query + row, log_sum_exp_of(row_largest, row_total), log_sum_exp, log_sum_exp_low);
        }
    }
    store_fragments(
        sums, out + row_offset(a.out, s.batch, head, s.query_start + simd_query), a.out, rows_left, int(VALUE_DIM),
        factors, place);
}

#define FORWARD_FRAGMENTS(T, F, WIDTH, DOWN, KEYS)                                                                     \
    template [[host_name("forward_fragments_" #T "_" #WIDTH "_" #DOWN "x" #KEYS)]] kernel void                         \
    attention_forward_fragments<T, F, WIDTH, DOWN, KEYS>(                                                              \
        device const T *, device const T *, device const T *, device const bool *, device const T *, device const T *, \
        device const float *, device const int *, device T *, device float *, device float *, constant Attention &,    \
        uint3, uint3, uint, uint, uint);

FORWARD_FRAGMENTS(float, bfloat, 64, 4, 32)
FORWARD_FRAGMENTS(float, bfloat, 128, 4, 16)
FORWARD_FRAGMENTS(half, half, 64, 4, 64)
FORWARD_FRAGMENTS(half, half, 128, 8, 32)
FORWARD_FRAGMENTS(bfloat, bfloat, 64, 4, 64)
FORWARD_FRAGMENTS(bfloat, bfloat, 128, 8, 32)
