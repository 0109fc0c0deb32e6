// Rotary position embedding: pair i of a row, (a, b), becomes magnitude (a cos f - b sin f, a sin f + b cos f), where f
// is the row's position times the pair's frequency. Elements beyond the pairs are copied.
//
// Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.
//
// Tiling: one thread per pair, or per copied element; a row of the grid is a row of x. Rows may have any strides.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"
#include "position/rotation.h"

// - rows: operands: x, positions (if absent, the offset is the position), output
// - offset: added to positions
// - step: distance between the first elements of adjacent pairs, in elements of the row
// - second: distance from a pair's first element to its second
// - stride: along rows of x
// - out_stride: along rows of output
// - phases: of each pair per position, in units of 2^-64 cycles
#include "generated/rope.h"

constant uint has_positions [[function_constant(0)]];

// x          [[buffer(0)]]  the elements that its strides reach
// positions  [[buffer(1)]]  [rows], strided; any buffer if there are none
// output     [[buffer(2)]]  the elements that its strides reach
// given      [[buffer(3)]]
template <typename T, typename Position>
kernel void rope(
    device const T *x [[buffer(0)]],
    device const Position *positions [[buffer(1)]],
    device T *output [[buffer(2)]],
    constant Rope &given [[buffer(3)]],
    uint2 thread_position [[thread_position_in_grid]]) {
    long offsets[3];
    loop_places(given.rows, ulong(thread_position.y), offsets);
    device const T *row = x + offsets[0];
    device T *result = output + offsets[2];
    long column = long(thread_position.x);
    if (column >= given.pairs) {
        long element = column + given.pairs;
        result[element * given.out_stride] = row[element * given.stride];
        return;
    }
    long position = given.offset + (has_positions != 0 ? long(positions[offsets[1]]) : offsets[1]);
    float2 rotation = direction(given.phases[column] * ulong(position)) * given.magnitude;
    long first = column * given.step;
    long second = first + given.second;
    float2 pair = rotated(float2(row[first * given.stride], row[second * given.stride]), rotation);
    result[first * given.out_stride] = T(pair.x);
    result[second * given.out_stride] = T(pair.y);
}

#define ROPE_OF(T, Position)                                                        \
    template [[host_name("rope_" #T "_" #Position)]] kernel void rope<T, Position>( \
        device const T *, device const Position *, device T *, constant Rope &, uint2);

#define ROPE(T)      \
    ROPE_OF(T, long) \
    ROPE_OF(T, int)

ROPE(float)
ROPE(half)
ROPE(bfloat)
