// The cross entropy along slices of logits x, with p = softmax(x), class weights w, a target y and label smoothing ε:
//     loss = -(1 - ε) w[y] log p[y] - ε / classes · Σ w[c] log p[c]
// and its gradient times `scale`, the gradient of the loss:
//     scale (A p[c] - ε / classes · w[c] - (1 - ε) w[y] [c = y]),   A = (1 - ε) w[y] + ε / classes · Σ w
//
// `LANES` threads share a slice and read each of its logits once, whatever its length: the largest logit and Σ exp(x -
// largest) are computed in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). The
// gradient needs only log Σ exp(x). It is stored as two numbers, the largest logit and log Σ exp(x - largest), so that
// large logits lose no digits. Probabilities are never stored. Everything is computed in float32. A slice whose largest
// logit is not finite gives NaN, as in log-softmax.
//
// Another kernel finds targets out of range (kernels/indexing/range.metal), and the host reports them. This kernel
// ignores such targets.

#include <metal_stdlib>
using namespace metal;

#include "common/slices.h"
#include "reduction/groups.h"
#include "reduction/online.h"

// - slices: logits, then operands with one number per slice, and last the gradients of the logits
// - ignore_index: the target that is ignored
// - chunk: classes per threadgroup
#include "generated/cross_entropy_parameters.h"

// Bits of `operation`: label smoothing, and class weights.
#define SMOOTHED (operation & 1)
#define WEIGHTED (operation & 2)

// largest: the largest logit; sum: Σ exp(x - largest); weighted: Σ w (x - largest); weights: Σ w. The last two are used
// only with label smoothing.
struct ClassState {
    float largest;
    float sum;
    float weighted;
    float weights;
};

struct ClassMerge {
    static ClassState merge(ClassState a, ClassState b) {
        float largest = larger(a.largest, b.largest);
        ClassState state = {
            largest, rescaled(a.sum, a.largest, largest) + rescaled(b.sum, b.largest, largest), 0.0f, 0.0f};
        if (SMOOTHED) {
            state.weighted = moved(a, largest) + moved(b, largest);
            state.weights = a.weights + b.weights;
        }
        return state;
    }
    static ClassState shuffled(ClassState state, ushort mask) {
        state.largest = shuffled_xor(state.largest, mask);
        state.sum = shuffled_xor(state.sum, mask);
        if (SMOOTHED) {
            state.weighted = shuffled_xor(state.weighted, mask);
            state.weights = shuffled_xor(state.weights, mask);
        }
        return state;
    }
    // Returns Σ w (x - largest) for a different largest logit.
    static float moved(ClassState state, float largest) {
        return state.weighted + state.weights * (shift_of(state.largest) - shift_of(largest));
    }
};

// Adds a logit to the state. One exponential suffices: it scales either the new term or the previous sum.
inline ClassState included(ClassState state, float x, float w) {
    float e = precise::exp(-fabs(x - state.largest));
    if (x > state.largest) {
        state.sum = (state.sum == 0.0f ? 0.0f : state.sum * e) + 1.0f;
        if (SMOOTHED) state.weighted = state.weights == 0.0f ? 0.0f : ClassMerge::moved(state, x);
        state.largest = x;
    } else if (x != -INFINITY) {
        state.sum += e;
    }
    if (SMOOTHED) {
        state.weighted += w * (x - shift_of(state.largest));
        state.weights += w;
    }
    return state;
}

// A thread's slice, and its lane among the threads that share it.
struct ClassLane {
    long offsets[5];
    uint lane;
    bool exists;
    long target;  // -1 if it is ignored
};

// Returns a number of a slice. If all lanes of a SIMD-group share the slice, one lane reads it.
template <typename Number> inline Number slice_number(device const Number *numbers, long at, uint thread_index) {
    if (LANES < 32) return numbers[at];
    return simd_broadcast_first(thread_index % 32 == 0 ? numbers[at] : Number(0));
}

// A 64-bit number is read as two halves.
inline long slice_number(device const long *numbers, long at, uint thread_index) {
    return as_type<long>(slice_number(reinterpret_cast<device const uint2 *>(numbers), at, thread_index));
}

template <typename Index>
inline ClassLane class_lane(
    constant CrossEntropyParameters &p, device const Index *targets, uint thread_index, uint group) {
    ClassLane slice_lane;
    bool rows = LANES >= 32;
    slice_lane.lane = rows ? thread_index % LANES : thread_index / COLUMNS;
    ulong slice = ulong(group) * COLUMNS + (rows ? thread_index / LANES : thread_index % COLUMNS);
    slice_lane.exists = slice < ulong(p.slices.nest.count);
    slice_lane.target = -1;
    if (slice_lane.exists) {
        slice_offsets(p.slices, slice, slice_lane.offsets);
        long target = long(slice_number(targets, slice_lane.offsets[1], thread_index));
        bool counts = target != p.ignore_index && target >= 0 && target < p.slices.length;
        slice_lane.target = counts ? target : -1;
    }
    return slice_lane;
}

