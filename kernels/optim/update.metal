// One optimizer step for several parameters of one dtype, by a rule of src/optim/rules.ts. A parameter p,
// its gradient g and its state (m, v, w) become
//
//     g = sign g + l2 p
//     sgd    d = g;  with momentum m = momentum m + oneMinusBeta1 g, d = m;  with nesterov d = g + momentum m
//     adam   m = m + oneMinusBeta1 (g − m),  v = v + oneMinusBeta2 (g² − v),  d = m / (√v biasCorrection + eps)
//            with amsgrad w = max(w, v) instead of v
//     lion   d = sign(m + oneMinusBeta1 (g − m)),  m = m + oneMinusBeta2 (g − m)
//     rmsprop  v = v + oneMinusBeta2 (g² − v),  d = g / (√v + eps)
//              centered m = m + oneMinusBeta2 (g − m),  v − m² for v;  with momentum b = momentum b + d, d = b
//     adagrad  v = v + g²,  d = g / (√v + eps)
//     adadelta v as in rmsprop,  d = √(u + eps) / √(v + eps) g,  u = u + oneMinusBeta2 (d² − u)
//     adamax   m as in adam,  u = max(momentum u, |g| + eps),  d = m / u
//     nadam    m, v as in adam,  d = (m + momentum g) / (√v biasCorrection + eps)
//     radam    m, v as in adam,  d = m / (√v + eps), without biasCorrection d = m
//     p = p − (decoupledDecay p + stepSize d)
//
// in float32; p is rounded once. With master weights, p is read from the last plane of the state, which contains them.
//
// Tiling: a threadgroup processes CHUNK adjacent elements of one parameter, and each thread every 256th element. The
// state before and after the step is in separate buffers, so that a step can be repeated if the device loses it. Each
// byte is read once or written once.

#include <metal_stdlib>
using namespace metal;

#include "generated/update_rule.h"
#include "optim/buffers.h"

// - parameters: number of parameters
// - plane: distance between planes of the state, in elements
// - sizes: in elements
// - starts: first element of each parameter, in each plane of the state
// - first_chunks: the number of each parameter's first chunk
#include "generated/update.h"

#define CHUNK 1024
#define THREADS 256

constant uint RULE [[function_constant(0)]];
constant uint HAS_MASTER [[function_constant(1)]];

// The coefficients of one parameter.
struct Coefficients {
    float sign;
    float l2;
    float decoupled_decay;
    float step_size;
    float momentum;
    float one_minus_beta1;
    float one_minus_beta2;
    float bias_correction;
    float eps;
};

inline Coefficients coefficients_of(constant Update &update, uint number) {
    return {
        update.sign[number],
        update.l2[number],
        update.decoupled_decay[number],
        update.step_size[number],
        update.momentum[number],
        update.one_minus_beta1[number],
        update.one_minus_beta2[number],
        update.bias_correction[number],
        update.eps[number]};
}

// Returns a moving average in which the new value has weight 1 − β.
inline float averaged(float x, float one_minus_beta, float g) { return x + one_minus_beta * (g - x); }
inline float larger(float a, float b) { return a >= b || a != a ? a : b; }

// The steps d of the rules. These functions also update an element's state.

inline float momentum_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] = k.momentum * state[0] + k.one_minus_beta1 * g;
    return state[0];
}

inline float lion_step(float g, thread float (&state)[3], Coefficients k) {
    float average = averaged(state[0], k.one_minus_beta1, g);
    state[0] = averaged(state[0], k.one_minus_beta2, g);
    return isnan(average) ? average : sign(average);
}

// Returns g divided by the root of the moving average of its squares.
inline float rmsprop_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] = averaged(state[0], k.one_minus_beta2, g * g);
    return g / (precise::sqrt(state[0]) + k.eps);
}

