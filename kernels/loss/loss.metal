// Elementwise losses, their sums and their gradients:
//     squared error          (x - t)²
//     binary cross entropy   w ((1 - t) x + (1 - t + v t) s),   s = log(1 + exp(-x)) = log1p(exp(-|x|)) + max(-x, 0)
//     of a probability       (t - 1) max(log1p(-x), -100) - t max(log x, -100)
// with a weight w and a weight v of positive targets, both of which are 1 except in the weighted loss. With the
// logistic function σ, the derivatives of the second loss are w ((1 - t) σ(x) - v t σ(-x)) with respect to x, and w ((v
// - 1) s - x) with respect to t.
//
// A sum takes two passes: threadgroups of 256 threads each add 256 · SEQUENCE elements as a tree, then one threadgroup
// adds their sums. The shape of the tree depends on sizes only. Everything is computed in float32.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "common/math.h"
#include "generated/loss.h"
#include "reduction/groups.h"

// - loop: x, target, weight, weight of positive targets, scale or result, gradients
// - sequence: elements that a thread adds
#include "generated/loss_parameters.h"

constant uint NEEDS [[function_constant(3)]];  // 1: the gradient of x is needed, 2: the target's

struct LossElement {
    float x;
    float t;
    float w;
    float v;
};

// log(1 + exp(-x))
inline float softplus_of_negative(float x) { return orchard::log1p(precise::exp(-fabs(x))) + (x < 0.0f ? -x : 0.0f); }

inline float cross_entropy(LossElement e) {
    return e.w * ((1.0f - e.t) * e.x + (1.0f - e.t + e.v * e.t) * softplus_of_negative(e.x));
}

inline float cross_entropy_by_x(LossElement e) {
    float small = precise::exp(-fabs(e.x));
    float near_one = 1.0f / (1.0f + small);
    float near_zero = small * near_one;
    return e.w * ((1.0f - e.t) * (e.x < 0.0f ? near_zero : near_one) - e.v * e.t * (e.x < 0.0f ? near_one : near_zero));
}

// Limits logarithms; NaN stays NaN.
inline float limited(float logarithm) { return logarithm < -100.0f ? -100.0f : logarithm; }

inline float probability_cross_entropy(LossElement e) {
    return (e.t - 1.0f) * limited(orchard::log1p(-e.x)) - e.t * limited(precise::log(e.x));
}

inline float probability_cross_entropy_by_x(LossElement e) {
    float product = e.x * (1.0f - e.x);
    return (e.x - e.t) / (product < 1e-12f ? 1e-12f : product);
}

// The value of each loss and its derivatives with respect to x and t. A loss that is missing here does not compile.
template <Loss name> struct Formula;
#define FORMULA(name, weighted, value, derivative_by_x, derivative_by_t)  \
    template <> struct Formula<name> {                                    \
        static bool is_weighted() { return weighted; }                    \
        static float of(LossElement e) { return value; }                  \
        static float by_x(LossElement e) { return derivative_by_x; }      \
        static float by_target(LossElement e) { return derivative_by_t; } \
    };

FORMULA(LOSS_SQUARED_ERROR, false, (e.x - e.t) * (e.x - e.t), 2.0f * (e.x - e.t), 2.0f * (e.t - e.x))
FORMULA(LOSS_BINARY_CROSS_ENTROPY, false, cross_entropy(e), cross_entropy_by_x(e), e.w * (0.0f - e.x))
FORMULA(
    LOSS_WEIGHTED_BINARY_CROSS_ENTROPY,
    true,
    cross_entropy(e),
    cross_entropy_by_x(e),
    e.w *((e.v - 1.0f) * softplus_of_negative(e.x) - e.x))

FORMULA(
    LOSS_PROBABILITY_CROSS_ENTROPY,
    false,
    probability_cross_entropy(e),
    probability_cross_entropy_by_x(e),
    orchard::log1p(-e.x) - precise::log(e.x))

inline bool is_weighted() {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, is_weighted()) }
    return false;
}
inline float loss_value(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, of(e)) }
    return NAN;
}
inline float derivative_by_x(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, by_x(e)) }
    return NAN;
}
inline float derivative_by_target(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, by_target(e)) }
    return NAN;
}

template <typename T, int count>
inline LossElement loss_element(
    device const T *x,
    device const T *target,
    device const T *weight,
    device const T *positive,
    thread long (&offsets)[count]) {
    return {
        float(x[offsets[0]]), float(target[offsets[1]]), is_weighted() ? float(weight[offsets[2]]) : 1.0f,
        is_weighted() ? float(positive[offsets[3]]) : 1.0f};
}

