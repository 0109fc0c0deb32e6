// Normalizes rows, where there is a residual after it was added (src/ops/normalization/problem.ts, (1) to (5)):
//
//     s = x + residual      n = (s - mean) / sqrt(Σ (s - mean)² / N + eps)      out = n · weight + bias
//
// mean is 0 where rows are not centred. A team of threads takes a chunk of rows (rows.h). A row that its threads hold
// is read once; of a longer one x (or the sum, where it was written) is read a second time for the result. Computed in
// float32.

#include <metal_stdlib>
using namespace metal;

#include "normalization/moments.h"

// A row in each operand, from its first element.
template <typename T> struct Row {
    device const T *x;
    device const T *residual;
    device T *out;
    device T *sum;
};

// Elements of a row from `begin` on, as many as a thread holds; where they are a sum, it is written. Returns how many.
template <typename T>
inline uint load_elements(thread float (&held)[HELD], Row<T> row, constant Normalization &p, uint lane, long begin) {
    uint count = 0;
    for (uint i = 0; i < HELD; i += 1) {
        const long k = begin + long(lane) + i * LANES;
        held[i] = 0.0f;
        if (k >= p.rows.length) continue;
        T element = row.x[k * p.rows.along[0]];
        if (has(NORMALIZATION_OPTION_RESIDUAL)) {
            element = T(float(element) + float(row.residual[k * p.rows.along[1]]));
            row.sum[k] = element;
        }
        held[i] = float(element);
        count += 1;
    }
    return count;
}

// The same a second time: a thread reads of the sum what it wrote.
template <typename T>
inline void load_again(thread float (&held)[HELD], Row<T> row, constant Normalization &p, uint lane, long begin) {
    for (uint i = 0; i < HELD; i += 1) {
        const long k = begin + long(lane) + i * LANES;
        if (k >= p.rows.length) break;
        held[i] = float(has(NORMALIZATION_OPTION_RESIDUAL) ? row.sum[k] : row.x[k * p.rows.along[0]]);
    }
}

// x, residual     [[buffer(0, 1)]]  [..., N] of any strides
// weight, bias    [[buffer(2, 3)]]  [N]
// out, sum        [[buffer(4, 5)]]  [rows, N]
// means, scales   [[buffer(6, 7)]]  [rows]
// What a call lacks (OPTIONS) is bound to something else and not touched.
// grid: threadgroups (chunks of rows / teams) of THREADS threads
template <typename T, typename W>
kernel void normalize(
    device const T *x [[buffer(0)]],
    device const T *residual [[buffer(1)]],
    device const W *weight [[buffer(2)]],
    device const W *bias [[buffer(3)]],
    device T *out [[buffer(4)]],
    device T *sum [[buffer(5)]],
    device float *means [[buffer(6)]],
    device float *scales [[buffer(7)]],
    constant Normalization &p [[buffer(8)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup Moments parts[SIMDGROUPS];
    const long length = p.rows.length;
    const long step = LANES * HELD;
    const Team team = team_of(p, thread_index, group);
    for (long number = team.first_row; number < team.end_row; number += 1) {
        long offsets[3];
        slice_offsets(p.rows, ulong(number), offsets);
        const Row<T> row = {x + offsets[0], residual + offsets[1], out + number * length, sum + number * length};
        float held[HELD];
        Moments own = no_moments();
        for (long begin = 0; begin < length; begin += step) {
            const uint count = load_elements(held, row, p, team.lane, begin);
            own = merged(own, moments_of(held, count));
        }
        const Moments all = team_moments(own, parts, thread_index);
        const Scale scale = scale_of(all.squares, float(length), p.eps);
        if (team.lane == 0) {
            scales[number] = scale.factor * scale.unit;
            if (is_centred()) means[number] = all.mean;
        }
        for (long begin = 0; begin < length; begin += step) {
            if (!FITS) load_again(held, row, p, team.lane, begin);
            for (uint i = 0; i < HELD; i += 1) {
                const long k = begin + long(team.lane) + i * LANES;
                if (k >= length) break;
                float value = is_centred() ? (held[i] - all.mean) - all.lost : held[i];
                value = value * scale.unit * scale.factor;
                if (has(NORMALIZATION_OPTION_WEIGHT)) value *= float(weight[p.weight_start + k * p.weight_stride]);
                if (has(NORMALIZATION_OPTION_BIAS)) value += float(bias[p.bias_start + k * p.bias_stride]);
                row.out[k] = T(value);
            }
        }
    }
}

#define NORMALIZE(T, W)                                                                                 \
    template [[host_name("normalize_" #T "_" #W)]] kernel void normalize<T, W>(                         \
        device const T *, device const T *, device const W *, device const W *, device T *, device T *, \
        device float *, device float *, constant Normalization &, uint, uint);

NORMALIZE(float, float)
NORMALIZE(half, half)
NORMALIZE(half, float)
NORMALIZE(bfloat, bfloat)
NORMALIZE(bfloat, float)
