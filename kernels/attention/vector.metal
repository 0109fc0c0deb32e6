// out and L of attention (problem.h) for few queries, as in decoding: each key is used once, so that tiles pay nothing
// and memory is all that counts.
//
// vector: a threadgroup has one query and a part of its keys, which its SIMDGROUPS take in iteration; a SIMD-group's
// lanes lie side by side along D and E. Each SIMD-group has its own online softmax (forward.metal says which), and the
// first one merges them, its own from its registers:
//
//     top = max tops,  total = Σ totals exp(tops - top),  row = Σ rows exp(tops - top)
//
// Long keys are cut into parts, whose tops, totals and rows go to memory; `vector_combine` merges them in their order,
// so that the result is the same on every run. Grid: threadgroups (queries · parts, heads, sequences), and (queries,
// heads, sequences) for vector_combine, of as many threads as a row has elements.

#include <metal_stdlib>
using namespace metal;

#include "attention/pairs.h"

#define VECTOR_WIDTH 256
#define LANE_ELEMENTS (VECTOR_WIDTH / 32)

// Writes a row from Σ row, its top and its total; each thread its elements.
template <typename T>
inline void finish_row(
    constant Attention &a,
    Sequence s,
    uint head,
    int query,
    device const T *sinks,
    device T *out,
    device float *log_sum_exp,
    device float *log_sum_exp_low,
    float sum,
    float top,
    float total,
    uint e) {
    float factor = 1.0f;
    if (has(ATTENTION_OPTION_SINKS)) {
        const float sink = float(sinks[row_offset(a.sinks, 0, head, 0)]);
        const float most = max(top, sink);
        factor = top == -INFINITY ? 0.0f : exponential(top - most);
        total = (total == 0.0f ? 0.0f : total * factor) + (sink == -INFINITY ? 0.0f : exponential(sink - most));
        top = most;
    }
    if (e < VALUE_DIM) {
        const long offset = row_offset(a.out, s.batch, head, s.query_start + query) + e * a.out.column;
        out[offset] = T(total == 0.0f ? 0.0f : sum * factor / total);
    }
    if (has(ATTENTION_OPTION_LOG_SUM_EXP) && e == 0) {
        const LogSumExp whole = log_sum_exp_of(top, total);
        const long row = s.query_start + query;
        log_sum_exp[row_offset(a.log_sum_exp, s.batch, head, row)] = whole.high;
        log_sum_exp_low[row_offset(a.log_sum_exp_low, s.batch, head, row)] = whole.low;
    }
}

inline float shrunk(float top, float to) { return top == -INFINITY ? 0.0f : exponential(top - to); }

