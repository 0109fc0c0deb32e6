// The new tokens of a decoding step: rotates q into a buffer and k into rows of a cache, and copies v into rows of the
// cache. Pair i of a head becomes magnitude (a cos f - b sin f, a sin f + b cos f), where f is the token's position
// times the pair's frequency (position/rope.metal). Elements beyond the pairs are copied.
//
// Tiling: one thread per pair of q or k, per other element of them, and per element of v. The grid is (columns, heads
// of q, k and v, tokens of all batches).

#include <metal_stdlib>
using namespace metal;

#include "position/rotation.h"

#include "generated/attention_operand.h"

// - q, k, v: the projections; row is a token
// - rotated: the rotated q
// - keys, values: the cache; row 0 is the row of the first new token
// - position: of the first new token
// - step: distance between the first elements of adjacent pairs
// - second: distance from a pair's first element to its second
// - phases: of each pair per position, in units of 2^-64 cycles
#include "generated/attention_step.h"

inline long head_offset(constant AttentionOperand &operand, uint batch, long head, uint token) {
    return operand.start + batch * operand.batch + head * operand.head + token * operand.row;
}

// Rotates one pair of a head of q or k, or copies one of the other elements.
template <typename T>
inline void rotate_head(device const T *from, device T *to, constant AttentionStep &a, long column, uint token) {
    if (column >= a.pairs) {
        const long element = column + a.pairs;
        if (element < a.dim) {
            to[element] = from[element];
        }
        return;
    }
    const float2 rotation = direction(a.phases[column] * ulong(a.position + token)) * a.magnitude;
    const long first = column * a.step;
    const long second = first + a.second;
    const float2 pair = rotated(float2(from[first], from[second]), rotation);
    to[first] = T(pair.x);
    to[second] = T(pair.y);
}

// q, k, v        [[buffer(0, 1, 2)]]  [batch, tokens, heads, dim or value_dim]
// rotated        [[buffer(3)]]        [batch, heads, tokens, dim]
// keys, values   [[buffer(4, 5)]]     [batch, kv_heads, rows, dim or value_dim]
template <typename T>
kernel void attention_step(
    device const T *q [[buffer(0)]],
    device const T *k [[buffer(1)]],
    device const T *v [[buffer(2)]],
    device T *rotated_q [[buffer(3)]],
    device T *keys [[buffer(4)]],
    device T *values [[buffer(5)]],
    constant AttentionStep &a [[buffer(6)]],
    uint3 thread_position [[thread_position_in_grid]]) {
    const long column = long(thread_position.x);
    const uint batch = thread_position.z / uint(a.tokens);
    const uint token = thread_position.z % uint(a.tokens);
    const long head = long(thread_position.y);
    const long key_head = head - a.heads;
    const long value_head = key_head - a.kv_heads;
    if (key_head < 0) {
        device const T *from = q + head_offset(a.q, batch, head, token);
        rotate_head(from, rotated_q + head_offset(a.rotated, batch, head, token), a, column, token);
    } else if (value_head < 0) {
        device const T *from = k + head_offset(a.k, batch, key_head, token);
        rotate_head(from, keys + head_offset(a.keys, batch, key_head, token), a, column, token);
    } else if (column < a.value_dim) {
        device const T *from = v + head_offset(a.v, batch, value_head, token);
        values[head_offset(a.values, batch, value_head, token) + column] = from[column];
    }
}

#define STEP(T)                                                                                   \
    template [[host_name("step_" #T)]] kernel void attention_step<T>(                             \
        device const T *, device const T *, device const T *, device T *, device T *, device T *, \
        constant AttentionStep &, uint3);

STEP(float)
STEP(half)
STEP(bfloat)