// x                [[buffer(0)]]       logits
// targets          [[buffer(1)]]       one per slice
// factors          [[buffer(2)]]       class weights, dense; any buffer if there are none
// losses, used     [[buffer(3, 4)]]    one per slice, with the same layout: the loss, and w[y] (0 if ignored)
// log_sums         [[buffer(5)]]       two planes of that layout: the largest logits, and log Σ exp(x - largest)
// scratch          [[threadgroup(0)]]  a state per thread
// grid: threadgroups [slices / COLUMNS] of COLUMNS · LANES threads
template <typename T, typename Index>
kernel void cross_entropy(
    device const T *x [[buffer(0)]],
    device const Index *targets [[buffer(1)]],
    device const float *factors [[buffer(2)]],
    device float *losses [[buffer(3)]],
    device float *used [[buffer(4)]],
    device float *log_sums [[buffer(5)]],
    constant CrossEntropyParameters &p [[buffer(6)]],
    threadgroup ClassState *scratch [[threadgroup(0)]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
    ClassLane slice = class_lane(p, targets, thread_index, group);
    ClassState state = {-INFINITY, 0.0f, 0.0f, 0.0f};
    long classes = slice.target < 0 ? 0 : p.slices.length;
    for (long c = slice.lane; c < classes; c += LANES) {
        float w = SMOOTHED && WEIGHTED ? factors[c] : 1.0f;
        state = included(state, float(x[slice.offsets[0] + c * p.slices.along[0]]), w);
    }
    state = combined<ClassMerge>(state, scratch, thread_index);
    if (!slice.exists || slice.lane != 0) return;
    long row = slice.offsets[2];
    if (slice.target < 0) {
        losses[row] = used[row] = log_sums[row] = log_sums[row + p.slices.nest.count] = 0.0f;
        return;
    }
    float top = isinf(state.largest) ? NAN : state.largest;
    float logarithm = precise::log(state.sum);
    float factor = WEIGHTED ? factors[slice.target] : 1.0f;
    float loss = (1.0f - p.label_smoothing) * factor *
                 (logarithm - (float(x[slice.offsets[0] + slice.target * p.slices.along[0]]) - top));
    if (SMOOTHED) loss += p.label_smoothing / float(p.slices.length) * (state.weights * logarithm - state.weighted);
    losses[row] = loss;
    used[row] = factor;
    log_sums[row] = top;
    log_sums[row + p.slices.nest.count] = logarithm;
}

// x, targets, factors  [[buffer(0, 1, 2)]]  as above
// factor_sum           [[buffer(3)]]  Σ w; any buffer if there are no class weights
// log_sums, scales     [[buffer(4, 5)]]  two and one per slice
// out                  [[buffer(6)]]
// grid: threadgroups [slices / COLUMNS, classes / chunk] of COLUMNS · LANES threads
template <typename T, typename Index>
kernel void cross_entropy_gradient(
    device const T *x [[buffer(0)]],
    device const Index *targets [[buffer(1)]],
    device const float *factors [[buffer(2)]],
    device const float *factor_sum [[buffer(3)]],
    device const float *log_sums [[buffer(4)]],
    device const float *scales [[buffer(5)]],
    device T *out [[buffer(6)]],
    constant CrossEntropyParameters &p [[buffer(7)]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint2 group [[threadgroup_position_in_grid]]) {
    ClassLane slice = class_lane(p, targets, thread_index, group.x);
    if (!slice.exists) return;
    long begin = long(group.y) * p.chunk + slice.lane;
    long end = min(p.slices.length, long(group.y + 1) * p.chunk);
    if (slice.target < 0) {
        for (long c = begin; c < end; c += LANES) out[slice.offsets[4] + c * p.slices.along[4]] = T(0.0f);
        return;
    }
    float scale = slice_number(scales, slice.offsets[3], thread_index);
    float largest = slice_number(log_sums, slice.offsets[2], thread_index);
    float logarithm = slice_number(log_sums, slice.offsets[2] + p.slices.nest.count, thread_index);
    float each = p.label_smoothing / float(p.slices.length);
    float at_target = (1.0f - p.label_smoothing) * (WEIGHTED ? factors[slice.target] : 1.0f);
    float share = at_target + each * (WEIGHTED && SMOOTHED ? factor_sum[0] : float(p.slices.length));
    for (long c = begin; c < end; c += LANES) {
        float derivative =
            share * precise::exp((float(x[slice.offsets[0] + c * p.slices.along[0]]) - largest) - logarithm);
        if (SMOOTHED) derivative -= each * (WEIGHTED ? factors[c] : 1.0f);
        if (c == slice.target) derivative -= at_target;
        out[slice.offsets[4] + c * p.slices.along[4]] = T(scale * derivative);
    }
}

#define CROSS_ENTROPY(T, Index)                                                                                       \
    template [[host_name("cross_entropy_" #T "_" #Index)]] kernel void cross_entropy<T, Index>(                       \
        device const T *, device const Index *, device const float *, device float *, device float *, device float *, \
        constant CrossEntropyParameters &, threadgroup ClassState *, uint, uint);                                     \
    template [[host_name("cross_entropy_gradient_" #T "_" #Index)]] kernel void cross_entropy_gradient<T, Index>(     \
        device const T *, device const Index *, device const float *, device const float *, device const float *,     \
        device const float *, device T *, constant CrossEntropyParameters &, uint, uint2);

#define CROSS_ENTROPY_OF(T) \
    CROSS_ENTROPY(T, long)  \
    CROSS_ENTROPY(T, int)

CROSS_ENTROPY_OF(float)
CROSS_ENTROPY_OF(half)
CROSS_ENTROPY_OF(bfloat)
