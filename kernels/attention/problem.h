// Attention as src/ops/attention/problem.ts defines it. These definitions are shared by the host
// (src/ops/attention/primitive.ts) and all kernels of this folder. Letters: M queries, N keys, D dim, E valueDim, G = H
// / kvHeads; query i, key j.
//
//     s = scale · q[i] · k[j];  s = softcap · tanh(s / softcap);  s = s + bias[i, j];  s = s − slope · |j − i − shift|
//     L[i] = ln(Σ_j exp(s[i, j]) + exp(sink)),  P = exp(s − L),  out[i] = Σ_j Z[i, j] · v[j],  Z = P after dropout
//
// Sums are in float32.

#ifndef ORCHARD_ATTENTION_PROBLEM_H
#define ORCHARD_ATTENTION_PROBLEM_H

#include "common/philox.h"
#include "common/unrolled.h"
#include "generated/attention_option.h"

// Element (b, h, row, column) is at start + b · batch + h · head + row · row + column · column, in elements from the
// address where the operand is bound.
#include "generated/attention_operand.h"

// - queries: of all sequences together
// - is_bottom_right: whether the last query is aligned with the last key, instead of the first with the first
// - key: of dropout
// - keep_scale: 1 / (1 − p)
// - group: G
// - left: of the band: −left ≤ j − i − shift ≤ right
// - sequences: number of packed sequences
// - parts: number of parts of the keys in the kernel for few queries
// - bias_sizes: of the bias's axes
#include "generated/attention.h"

#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

// Returns e^x, where x is a difference of scores. Scores are subtracted before they are scaled to base 2, so that the
// rounding error of the scaling is relative to the difference.
template <typename Number> inline Number exponential(Number x) { return exp2(x * LOG2_E); }

// Returns the sum over LANES adjacent lanes, in all of them. The order of simd_sum is unspecified; this order is the
// same in every run.
template <ushort LANES> inline float lanes_sum(float x) {
    for (ushort step = 1; step < LANES; step *= 2) {
        x += simd_shuffle_xor(x, step);
    }
    return x;
}

// Pipelines are specialized for these constants: the options of a call, D and E. They do not depend on lengths.
constant uint OPTIONS [[function_constant(0)]];
constant uint VALUE_DIM [[function_constant(1)]];
constant uint DIM [[function_constant(2)]];

// Returns whether an option of the call is set: a bit of OPTIONS (src/ops/attention/primitive.ts).
inline bool has(AttentionOption option) { return (OPTIONS >> option & 1) != 0; }

// One sequence: a batch, or one of several packed into a single batch. i and j are counted within it.
struct Sequence {
    int index;
    int batch;
    int query_start;
    int queries;
    int key_start;
    int keys;
    int shift;  // j − i for the key that is aligned with a query
};

inline Sequence sequence_of(constant Attention &a, device const int *sequences, uint index) {
    Sequence s = {int(index), int(index), 0, int(a.queries), 0, int(a.keys), 0};
    if (has(ATTENTION_OPTION_PACKED)) {
        s.batch = 0;
        s.query_start = sequences[index * 4];
        s.queries = sequences[index * 4 + 1];
        s.key_start = sequences[index * 4 + 2];
        s.keys = sequences[index * 4 + 3];
    }
    s.shift = a.is_bottom_right ? s.keys - s.queries : 0;
    return s;
}

// Returns the offset of row `row` of a head.
inline long row_offset(constant AttentionOperand &operand, int batch, long head, long row) {
    return operand.start + batch * operand.batch + head * operand.head + row * operand.row;
}

struct Interval {
    int first;
    int end;
};

inline int clamped(long value, int least, int most) { return int(max(long(least), min(long(most), value))); }

// Returns the keys to which any of the queries first … last may attend. Both ends increase with the queries.
inline Interval keys_of(constant Attention &a, Sequence s, int first, int last) {
    if (!has(ATTENTION_OPTION_BAND)) {
        return {0, s.keys};
    }
    const int begin = clamped(long(first) + s.shift - a.left, 0, s.keys);
    return {begin, clamped(long(last) + s.shift + a.right + 1, begin, s.keys)};
}

// Returns the queries that may attend to any of the keys first … last.
inline Interval queries_of(constant Attention &a, Sequence s, int first, int last) {
    if (!has(ATTENTION_OPTION_BAND)) {
        return {0, s.queries};
    }
    const int begin = clamped(long(first) - s.shift - a.right, 0, s.queries);
    return {begin, clamped(long(last) - s.shift + a.left + 1, begin, s.queries)};
}