// q, k, v         [[buffer(0, 1, 2)]]  [B, H, M, D], [B, H / G, N, D], [B, H / G, N, E]
// mask, bias      [[buffer(3, 4)]]     [B, H, M, N], by strides of 0 too
// sinks, slopes   [[buffer(5, 6)]]     [H], [B, H]
// sequences       [[buffer(7)]]        [count, 4]
// out             [[buffer(8)]]        [B, H, M, E]
// log_sum_exp     [[buffer(9)]]        [B, H, M]; its low part [[buffer(10)]]; written with LOG_SUM_EXP
// parts           [[buffer(11)]]       a threadgroup's row of E, its top and its total, where keys are cut
template <typename T, int SIMDGROUPS>
kernel void attention_vector(
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
    device float *parts [[buffer(11)]],
    constant Attention &a [[buffer(12)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float rows[(SIMDGROUPS - 1) * VECTOR_WIDTH];  // of all but the first
    threadgroup float tops[SIMDGROUPS];
    threadgroup float totals[SIMDGROUPS];

    const Sequence s = sequence_of(a, sequences, group.z);
    const int query = int(group.x) / int(a.parts);
    if (query >= s.queries) {
        return;
    }
    const uint head = group.y;
    const Pairs<T> pairs = pairs_of(a, s, head, mask, bias, slopes);
    device const T *keys = k + row_offset(a.k, s.batch, head / a.group, s.key_start);
    device const T *values = v + row_offset(a.v, s.batch, head / a.group, s.key_start);
    device const T *own = q + row_offset(a.q, s.batch, head, s.query_start + query);
    float q_row[LANE_ELEMENTS];
    float row[LANE_ELEMENTS];
    for (int i = 0; i < LANE_ELEMENTS; i += 1) {
        const uint d = lane + i * 32;
        q_row[i] = d < DIM ? float(own[d * a.q.column]) : 0.0f;
        row[i] = 0.0f;
    }

    const Interval range = keys_of(a, s, query, query);
    const long first = range.first + long(group.x) % a.parts * a.part_keys;
    const int end = int(min(long(range.end), first + a.part_keys));
    float top = -INFINITY;
    float total = 0.0f;
    for (long key = first + simdgroup; key < end; key += SIMDGROUPS) {
        const int j = int(key);
        if (!attends(a, pairs, query, j)) {
            continue;
        }
        float product = 0.0f;
        for (int i = 0; i < LANE_ELEMENTS; i += 1) {
            const uint d = lane + i * 32;
            if (d < DIM) {
                product = fma(q_row[i], float(keys[key * a.k.row + d * a.k.column]), product);
            }
        }
        const float score = score_of(a, pairs, true, query, j, lanes_sum<32>(product)).value;
        if (score == -INFINITY) {
            continue;
        }
        if (score > top) {
            const float factor = shrunk(top, score);
            total *= factor;
            for (int i = 0; i < LANE_ELEMENTS; i += 1) {
                row[i] *= factor;
            }
            top = score;
        }
        const float p = exponential(score - top);
        const float dropped = p * kept(a, s, head, query, j);
        total += p;
        for (int i = 0; i < LANE_ELEMENTS; i += 1) {
            const uint e = lane + i * 32;
            if (e < VALUE_DIM && dropped != 0.0f) {
                row[i] = fma(dropped, float(values[key * a.v.row + e * a.v.column]), row[i]);
            }
        }
    }
    for (int i = 0; i < LANE_ELEMENTS; i += 1) {
        const uint e = lane + i * 32;
        if (simdgroup > 0 && e < VALUE_DIM) {
            rows[(simdgroup - 1) * VECTOR_WIDTH + e] = row[i];
        }
    }
    if (lane == 0) {
        tops[simdgroup] = top;
        totals[simdgroup] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    if (simdgroup > 0) {
        return;
    }
    const float own_top = lane < SIMDGROUPS ? tops[lane] : -INFINITY;
    top = simd_max(own_top);
    const float own_factor = shrunk(own_top, top);
    const float own_total = lane < SIMDGROUPS ? totals[lane] : 0.0f;
    total = 0.0f;
    for (ushort other = 0; other < SIMDGROUPS; other += 1) {
        const float factor = simd_shuffle(own_factor, other);
        total = fma(simd_shuffle(own_total, other), factor, total);
        for (int i = 0; i < LANE_ELEMENTS; i += 1) {
            const uint e = lane + i * 32;
            if (other == 0) {
                row[i] *= factor;
            } else if (e < VALUE_DIM) {
                row[i] = fma(rows[(other - 1) * VECTOR_WIDTH + e], factor, row[i]);
            }
        }
    }
    if (a.parts == 1) {
        for (int i = 0; i < LANE_ELEMENTS; i += 1) {
            const uint e = lane + i * 32;
            finish_row(a, s, head, query, sinks, out, log_sum_exp, log_sum_exp_low, row[i], top, total, e);
        }
        return;
    }
    device float *part = parts + ((ulong(group.z) * groups.y + group.y) * groups.x + group.x) * (VALUE_DIM + 2);
    for (int i = 0; i < LANE_ELEMENTS; i += 1) {
        const uint e = lane + i * 32;
        if (e < VALUE_DIM) {
            part[e] = row[i];
        }
    }
    if (lane == 0) {
        part[VALUE_DIM] = top;
        part[VALUE_DIM + 1] = total;
    }
}

// parts        [[buffer(0)]]  queries' parts, each E sums, a top and a total
// sinks        [[buffer(1)]]  [H]
// sequences    [[buffer(2)]]  [count, 4]
// out          [[buffer(3)]]  [B, H, M, E]
// log_sum_exp  [[buffer(4)]]  [B, H, M]; its low part [[buffer(5)]]; written with LOG_SUM_EXP
template <typename T>
kernel void vector_combine(
    device const float *parts [[buffer(0)]],
    device const T *sinks [[buffer(1)]],
    device const int *sequences [[buffer(2)]],
    device T *out [[buffer(3)]],
    device float *log_sum_exp [[buffer(4)]],
    device float *log_sum_exp_low [[buffer(5)]],
    constant Attention &a [[buffer(6)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    const Sequence s = sequence_of(a, sequences, group.z);
    if (int(group.x) >= s.queries) {
        return;
    }
    const ulong offset =
        ((ulong(group.z) * groups.y + group.y) * groups.x + group.x) * ulong(a.parts) * (VALUE_DIM + 2);
    device const float *own = parts + offset;
    // Each lane has the top and the total of every 32nd part.
    float top = -INFINITY;
    for (long part = lane; part < a.parts; part += 32) {
        top = max(top, own[part * (VALUE_DIM + 2) + VALUE_DIM]);
    }
    top = simd_max(top);
    float sum = 0.0f;
    float total = 0.0f;
    for (long first = 0; first < a.parts; first += 32) {
        device const float *row = own + first * (VALUE_DIM + 2);
        const ushort count = ushort(min(a.parts - first, long(32)));
        device const float *own_row = row + min(lane, uint(count) - 1) * (VALUE_DIM + 2);
        const float own_factor = shrunk(own_row[VALUE_DIM], top);
        const float own_total = own_row[VALUE_DIM + 1];
        for (ushort part = 0; part < count; part += 1) {
            const float factor = simd_shuffle(own_factor, part);
            total = fma(simd_shuffle(own_total, part), factor, total);
            sum = fma(thread_index < VALUE_DIM ? row[thread_index] : 0.0f, factor, sum);
            row += VALUE_DIM + 2;
        }
    }
    finish_row(a, s, group.y, int(group.x), sinks, out, log_sum_exp, log_sum_exp_low, sum, top, total, thread_index);
}

#define VECTOR(T, SIMDGROUPS)                                                                                          \
    template [[host_name("vector_" #T "_" #SIMDGROUPS)]] kernel void attention_vector<T, SIMDGROUPS>(                  \
        device const T *, device const T *, device const T *, device const bool *, device const T *, device const T *, \
        device const float *, device const int *, device T *, device float *, device float *, device float *,          \
        constant Attention &, uint3, uint3, uint, uint);
#define COMBINE(T)                                                                                              \
    template [[host_name("vector_combine_" #T)]] kernel void vector_combine<T>(                                 \
        device const float *, device const T *, device const int *, device T *, device float *, device float *, \
        constant Attention &, uint3, uint3, uint, uint);

// The SIMD-groups are those of `vectorCut` (src/ops/attention/tiles.metal.ts).
#define VECTORS(T) \
    VECTOR(T, 2)   \
    VECTOR(T, 8)   \
    COMBINE(T)

VECTORS(float)
VECTORS(half)
VECTORS(bfloat)
