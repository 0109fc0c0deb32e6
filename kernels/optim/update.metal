// A step of an optimizer over up to nine parameters of a dtype, by a rule of src/optim/rules.ts: a parameter p, its gradient g and what is
// remembered of them (m, v, w) become
//
//     g = sign g + l2 p
//     sgd    d = g;  with momentum m = keep m + take1 g, d = m;  with nesterov d = g + keep m
//     adam   m = m + take1 (g − m),  v = v + take2 (g² − v),  d = m / (√v root + eps);  with amsgrad w = max(w, v) in v's place
//     lion   d = sign(m + take1 (g − m)),  m = m + take2 (g − m)
//     p = p − (shrink p + stepSize d)
//
// in float32, p rounded once. Master weights, the state's last plane, are p where there are any.
//
// Tiling: a threadgroup takes CHUNK adjacent elements of one parameter, a thread every 256th of them. What is before and what is after
// are different memory, so that a step that a device loses can be computed again. Each byte of them is read once or written once.

#include <metal_stdlib>
using namespace metal;

#define CHUNK 1024
#define THREADS 256
#define MOST_PARAMETERS 9

// In the order of `ruleNames`.
enum Rule {
    SGD = 0,
    SGD_MOMENTUM = 1,
    SGD_NESTEROV = 2,
    ADAM = 3,
    ADAM_AMSGRAD = 4,
    LION = 5,
};

constant uint RULE [[function_constant(0)]];
constant uint HAS_MASTER [[function_constant(1)]];

struct UpdateMember {
    ulong count;
    ulong start;  // in a plane of the state
    uint first_chunk;
    float sign;
    float l2;
    float shrink;
    float step_size;
    float keep;
    float take1;
    float take2;
    float root;
    float eps;
    uint unused[2];
};

struct Update {
    ulong plane;  // elements from one plane of the state to the next
    uint members;
    uint unused;
    UpdateMember member[MOST_PARAMETERS];
};

inline uint planes() {
    return RULE == SGD ? 0 : RULE == ADAM ? 2 : RULE == ADAM_AMSGRAD ? 3 : 1;
}

inline float averaged(float x, float take, float g) { return x + take * (g - x); }
inline float larger(float a, float b) { return a >= b || a != a ? a : b; }

// Comes with what is remembered of an element, which becomes what it is afterwards; returns the step d.
inline float directed(float g, thread float (&memory)[3], constant UpdateMember &k) {
    switch (RULE) {
    case SGD:
        return g;
    case SGD_MOMENTUM:
        memory[0] = k.keep * memory[0] + k.take1 * g;
        return memory[0];
    case SGD_NESTEROV:
        memory[0] = k.keep * memory[0] + k.take1 * g;
        return g + k.keep * memory[0];
    case LION: {
        float average = averaged(memory[0], k.take1, g);
        memory[0] = averaged(memory[0], k.take2, g);
        return isnan(average) ? average : sign(average);
    }
    default: {
        memory[0] = averaged(memory[0], k.take1, g);
        memory[1] = averaged(memory[1], k.take2, g * g);
        if (RULE == ADAM_AMSGRAD) memory[2] = larger(memory[2], memory[1]);
        float second = RULE == ADAM_AMSGRAD ? memory[2] : memory[1];
        return memory[0] / (precise::sqrt(second) * k.root + k.eps);
    }
    }
}

// A parameter's buffers.
template <typename T, typename G>
struct Member {
    device const T *before;
    device const G *gradient;
    device T *after;
};

template <typename T, typename G>
inline void update_element(
    device const float *state_before, device float *state_after, Member<T, G> own, constant Update &update,
    constant UpdateMember &k, ulong i) {
    float memory[3] = {0.0f, 0.0f, 0.0f};
    ulong place = k.start + i;
    for (uint plane = 0; plane < planes(); plane += 1) {
        memory[plane] = state_before[plane * update.plane + place];
    }
    ulong master = planes() * update.plane + place;
    float p = HAS_MASTER ? state_before[master] : float(own.before[i]);
    float g = k.sign * float(own.gradient[i]) + k.l2 * p;
    float d = directed(g, memory, k);
    p -= k.shrink * p + k.step_size * d;
    for (uint plane = 0; plane < planes(); plane += 1) {
        state_after[plane * update.plane + place] = memory[plane];
    }
    if (HAS_MASTER) state_after[master] = p;
    own.after[i] = T(p);
}

// state_before, state_after  [[buffer(0, 1)]]   [planes, plane]; not touched by a rule that remembers nothing
// before_0 … before_8        [[buffer(2…10)]]   a parameter each, dense; the first again where there are fewer
// gradient_0 … gradient_8    [[buffer(11…19)]]
// after_0 … after_8          [[buffer(20…28)]]
// update                     [[buffer(29)]]
// grid: a threadgroup a chunk, the chunks of the first parameter before those of the second, and so on

#define BUFFERS(pointer, name, first)                                                                                     \
    pointer name##_0 [[buffer(first)]], pointer name##_1 [[buffer(first + 1)]], pointer name##_2 [[buffer(first + 2)]],   \
        pointer name##_3 [[buffer(first + 3)]], pointer name##_4 [[buffer(first + 4)]], pointer name##_5 [[buffer(first + 5)]], \
        pointer name##_6 [[buffer(first + 6)]], pointer name##_7 [[buffer(first + 7)]], pointer name##_8 [[buffer(first + 8)]]

#define CHOSEN(name, number)                                                                                   \
    (number == 0 ? name##_0 : number == 1 ? name##_1 : number == 2 ? name##_2 : number == 3 ? name##_3         \
     : number == 4 ? name##_4 : number == 5 ? name##_5 : number == 6 ? name##_6 : number == 7 ? name##_7 : name##_8)

#define UPDATE_KERNEL(T, G)                                                                                    \
    kernel void update_##T##_##G(                                                                              \
        device const float *state_before [[buffer(0)]], device float *state_after [[buffer(1)]],               \
        BUFFERS(device const T *, before, 2), BUFFERS(device const G *, gradient, 11),                         \
        BUFFERS(device T *, after, 20), constant Update &update [[buffer(29)]],                                \
        uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]]) {      \
        uint number = 0;                                                                                       \
        while (number + 1 < update.members && group >= update.member[number + 1].first_chunk) number += 1;     \
        constant UpdateMember &k = update.member[number];                                                      \
        Member<T, G> own = {CHOSEN(before, number), CHOSEN(gradient, number), CHOSEN(after, number)};          \
        ulong first = ulong(group - k.first_chunk) * CHUNK;                                                    \
        ulong end = min(k.count, first + CHUNK);                                                               \
        for (ulong i = first + thread_index; i < end; i += THREADS) {                                          \
            update_element(state_before, state_after, own, update, k, i);                                      \
        }                                                                                                      \
    }

#define UPDATE_KERNELS(T)    \
    UPDATE_KERNEL(T, float)  \
    UPDATE_KERNEL(T, half)   \
    UPDATE_KERNEL(T, bfloat)

UPDATE_KERNELS(float)
UPDATE_KERNELS(half)
UPDATE_KERNELS(bfloat)