// Returns whether all of the queries attend to all of the keys, so that pairs need no checks.
inline bool all_attend(constant Attention &a, Sequence s, Interval queries, Interval keys) {
    if (has(ATTENTION_OPTION_MASK) || queries.end > s.queries || keys.end > s.keys) {
        return false;
    }
    const Interval common = {
        keys_of(a, s, queries.end - 1, queries.end - 1).first, keys_of(a, s, queries.first, queries.first).end};
    return common.first <= keys.first && keys.end <= common.end;
}

// A query's L as two numbers; the second is the rounding error of the first. At 1e4, the rounding error of float32 is
// up to 5e-4, and exp(s − L) would have it as a relative error.
struct LogSumExp {
    float high;
    float low;
};

// Computes L from the largest score, or one that is not much smaller, and Σ exp(score − largest). The low part is exact
// if |largest| is much greater than the logarithm (Dekker's Fast2Sum), and negligible otherwise.
inline LogSumExp log_sum_exp_of(float largest, float total) {
    if (total == 0.0f) {
        return {-INFINITY, 0.0f};
    }
    const float logarithm = precise::log(total);
    const float high = largest + logarithm;
    return {high, (largest - high) + logarithm};
}

// Adds a head's sink, if there is one, to the largest score and to the sum of a row. Returns the factor by which the
// sums of values change.
template <typename T>
inline float add_sink(
    constant Attention &a, device const T *sinks, uint head, thread float &largest, thread float &total) {
    if (!has(ATTENTION_OPTION_SINKS)) {
        return 1.0f;
    }
    const float sink = float(sinks[row_offset(a.sinks, 0, head, 0)]);
    const float most = max(largest, sink);
    const float factor = total == 0.0f ? 0.0f : exponential(largest - most);
    total = total * factor + (sink == -INFINITY ? 0.0f : exponential(sink - most));
    largest = most;
    return factor;
}

// Stores L of a query, which counts from the first of its sequence.
inline void store_log_sum_exp(
    constant Attention &a, Sequence s, uint head, int query, LogSumExp sum, device float *high, device float *low) {
    const long at = s.query_start + query;
    high[row_offset(a.log_sum_exp, s.batch, head, at)] = sum.high;
    low[row_offset(a.log_sum_exp_low, s.batch, head, at)] = sum.low;
}

// exp(score − L)
inline float probability_of(float score, float high, float low) { return exponential((score - high) - low); }

// The operands of kernels of the forward pass:
// q, k, v         [[buffer(0, 1, 2)]]  [B, H, M, D], [B, H / G, N, D], [B, H / G, N, E]
// mask, bias      [[buffer(3, 4)]]     [B, H, M, N]; strides may be 0
// sinks, slopes   [[buffer(5, 6)]]     [H], [B, H]
// sequences       [[buffer(7)]]        [count, 4]
// out             [[buffer(8)]]        [B, H, M, E]
// log_sum_exp     [[buffer(9)]]        [B, H, M]; its low part is [[buffer(10)]]; only with the option LOG_SUM_EXP
#define FORWARD_ARGUMENTS(T)                                                                           \
    device const T *q [[buffer(0)]], device const T *k [[buffer(1)]], device const T *v [[buffer(2)]], \
        device const bool *mask [[buffer(3)]], device const T *bias [[buffer(4)]],                     \
        device const T *sinks [[buffer(5)]], device const float *slopes [[buffer(6)]],                 \
        device const int *sequences [[buffer(7)]], device T *out [[buffer(8)]],                        \
        device float *log_sum_exp [[buffer(9)]], device float *log_sum_exp_low [[buffer(10)]]

// The operands of kernels of the backward pass:
// q, k, v             [[buffer(0, 1, 2)]]  [B, H, M, D], [B, H / G, N, D], [B, H / G, N, E]
// mask, bias          [[buffer(3, 4)]]     [B, H, M, N]; strides may be 0
// slopes, sequences   [[buffer(5, 6)]]     [B, H], [count, 4]
// grad_out            [[buffer(7)]]        [B, H, M, E]
// log_sum_exp         [[buffer(8, 9)]]     [B, H, M], and its low part
// delta               [[buffer(10)]]       [B, H, M], row-major
#define GRADIENT_ARGUMENTS(T)                                                                          \
    device const T *q [[buffer(0)]], device const T *k [[buffer(1)]], device const T *v [[buffer(2)]], \
        device const bool *mask [[buffer(3)]], device const T *bias [[buffer(4)]],                     \
        device const float *slopes [[buffer(5)]], device const int *sequences [[buffer(6)]],           \
        device const T *grad_out [[buffer(7)]], device const float *log_sum_exp [[buffer(8)]],         \
        device const float *log_sum_exp_low [[buffer(9)]], device const float *delta [[buffer(10)]]

#endif