// Returns g divided by the root of its variance, which rounding errors may make negative.
inline float centered_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] = averaged(state[0], k.one_minus_beta2, g * g);
    state[1] = averaged(state[1], k.one_minus_beta2, g);
    return g / (precise::sqrt(larger(state[0] - state[1] * state[1], 0.0f)) + k.eps);
}

// Returns a step with momentum, which is stored in a plane of the state.
inline float carried_on(float d, thread float &plane, Coefficients k) {
    plane = k.momentum * plane + d;
    return plane;
}

inline float adagrad_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] += g * g;
    return g / (precise::sqrt(state[0]) + k.eps);
}

inline float adadelta_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] = averaged(state[0], k.one_minus_beta2, g * g);
    float d = precise::sqrt(state[1] + k.eps) / precise::sqrt(state[0] + k.eps) * g;
    state[1] = averaged(state[1], k.one_minus_beta2, d * d);
    return d;
}

inline float adamax_step(float g, thread float (&state)[3], Coefficients k) {
    state[0] = averaged(state[0], k.one_minus_beta1, g);
    state[1] = larger(k.momentum * state[1], abs(g) + k.eps);
    return state[0] / state[1];
}

inline void update_moments(float g, thread float (&state)[3], Coefficients k) {
    state[0] = averaged(state[0], k.one_minus_beta1, g);
    state[1] = averaged(state[1], k.one_minus_beta2, g * g);
}

inline float adam_step(float g, thread float (&state)[3], Coefficients k) {
    update_moments(g, state, k);
    return state[0] / (precise::sqrt(state[1]) * k.bias_correction + k.eps);
}

inline float amsgrad_step(float g, thread float (&state)[3], Coefficients k) {
    update_moments(g, state, k);
    state[2] = larger(state[2], state[1]);
    return state[0] / (precise::sqrt(state[2]) * k.bias_correction + k.eps);
}

inline float nadam_step(float g, thread float (&state)[3], Coefficients k) {
    update_moments(g, state, k);
    return (state[0] + k.momentum * g) / (precise::sqrt(state[1]) * k.bias_correction + k.eps);
}

inline float radam_step(float g, thread float (&state)[3], Coefficients k) {
    update_moments(g, state, k);
    return state[0] / (k.bias_correction == 0.0f ? 1.0f : precise::sqrt(state[1]) + k.eps);
}

// The number of state planes and the step of each rule. A rule that is missing here does not compile.
template <UpdateRule name> struct Rule;
#define STEP(name, planes_of_state, step)                                                   \
    template <> struct Rule<name> {                                                         \
        static uint planes() { return planes_of_state; }                                    \
        static float of(float g, thread float (&state)[3], Coefficients k) { return step; } \
    };

STEP(UPDATE_RULE_SGD, 0, g)
STEP(UPDATE_RULE_SGD_MOMENTUM, 1, momentum_step(g, state, k))
STEP(UPDATE_RULE_SGD_NESTEROV, 1, g + k.momentum * momentum_step(g, state, k))
STEP(UPDATE_RULE_ADAM, 2, adam_step(g, state, k))
STEP(UPDATE_RULE_ADAM_AMSGRAD, 3, amsgrad_step(g, state, k))
STEP(UPDATE_RULE_LION, 1, lion_step(g, state, k))
STEP(UPDATE_RULE_RMSPROP, 1, rmsprop_step(g, state, k))
STEP(UPDATE_RULE_RMSPROP_MOMENTUM, 2, carried_on(rmsprop_step(g, state, k), state[1], k))
STEP(UPDATE_RULE_RMSPROP_CENTERED, 2, centered_step(g, state, k))
STEP(UPDATE_RULE_RMSPROP_CENTERED_MOMENTUM, 3, carried_on(centered_step(g, state, k), state[2], k))
STEP(UPDATE_RULE_ADAGRAD, 1, adagrad_step(g, state, k))
STEP(UPDATE_RULE_ADADELTA, 2, adadelta_step(g, state, k))
STEP(UPDATE_RULE_ADAMAX, 2, adamax_step(g, state, k))
STEP(UPDATE_RULE_NADAM, 2, nadam_step(g, state, k))
STEP(UPDATE_RULE_RADAM, 2, radam_step(g, state, k))

