// out = softmax(scores) v, without scores in device memory. If a gradient or the caller needs it, also L, the natural
// logarithm of each row's sum of exponentials (problem.h).
//
// Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; for the tiles, Dao,
// "FlashAttention-2", 2023.
//
//     sums = 0, largest = -inf, total = 0                         of each query, in registers
//     for each tile of keys that any query of the threadgroup attends to:
//         scores = q k^T                                          in products of 8 x 8
//         if a score exceeds `largest` by more than ln 2^8:
//         (rare; smaller differences cause no overflow in float32)
//             sums and total *= exp(largest - score), largest = score
//         p = exp(scores - largest), total += Σ p, sums += dropout(p) v
//     out = sums / total, L = largest + ln total              as two numbers
//
// Tiling (tiles.h): a threadgroup computes DOWN · TALL · 8 queries of one head. It keeps them and their sums in
// registers, and loads KEYS keys at a time; the tiles of k and v use the same threadgroup memory in turn. Each
// SIMD-group computes up to WIDTH / ACROSS of the elements, and skips tiles that none of its queries attends to. Grid:
// threadgroups (queries / rows, heads, sequences), rounded up. The sizes are rows of the table in
// src/ops/attention/tiles.metal.ts, which gives their source.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"
#include "attention/tiles.h"

#define LAZY_STEP (8.0f * LN_2)

// The query and the columns of a lane: `column`, `column + 1`, and two more at every lane_step, counted from key `key`.
struct LanePairs {
    bool all_count;
    int query;
    int key;
    int column;
};

// Replaces a row's scores by exp(score − largest) after dropout. Each of the ACROSS SIMD-groups has stored a partial
// sum of the scores in its strip. Updates `largest` and the lane's part of the total, and returns the factor by which
// earlier sums must be multiplied. All lanes that share the row must call it together.
template <typename T, int ACROSS, int KEYS, int STRIP>
inline float probabilities(
    constant Attention &a,
    thread const Pairs<T> &pairs,
    LanePairs place,
    threadgroup float *row_scores,
    thread float &largest,
    thread float &total) {
    constexpr int iterations = lane_iterations(ACROSS, KEYS);
    float2 scores[iterations];
    float most = -INFINITY;
    UNROLLED
    for (int iteration = 0; iteration < iterations; iteration += 1) {
        const int column = place.column + iteration * lane_step(ACROSS);
        scores[iteration] = -INFINITY;
        if (column < KEYS) {
            const float2 products = summed<ACROSS, STRIP>(row_scores, column);
            const int key = place.key + column;
            scores[iteration].x = score_of(a, pairs, place.all_count, place.query, key, products.x).value;
            scores[iteration].y = score_of(a, pairs, place.all_count, place.query, key + 1, products.y).value;
            most = max(most, max(scores[iteration].x, scores[iteration].y));
        }
    }
    for (ushort step = 1; step < lanes_of_row(ACROSS); step *= 2) {
        most = max(most, simd_shuffle_xor(most, step));
    }
    float factor = 1.0f;
    if (most > largest + LAZY_STEP) {
        // If all earlier scores are −∞, there is nothing to rescale.
        factor = largest == -INFINITY ? 1.0f : exponential(largest - most);
        largest = most;
    }
    total *= factor;
    UNROLLED
    for (int iteration = 0; iteration < iterations; iteration += 1) {
        const int column = place.column + iteration * lane_step(ACROSS);
        if (column < KEYS) {
            const float2 p =
                select(exponential(scores[iteration] - largest), float2(0.0f), scores[iteration] == -INFINITY);
            const float2 dropped = p * kept_along_keys(a, pairs.sequence, pairs.head, place.query, place.key + column);
            total += p.x + p.y;
            write_pair(row_scores, column, dropped);
        }
    }
    return factor;
}

