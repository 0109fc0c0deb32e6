// out = softmax(scores) v and L, the natural logarithm of each row's sum of exponentials (problem.h), without scores in
// device memory.
//
// Online softmax: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; tiles: Dao,
// "FlashAttention-2", 2023.
//
//     sums = 0, largest = -inf, total = 0                         of each query, in registers
//     for each tile of keys that any query of the threadgroup attends to:
//         scores = q k^T                                          in products of 8 x 8
//         where a score exceeds `largest` by more than ln 2^8:
//         (a factor of 2^8 is no danger to float32, so that this is rare)
//             sums and total *= exp(largest - score), largest = score
//         p = exp(scores - largest), total += Σ p, sums += dropout(p) v
//     out = sums / total, L = largest + ln total              in two numbers
//
// Tiling (tiles.h): a threadgroup owns DOWN · 8 queries of one head, in registers with their sums, and goes through
// KEYS keys at a time; k's tile and v's take turns in one place. Each SIMD-group owns up to WIDTH / ACROSS of the
// elements. Grid: threadgroups (queries / rows, heads, sequences), rounded up. The sizes are rows of
// src/ops/attention/tiles.metal.ts, which names where they are from.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"
#include "attention/tiles.h"

#define LAZY_STEP (8.0f * LN_2)

