// The computation between the matrix products for one pair of a query and a key: whether the query attends to the key,
// the score, and dropout.

#ifndef ORCHARD_ATTENTION_PAIRS_H
#define ORCHARD_ATTENTION_PAIRS_H

#include "attention/problem.h"

// Values that all pairs of one head of one sequence share.
template <typename T> struct Pairs {
    Sequence sequence;
    uint head;
    device const bool *mask;  // at the sequence's pair (0, 0)
    device const T *bias;
    float slope;
};

template <typename T>
inline Pairs<T> pairs_of(
    constant Attention &a,
    Sequence s,
    uint head,
    device const bool *mask,
    device const T *bias,
    device const float *slopes) {
    Pairs<T> pairs = {s, head, mask, bias, 0.0f};
    if (has(ATTENTION_OPTION_MASK)) {
        pairs.mask = mask + row_offset(a.mask, s.batch, head, s.query_start) + s.key_start * a.mask.column;
    }
    if (has(ATTENTION_OPTION_BIAS)) {
        pairs.bias = bias + row_offset(a.bias, s.batch, head, s.query_start) + s.key_start * a.bias.column;
    }
    if (has(ATTENTION_OPTION_SLOPES)) {
        pairs.slope = slopes[row_offset(a.slopes, s.index, head, 0)];
    }
    return pairs;
}

// A pair's score, which is −∞ if the query does not attend to the key, and the derivative of the softcap.
struct Score {
    float value;
    float cap_derivative;  // 1 − (s₂ / softcap)²
};

template <typename T> inline bool attends(constant Attention &a, thread const Pairs<T> &pairs, int i, int j) {
    const Sequence s = pairs.sequence;
    if (uint(i) >= uint(s.queries) || uint(j) >= uint(s.keys)) {
        return false;
    }
    const int distance = j - i - s.shift;
    if (has(ATTENTION_OPTION_BAND) && (distance < -int(a.left) || distance > int(a.right))) {
        return false;
    }
    return !has(ATTENTION_OPTION_MASK) || pairs.mask[i * a.mask.row + j * a.mask.column];
}

// `product` is q[i] · k[j]. `all` says that the query certainly attends to the key (all_attend). If the query does not
// attend, the product may be anything, even NaN.
template <typename T>
inline Score score_of(constant Attention &a, thread const Pairs<T> &pairs, bool all, int i, int j, float product) {
    if (!all && !attends(a, pairs, i, j)) {
        return {-INFINITY, 0.0f};
    }
    const bool has_offset = has(ATTENTION_OPTION_BIAS) || has(ATTENTION_OPTION_SLOPES);
    float offset = 0.0f;
    if (has(ATTENTION_OPTION_BIAS)) {
        offset += float(pairs.bias[i * a.bias.row + j * a.bias.column]);
    }
    if (has(ATTENTION_OPTION_SLOPES)) {
        offset -= pairs.slope * float(abs(j - i - pairs.sequence.shift));
    }
    if (has_offset && offset == -INFINITY) {
        return {-INFINITY, 0.0f};
    }
    Score score = {product * a.scale, 1.0f};
    if (has(ATTENTION_OPTION_SOFTCAP)) {
        const float bounded = precise::tanh(score.value / a.softcap);
        score = {a.softcap * bounded, 1.0f - bounded * bounded};
    }
    if (has_offset) {
        score.value += offset;
    }
    return score;
}

// Returns the factors by which dropout multiplies the probabilities of the pairs (i, j), (i, j + 1), (i + 1, j) and (i
// + 1, j + 1), with i and j rounded down to even.
inline float4 kept_block(constant Attention &a, Sequence s, uint head, int i, int j) {
    const uint4 words = philox(uint4(uint(j) / 2, uint(i) / 2, head, uint(s.index)), uint2(a.key[0], a.key[1]));
    return select(float4(0.0f), float4(a.keep_scale), words >= uint4(a.threshold));
}

// Returns the factor of (i, j).
inline float kept(constant Attention &a, Sequence s, uint head, int i, int j) {
    return has(ATTENTION_OPTION_DROPOUT) ? kept_block(a, s, head, i, j)[(i & 1) * 2 + (j & 1)] : 1.0f;
}

// Returns the factors of (i, j) and (i, j + 1); j is even.
inline float2 kept_along_keys(constant Attention &a, Sequence s, uint head, int i, int j) {
    if (!has(ATTENTION_OPTION_DROPOUT)) {
        return float2(1.0f);
    }
    const float4 block = kept_block(a, s, head, i, j);
    return i % 2 == 0 ? block.xy : block.zw;
}

// Returns the factors of (i, j) and (i + 1, j); i is even.
inline float2 kept_along_queries(constant Attention &a, Sequence s, uint head, int i, int j) {
    if (!has(ATTENTION_OPTION_DROPOUT)) {
        return float2(1.0f);
    }
    const float4 block = kept_block(a, s, head, i, j);
    return j % 2 == 0 ? block.xz : block.yw;
}

// Values of a query's row for the gradients: L as two numbers, −∞ if the query attends to nothing, and Δ.
struct RowSums {
    float log_sum_exp;
    float log_sum_exp_low;
    float delta;
};

inline RowSums row_sums(
    constant Attention &a,
    Sequence s,
    uint head,
    int query,
    device const float *log_sum_exp,
    device const float *log_sum_exp_low,
    device const float *delta) {
    if (query >= s.queries) {
        return {-INFINITY, 0.0f, 0.0f};
    }
    const long row = s.query_start + query;
    return {
        log_sum_exp[row_offset(a.log_sum_exp, s.batch, head, row)],
        log_sum_exp_low[row_offset(a.log_sum_exp_low, s.batch, head, row)],
        delta[(s.batch * a.heads + head) * a.queries + row],
    };
}

// The gradients of one pair.
struct PairGradient {
    float dropped;  // Z
    float score;    // ds
    float product;  // du: the gradient of q[i] · k[j], times scale
};

// `grad` is gradOut[i] · v[j]. All results are 0 if the query does not attend to the key, or attends to no key.
inline PairGradient gradient_of(constant Attention &a, Score score, float grad, float kept, RowSums row) {
    if (score.value == -INFINITY || row.log_sum_exp == -INFINITY) {
        return {0.0f, 0.0f, 0.0f};
    }
    const float probability = probability_of(score.value, row.log_sum_exp, row.log_sum_exp_low);
    const float gradient = probability * ((kept == 0.0f ? 0.0f : kept * grad) - row.delta);
    return {probability * kept, gradient, a.scale * gradient * score.cap_derivative};
}

#endif