inline uint planes() {
    switch (RULE) { UPDATE_RULE_NAMES(ORCHARD_CASE, Rule, planes()) }
    return 0;
}

inline float step_of(float g, thread float (&state)[3], Coefficients k) {
    switch (RULE) { UPDATE_RULE_NAMES(ORCHARD_CASE, Rule, of(g, state, k)) }
    return NAN;
}

// A parameter's buffers.
template <typename T, typename G> struct Member {
    device const T *before;
    device const G *gradient;
    device T *after;
};

template <typename T, typename G>
inline void update_element(
    device const float *state_before,
    device float *state_after,
    Member<T, G> member,
    constant Update &update,
    Coefficients k,
    ulong start,
    ulong i) {
    float state[3] = {0.0f, 0.0f, 0.0f};
    ulong offset = start + i;
    for (uint plane = 0; plane < planes(); plane += 1) {
        state[plane] = state_before[plane * update.plane + offset];
    }
    ulong master = planes() * update.plane + offset;
    float p = HAS_MASTER ? state_before[master] : float(member.before[i]);
    float g = k.sign * float(member.gradient[i]) + k.l2 * p;
    float d = step_of(g, state, k);
    p -= k.decoupled_decay * p + k.step_size * d;
    for (uint plane = 0; plane < planes(); plane += 1) {
        state_after[plane * update.plane + offset] = state[plane];
    }
    if (HAS_MASTER) state_after[master] = p;
    member.after[i] = T(p);
}

// state_before, state_after  [[buffer(0, 1)]]   [planes, plane]; not accessed by a rule without state
// before_0 … before_8        [[buffer(2…10)]]   one parameter each, dense; the first one repeated if there are fewer
// gradient_0 … gradient_8    [[buffer(11…19)]]
// after_0 … after_8          [[buffer(20…28)]]
// update                     [[buffer(29)]]
// grid: one threadgroup per chunk; the chunks of the first parameter come before those of the second, and so on

#define CHOSEN(name, number) CHOSEN_OF_EIGHT(name, number, name##_8)

#define UPDATE_KERNEL(T, G)                                                                                         \
    kernel void update_##T##_##G(                                                                                   \
        device const float *state_before [[buffer(0)]], device float *state_after [[buffer(1)]],                    \
        NINE_BUFFERS(device const T *, before, 2), NINE_BUFFERS(device const G *, gradient, 11),                    \
        NINE_BUFFERS(device T *, after, 20), constant Update &update [[buffer(29)]],                                \
        uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]]) {           \
        uint number = 0;                                                                                            \
        while (number + 1 < uint(update.parameters) && group >= uint(update.first_chunks[number + 1])) number += 1; \
        Coefficients k = coefficients_of(update, number);                                                           \
        Member<T, G> member = {CHOSEN(before, number), CHOSEN(gradient, number), CHOSEN(after, number)};            \
        ulong first = ulong(group - uint(update.first_chunks[number])) * CHUNK;                                     \
        ulong end = min(ulong(update.sizes[number]), first + CHUNK);                                                \
        ulong start = ulong(update.starts[number]);                                                                 \
        for (ulong i = first + thread_index; i < end; i += THREADS) {                                               \
            update_element(state_before, state_after, member, update, k, start, i);                                 \
        }                                                                                                           \
    }

#define UPDATE_KERNELS(T)   \
    UPDATE_KERNEL(T, float) \
    UPDATE_KERNEL(T, half)  \
    UPDATE_KERNEL(T, bfloat)

UPDATE_KERNELS(float)
UPDATE_KERNELS(half)
UPDATE_KERNELS(bfloat)