// x, target, weight, positive  [[buffer(0, 1, 2, 3)]]  the elements that their strides reach; weights only for the
//                                                      weighted loss
// out                          [[buffer(4)]]  has the loop's shape
template <typename T>
kernel void loss_values(
    device const T *x [[buffer(0)]],
    device const T *target [[buffer(1)]],
    device const T *weight [[buffer(2)]],
    device const T *positive [[buffer(3)]],
    device T *out [[buffer(4)]],
    constant LossParameters &p [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(p.loop.count)) return;
    long offsets[5];
    loop_places(p.loop, element, offsets);
    out[offsets[4]] = T(loss_value(loss_element(x, target, weight, positive, offsets)));
}

struct SumMerge {
    static float merge(float a, float b) { return a + b; }
    static float shuffled(float state, ushort mask) { return shuffled_xor(state, mask); }
};

// out      [[buffer(4)]]  one sum per threadgroup, times the factor
// scratch  [[threadgroup(0)]]  one number per SIMD-group
// grid: threadgroups [count / (LANES · sequence)] of LANES threads
template <typename T>
kernel void loss_sums(
    device const T *x [[buffer(0)]],
    device const T *target [[buffer(1)]],
    device const T *weight [[buffer(2)]],
    device const T *positive [[buffer(3)]],
    device float *out [[buffer(4)]],
    constant LossParameters &p [[buffer(5)]],
    threadgroup float *scratch [[threadgroup(0)]],
    uint lane [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
    ulong begin = ulong(group) * LANES * ulong(p.sequence);
    ulong end = min(ulong(p.loop.count), begin + LANES * ulong(p.sequence));
    float sum = 0.0f;
    for (ulong element = begin + lane; element < end; element += LANES) {
        long offsets[4];
        loop_places(p.loop, element, offsets);
        sum += loss_value(loss_element(x, target, weight, positive, offsets));
    }
    sum = combined<SumMerge>(sum, scratch, lane);
    if (lane == 0) out[group] = sum * p.factor;
}

// sums  [[buffer(0)]]  the sums of `count` threadgroups
// out   [[buffer(1)]]  one number
// grid: one threadgroup of LANES threads
kernel void loss_total(
    device const float *sums [[buffer(0)]],
    device float *out [[buffer(1)]],
    constant LossParameters &p [[buffer(2)]],
    threadgroup float *scratch [[threadgroup(0)]],
    uint lane [[thread_index_in_threadgroup]]) {
    float sum = 0.0f;
    for (long at = lane; at < p.loop.count; at += LANES) sum += sums[at];
    sum = combined<SumMerge>(sum, scratch, lane);
    if (lane == 0) out[0] = sum * p.factor;
}

// scale                 [[buffer(4)]]  the gradient of each loss
// gradient, target_gradient   [[buffer(5, 6)]]  those that are needed
template <typename T>
kernel void loss_gradients(
    device const T *x [[buffer(0)]],
    device const T *target [[buffer(1)]],
    device const T *weight [[buffer(2)]],
    device const T *positive [[buffer(3)]],
    device const float *scale [[buffer(4)]],
    device T *gradient [[buffer(5)]],
    device T *target_gradient [[buffer(6)]],
    constant LossParameters &p [[buffer(7)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(p.loop.count)) return;
    long offsets[7];
    loop_places(p.loop, element, offsets);
    LossElement e = loss_element(x, target, weight, positive, offsets);
    float share = scale[offsets[4]] * p.factor;
    if (NEEDS & 1) gradient[offsets[5]] = T(derivative_by_x(e) * share);
    if (NEEDS & 2) target_gradient[offsets[6]] = T(derivative_by_target(e) * share);
}

#define LOSS_KERNELS(T)                                                                                                \
    template [[host_name("loss_values_" #T)]] kernel void loss_values<T>(                                              \
        device const T *, device const T *, device const T *, device const T *, device T *, constant LossParameters &, \
        uint2, uint2);                                                                                                 \
    template [[host_name("loss_sums_" #T)]] kernel void loss_sums<T>(                                                  \
        device const T *, device const T *, device const T *, device const T *, device float *,                        \
        constant LossParameters &, threadgroup float *, uint, uint);                                                   \
    template [[host_name("loss_gradients_" #T)]] kernel void loss_gradients<T>(                                        \
        device const T *, device const T *, device const T *, device const T *, device const float *, device T *,      \
        device T *, constant LossParameters &, uint2, uint2);

LOSS_KERNELS(float)
LOSS_KERNELS(half)
LOSS_KERNELS(bfloat)