template <typename T, int WIDTH, int DOWN, int ACROSS, int KEYS, int TALL>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void attention_forward(
    FORWARD_ARGUMENTS(T),
    constant Attention &a [[buffer(11)]],
    uint3 groups [[threadgroups_per_grid]],
    TILE_ARGUMENTS) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int simd_rows = TALL * 8;
    constexpr int strip = simd_rows * strip_pitch(KEYS);
    constexpr int simd_blocks = WIDTH / ACROSS / 8;

    threadgroup float4 memory[KEYS * pitch * int(sizeof(T)) / 16];
    threadgroup float2 strips[simdgroups * strip / 2];
    threadgroup float scratches[simdgroups * 64];
    threadgroup float factors[DOWN * simd_rows];
    threadgroup uint nonfinite_values[simdgroups];
    threadgroup T *tile = reinterpret_cast<threadgroup T *>(memory);
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
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    RowBlocks<T, simd_blocks, TALL> queries;
    queries.load(
        q + row_offset(a.q, s.batch, head, s.query_start + simd_query), a.q, s.queries - simd_query, DIM, place.dims,
        reinterpret_cast<threadgroup T *>(scratch), lane);
    SumBlocks<simd_blocks, TALL> sums;
    sums.clear();

    // One of each 8 rows, which several lanes share: each lane adds its columns to its `total`.
    threadgroup float *row_strips = reinterpret_cast<threadgroup float *>(strips) + place.down * ACROSS * strip;
    threadgroup float *simd_factors = factors + place.down * simd_rows;
    float largest[TALL];
    float total[TALL];
    UNROLLED
    for (int high = 0; high < TALL; high += 1) {
        largest[high] = -INFINITY;
        total[high] = 0.0f;
    }

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * simd_rows, s.queries) - 1);
    const Interval simd_range = keys_of(a, s, simd_query, min(simd_query + simd_rows, s.queries) - 1);
    for (int key = range.first / 2 * 2; key < range.end; key += KEYS) {
        // The condition is the same in all SIMD-groups that share the queries. simd_any is evaluated again at each use;
        // otherwise the compiler would duplicate the whole loop.
        const bool attends_any = simd_query < s.queries && key < simd_range.end && key + KEYS > simd_range.first;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until v's tile was read
        load_rows<T, KEYS, pitch, threads>(tile, keys + key * a.k.row, a.k, range.end - key, DIM, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (simd_any(attends_any)) {
            multiply_rows<T, simd_blocks, KEYS, pitch>(row_strips + place.across * strip, queries, tile, place.dims);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until k's tile was read and the partial scores written
        const bool is_nonfinite = load_rows<T, KEYS, pitch, threads>(
            tile, values + key * a.v.row, a.v, range.end - key, VALUE_DIM, thread_index);
        report_nonfinite(nonfinite_values, is_nonfinite, simdgroup, lane);

        if (simd_any(attends_any)) {
            const bool all_count = all_attend(a, s, {simd_query, simd_query + simd_rows}, {key, key + KEYS});
            UNROLLED
            for (int high = 0; high < TALL; high += 1) {
                const int row = high * 8 + place.lane.row;
                threadgroup float *row_scores = row_strips + row * strip_pitch(KEYS);
                const float factor = probabilities<T, ACROSS, KEYS, strip>(
                    a, pairs, {all_count, simd_query + row, key, place.lane.column}, row_scores, largest[high],
                    total[high]);
                if (place.lane.column == 0) {
                    simd_factors[row] = factor;
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        if (simd_any(attends_any)) {
            if (simd_any(simd_factors[lane % simd_rows] != 1.0f)) {
                sums.change_elements(RowFactors{simd_factors}, place.values, scratch, lane);
            }
        }
        if (any_nonfinite<simdgroups>(nonfinite_values, lane)) {
            without_nonfinite<T, KEYS, pitch, threads>(
                sums, attends_any, row_strips, tile, VALUE_DIM, place.values, scratch, thread_index);
        }
        if (simd_any(attends_any)) {
            sums.template add<T, KEYS, pitch>(row_strips, tile, place.values);
        }
    }

    threadgroup_barrier(mem_flags::mem_threadgroup);  // wait until the factors were read
    UNROLLED
    for (int high = 0; high < TALL; high += 1) {
        const int row = high * 8 + place.lane.row;
        float row_total = lanes_sum<lanes_of_row(ACROSS)>(total[high]);
        float row_largest = largest[high];
        const float factor = add_sink(a, sinks, head, row_largest, row_total);
        if (place.lane.column == 0) {
            simd_factors[row] = row_total == 0.0f ? 0.0f : factor / row_total;
            if (has(ATTENTION_OPTION_LOG_SUM_EXP) && simd_query + row < s.queries) {
                store_log_sum_exp(
                    a, s, head, simd_query + row, log_sum_exp_of(row_largest, row_total), log_sum_exp, log_sum_exp_low);
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sums.store(
        out + row_offset(a.out, s.batch, head, s.query_start + simd_query), a.out, s.queries - simd_query, VALUE_DIM,
        place.values, simd_factors, scratch, lane);
}

#define FORWARD(T, WIDTH, DOWN, ACROSS, KEYS, TALL)                                                                    \
    template [[host_name("forward_" #T "_" #WIDTH "_" #DOWN "x" #ACROSS "x" #KEYS "x" #TALL)]] kernel void             \
    attention_forward<T, WIDTH, DOWN, ACROSS, KEYS, TALL>(                                                             \
        device const T *, device const T *, device const T *, device const bool *, device const T *, device const T *, \
        device const float *, device const int *, device T *, device float *, device float *, constant Attention &,    \
        uint3, uint3, uint, uint, uint);

#define FORWARD_HALVES(WIDTH, DOWN, ACROSS, KEYS, TALL) \
    FORWARD(half, WIDTH, DOWN, ACROSS, KEYS, TALL)      \
    FORWARD(bfloat, WIDTH, DOWN, ACROSS, KEYS, TALL)

FORWARD(float, 32, 4, 1, 32, 2)
FORWARD(float, 64, 4, 2, 32, 2)
FORWARD(float, 128, 2, 4, 16, 2)
FORWARD(float, 256, 2, 4, 16, 2)
FORWARD(float, 64, 1, 2, 64, 2)
FORWARD(float, 128, 1, 4, 32, 2)
FORWARD_HALVES(64, 4, 1, 32, 2)
FORWARD_HALVES(128, 4, 1, 32, 1)
FORWARD_HALVES(256, 2, 2, 32, 1)
FORWARD_HALVES(64, 2, 1, 128, 1)
FORWARD_HALVES(128, 2, 1, 64, 1)
