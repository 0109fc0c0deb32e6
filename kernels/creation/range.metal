// Points of a line: output[i] = start + i · step.
//
// Floats are computed in float64 and rounded once, as on a CPU, bit by bit: in a float32 a step such as 0.1 would be a thousandth off
// after ten thousand of them. From element `turn` on they are counted from the end. Integers are exact.
//
// Tiling: one thread an element; the grid is rows of threads, because a coordinate has 32 bits only.

#include <metal_stdlib>
using namespace metal;

#include "common/float64.h"

struct Line {
    ulong start;  // float64, as bits
    ulong step;
    ulong end;
    ulong turn;
    ulong count;
};

struct WholeLine {
    long start;
    long step;
    long rest;     // output[i] = start + i · step + i · rest / divisor, cut towards zero
    long divisor;  // at least 1
    long count;
};

// output  [[buffer(0)]]  count elements as bits: E bits of exponent, F bits of fraction
// line    [[buffer(1)]]
template <typename Bits, uint E, uint F>
kernel void range(
    device Bits *output [[buffer(0)]],
    constant Line &line [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = ulong(position.y) * grid.x + position.x;
    if (element >= line.count) {
        return;
    }
    bool is_forward = element < line.turn;
    ulong steps = float64_of(is_forward ? element : line.count - 1 - element);
    ulong distance = float64_multiply(steps, line.step);
    ulong value = is_forward ? float64_add(line.start, distance) : float64_add(line.end, distance ^ FLOAT64_SIGN);
    output[element] = Bits(float64_narrow(value, E, F));
}

// output  [[buffer(0)]]  count elements
// line    [[buffer(1)]]
template <typename Out>
kernel void whole_range(
    device Out *output [[buffer(0)]],
    constant WholeLine &line [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    long element = long(position.y) * long(grid.x) + long(position.x);
    if (element >= line.count) {
        return;
    }
    long part = element * line.rest;
    long remainder = part % line.divisor;
    long value = line.start + element * line.step + part / line.divisor - (remainder < 0 ? 1 : 0);
    output[element] = Out(value + (value < 0 && remainder != 0 ? 1 : 0));
}

#define RANGE(name, Bits, E, F) \
    template [[host_name("range_" #name)]] kernel void range<Bits, E, F>(device Bits *, constant Line &, uint2, uint2);

RANGE(float, uint, 8, 23)
RANGE(half, ushort, 5, 10)
RANGE(bfloat, ushort, 8, 7)

#define WHOLE_RANGE(Out) \
    template [[host_name("whole_range_" #Out)]] kernel void whole_range<Out>(device Out *, constant WholeLine &, uint2, uint2);

WHOLE_RANGE(long)
WHOLE_RANGE(int)
WHOLE_RANGE(uint)
WHOLE_RANGE(char)
WHOLE_RANGE(uchar)
