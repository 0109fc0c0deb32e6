// Losses of single elements, their sums and their gradients. formulas/losses.h has the formulas.
//
// A sum takes two passes: threadgroups of 256 threads each add 256 · SEQUENCE elements as a tree, then one threadgroup
// adds their sums. The shape of the tree depends on sizes only. Everything is computed in float32.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "common/math.h"
#include "generated/loss.h"
#include "reduction/groups.h"

// - loop: x, target, third and fourth operand, scale or result, gradients
// - sequence: elements that a thread adds
#include "generated/loss_parameters.h"

// 1: the gradient of x is needed, 2: the target's, 4: the third operand's
constant uint NEEDS [[function_constant(3)]];

struct LossElement {
    float x;
    float t;
    float w;
    float v;
    float p;
    float q;
};

namespace orchard {
namespace losses {

// A loss without a formula does not compile.
template <Loss name> struct Formula;

#define LOSS(NAME, name, count, value, by_x, by_target, by_third)                                          \
    template <> struct Formula<LOSS_##NAME> {                                                              \
        static int operands() { return count; }                                                            \
        template <typename T> static T value_of(T x, T t, T w, T v, T p, T q) { return value; }            \
        template <typename T> static T slope_by_x(T x, T t, T w, T v, T p, T q) { return by_x; }           \
        template <typename T> static T slope_by_target(T x, T t, T w, T v, T p, T q) { return by_target; } \
        template <typename T> static T slope_by_third(T x, T t, T w, T v, T p, T q) { return by_third; }   \
        static float of(LossElement e) { return value_of(e.x, e.t, e.w, e.v, e.p, e.q); }                  \
        static float by_first(LossElement e) { return slope_by_x(e.x, e.t, e.w, e.v, e.p, e.q); }          \
        static float by_second(LossElement e) { return slope_by_target(e.x, e.t, e.w, e.v, e.p, e.q); }    \
        static float by_other(LossElement e) { return slope_by_third(e.x, e.t, e.w, e.v, e.p, e.q); }      \
    };
#include "formulas/losses.h"

inline int operands() {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, operands()) }
    return 0;
}
inline float loss_value(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, of(e)) }
    return NAN;
}
inline float derivative_by_x(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, by_first(e)) }
    return NAN;
}
inline float derivative_by_target(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, by_second(e)) }
    return NAN;
}
inline float derivative_by_third(LossElement e) {
    switch (operation) { LOSS_NAMES(ORCHARD_CASE, Formula, by_other(e)) }
    return NAN;
}

}  // namespace losses
}  // namespace orchard

template <typename T, int count>
inline LossElement loss_element(
    device const T *x,
    device const T *target,
    device const T *third,
    device const T *fourth,
    constant LossParameters &p,
    thread long (&offsets)[count]) {
    return {
        float(x[offsets[0]]),
        float(target[offsets[1]]),
        orchard::losses::operands() > 2 ? float(third[offsets[2]]) : 1.0f,
        orchard::losses::operands() > 3 ? float(fourth[offsets[3]]) : 1.0f,
        p.parameters[0],
        p.parameters[1]};
}

// x, target, third, fourth  [[buffer(0, 1, 2, 3)]]  the elements that their strides reach, for the operands of the loss
// out                       [[buffer(4)]]  has the loop's shape
template <typename T>
kernel void loss_values(
    device const T *x [[buffer(0)]],
    device const T *target [[buffer(1)]],
    device const T *third [[buffer(2)]],
    device const T *fourth [[buffer(3)]],
    device T *out [[buffer(4)]],
    constant LossParameters &p [[buffer(5)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(p.loop.count)) return;
    long offsets[5];
    loop_places(p.loop, element, offsets);
    out[offsets[4]] = T(orchard::losses::loss_value(loss_element(x, target, third, fourth, p, offsets)));
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
    device const T *third [[buffer(2)]],
    device const T *fourth [[buffer(3)]],
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
        sum += orchard::losses::loss_value(loss_element(x, target, third, fourth, p, offsets));
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

// scale                                       [[buffer(4)]]  the gradient of each loss
// gradient, target_gradient, third_gradient   [[buffer(5, 6, 7)]]  those that are needed
template <typename T>
kernel void loss_gradients(
    device const T *x [[buffer(0)]],
    device const T *target [[buffer(1)]],
    device const T *third [[buffer(2)]],
    device const T *fourth [[buffer(3)]],
    device const float *scale [[buffer(4)]],
    device T *gradient [[buffer(5)]],
    device T *target_gradient [[buffer(6)]],
    device T *third_gradient [[buffer(7)]],
    constant LossParameters &p [[buffer(8)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(p.loop.count)) return;
    long offsets[8];
    loop_places(p.loop, element, offsets);
    LossElement e = loss_element(x, target, third, fourth, p, offsets);
    float share = scale[offsets[4]] * p.factor;
    if (NEEDS & 1) gradient[offsets[5]] = T(orchard::losses::derivative_by_x(e) * share);
    if (NEEDS & 2) target_gradient[offsets[6]] = T(orchard::losses::derivative_by_target(e) * share);
    if (NEEDS & 4) third_gradient[offsets[7]] = T(orchard::losses::derivative_by_third(e) * share);
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
        device T *, device T *, constant LossParameters &, uint2, uint2);

LOSS_KERNELS(float)
LOSS_KERNELS(half)
LOSS_KERNELS(bfloat)