// q, k, v        [[buffer(0, 1, 2)]]  [B, H, M, D], [B, H / G, N, D], [B, H / G, N, E]
// mask, bias     [[buffer(3, 4)]]     [B, H, M, N], by strides of 0 too
// sinks, slopes  [[buffer(5, 6)]]     [H], [B, H]
// sequences      [[buffer(7)]]        [count, 4]
// out            [[buffer(8)]]        [B, H, M, E]
// log_sum_exp    [[buffer(9)]]        [B, H, M]; its low part [[buffer(10)]]
template <typename T, int WIDTH, int DOWN, int ACROSS, int KEYS>
[[kernel, max_total_threads_per_threadgroup(DOWN * ACROSS * 32)]] void attention_forward(
    device const T *q [[buffer(0)]],
    device const T *k [[buffer(1)]],
    device const T *v [[buffer(2)]],
    device const bool *mask [[buffer(3)]],
    device const T *bias [[buffer(4)]],
    device const T *sinks [[buffer(5)]],
    device const float *slopes [[buffer(6)]],
    device const int *sequences [[buffer(7)]],
    device T *out [[buffer(8)]],
    device float *log_sum_exp [[buffer(9)]],
    device float *log_sum_exp_low [[buffer(10)]],
    constant Attention &a [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr int simdgroups = DOWN * ACROSS;
    constexpr int threads = simdgroups * 32;
    constexpr int pitch = tile_pitch<T>(WIDTH);
    constexpr int strip = 8 * strip_pitch(KEYS);
    constexpr int own_blocks = WIDTH / ACROSS / 8;
    constexpr int iterations = lane_iterations(ACROSS, KEYS);

    threadgroup float4 memory[KEYS * pitch * int(sizeof(T)) / 16];
    threadgroup float strips[simdgroups * strip];
    threadgroup float scratches[simdgroups * 64];
    threadgroup float factors[DOWN * 8];
    threadgroup uint nonfinite_values[simdgroups];
    threadgroup T *tile = reinterpret_cast<threadgroup T *>(memory);
    threadgroup float *scratch = scratches + simdgroup * 64;

    const Sequence s = sequence_of(a, sequences, group.z);
    const int first_query = int(group.x) * DOWN * 8;
    if (first_query >= s.queries) {
        return;
    }
    const int down = int(simdgroup) / ACROSS;
    const int across = int(simdgroup) % ACROSS;
    const uint head = group.y;
    const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
    const Blocks own_dim = blocks_of(DIM, ACROSS, across);
    const Blocks own_value_dim = blocks_of(VALUE_DIM, ACROSS, across);
    const int own_query = first_query + down * 8;
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);

    OwnRows<T, own_blocks> queries;
    queries.load(
        q + row_offset(a.q, s.batch, head, s.query_start + own_query), a.q, s.queries - own_query, DIM, own_dim,
        reinterpret_cast<threadgroup T *>(scratch), lane);
    OwnSums<own_blocks> sums;
    sums.clear();

    // One row of the 8, which several lanes share: each adds up its own columns' part of `total`.
    const LanePosition position = lane_position(ACROSS, across, lane);
    const int query = own_query + position.row;
    threadgroup float *row_strips = strips + down * ACROSS * strip;
    float largest = -INFINITY;
    float total = 0.0f;

    const Interval range = keys_of(a, s, first_query, min(first_query + DOWN * 8, s.queries) - 1);
    for (int key = range.first / 2 * 2; key < range.end; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // v's tile was read
        load_rows<T, KEYS, pitch, threads>(tile, keys + key * a.k.row, a.k, range.end - key, DIM, thread_index);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        multiply_rows<T, own_blocks, KEYS, pitch>(row_strips + across * strip, queries, tile, own_dim);
        threadgroup_barrier(mem_flags::mem_threadgroup);  // k's tile was read, and the parts of the scores are there
        const bool is_nonfinite = load_rows<T, KEYS, pitch, threads>(
            tile, values + key * a.v.row, a.v, range.end - key, VALUE_DIM, thread_index);
        report_nonfinite(nonfinite_values, is_nonfinite, simdgroup, lane);

        const bool all_count = all_attend(a, s, {own_query, own_query + 8}, {key, key + KEYS});
        float2 scores[iterations];
        float most = -INFINITY;
        UNROLLED
        for (int iteration = 0; iteration < iterations; iteration += 1) {
            const int column = position.column + iteration * lane_step(ACROSS);
            scores[iteration] = -INFINITY;
            if (column < KEYS) {
                const float2 products = summed<ACROSS, strip>(row_strips, position.row * strip_pitch(KEYS) + column);
                scores[iteration].x = score_of(a, pairs, all_count, query, key + column, products.x).value;
                scores[iteration].y = score_of(a, pairs, all_count, query, key + column + 1, products.y).value;
                most = max(most, max(scores[iteration].x, scores[iteration].y));
            }
        }
        for (ushort step = 1; step < lanes_of_row(ACROSS); step *= 2) {
            most = max(most, simd_shuffle_xor(most, step));
        }
        float factor = 1.0f;
        if (most > largest + LAZY_STEP) {
            factor = largest == -INFINITY ? 1.0f
                                          : exponential(largest - most);  // nothing has to shrink where nothing is yet
            largest = most;
        }
        total *= factor;
        UNROLLED
        for (int iteration = 0; iteration < iterations; iteration += 1) {
            const int column = position.column + iteration * lane_step(ACROSS);
            if (column < KEYS) {
                const float2 p =
                    select(exponential(scores[iteration] - largest), float2(0.0f), scores[iteration] == -INFINITY);
                const float2 dropped = p * kept_along_keys(a, s, head, query, key + column);
                total += p.x + p.y;
                row_strips[position.row * strip_pitch(KEYS) + column] = dropped.x;
                row_strips[position.row * strip_pitch(KEYS) + column + 1] = dropped.y;
            }
        }
        if (position.column == 0) {
            factors[down * 8 + position.row] = factor;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        if (simd_any(factors[down * 8 + lane % 8] != 1.0f)) {
            sums.scale(factors + down * 8, own_value_dim, scratch, lane);
        }
        sums.template add<T, KEYS, pitch>(
            row_strips, tile, own_value_dim, any_nonfinite<simdgroups>(nonfinite_values, lane), scratch, lane);
    }

    total = lanes_sum<lanes_of_row(ACROSS)>(total);
    float factor = 1.0f;
    if (has(ATTENTION_OPTION_SINKS)) {
        const float sink = float(sinks[row_offset(a.sinks, 0, head, 0)]);
        const float most = max(largest, sink);
        factor = total == 0.0f ? 0.0f : exponential(largest - most);
        total = total * factor + (sink == -INFINITY ? 0.0f : exponential(sink - most));
        largest = most;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // factors were read
    if (position.column == 0) {
        factors[down * 8 + position.row] = total == 0.0f ? 0.0f : factor / total;
        if (query < s.queries) {
            const LogSumExp sum = log_sum_exp_of(largest, total);
            const long row = s.query_start + query;
            log_sum_exp[row_offset(a.log_sum_exp, s.batch, head, row)] = sum.high;
            log_sum_exp_low[row_offset(a.log_sum_exp_low, s.batch, head, row)] = sum.low;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sums.scale(factors + down * 8, own_value_dim, scratch, lane);
    sums.store(
        out + row_offset(a.out, s.batch, head, s.query_start + own_query), a.out, s.queries - own_query, VALUE_DIM,
        own_value_dim, scratch, lane);
}

#define FORWARD(T, WIDTH, DOWN, ACROSS, KEYS)                                                                          \
    template [[host_name("forward_" #T "_" #WIDTH "_" #DOWN "x" #ACROSS "x" #KEYS)]] kernel void                       \
    attention_forward<T, WIDTH, DOWN, ACROSS, KEYS>(                                                                   \
        device const T *, device const T *, device const T *, device const bool *, device const T *, device const T *, \
        device const float *, device const int *, device T *, device float *, device float *, constant Attention &,    \
        uint3, uint, uint, uint);

#define FORWARD_HALVES(WIDTH, DOWN, ACROSS, KEYS) \
    FORWARD(half, WIDTH, DOWN, ACROSS, KEYS)      \
    FORWARD(bfloat, WIDTH, DOWN, ACROSS, KEYS)

FORWARD(float, 32, 4, 1, 32)
FORWARD(float, 64, 4, 1, 32)
FORWARD(float, 128, 4, 2, 16)
FORWARD(float, 256, 2, 4, 16)
FORWARD(float, 64, 2, 1, 64)
FORWARD(float, 128, 2, 2, 32)
FORWARD_HALVES(64, 4, 1, 32)
FORWARD_HALVES(128, 4, 1, 32)
FORWARD_HALVES(256, 2, 2, 32)
FORWARD_HALVES(64, 2, 1, 128)
FORWARD_HALVES(128, 2, 1, 64)
