// Evenly spaced numbers: output[i] = start + i · step.
//
// Floats are computed in float64 and rounded once, with the same bits as on a CPU: in float32, a step such as 0.1 would
// be off by a thousandth after ten thousand steps. From element `forward` on, numbers are computed from the end.
// Integers are exact.
//
// Tiling: one thread per element; the grid is two-dimensional, because a coordinate has only 32 bits.

#include <metal_stdlib>
using namespace metal;

#include "common/float64.h"
#include "common/loop.h"

// - start: the bits of a float64
#include "generated/range.h"

// output[i] = start + i · step + i · remainder / divisor, truncated toward zero; all are int64, passed as bits.
// - divisor: at least 1
#include "generated/whole_range.h"

// output  [[buffer(0)]]  count elements as bits, with E bits of exponent and F bits of fraction
// given   [[buffer(1)]]
template <typename Bits, uint E, uint F>
kernel void range(
    device Bits *output [[buffer(0)]],
    constant Range &given [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    ulong count = ulong(given.count);
    if (element >= count) {
        return;
    }
    bool is_forward = element < ulong(given.forward);
    ulong steps = float64_of(is_forward ? element : count - 1 - element);
    ulong distance = float64_multiply(steps, given.step);
    ulong value = is_forward ? float64_add(given.start, distance) : float64_add(given.end, distance ^ FLOAT64_SIGN);
    output[element] = Bits(float64_narrow(value, E, F));
}

// output  [[buffer(0)]]  count elements
// given   [[buffer(1)]]
template <typename Out>
kernel void whole_range(
    device Out *output [[buffer(0)]],
    constant WholeRange &given [[buffer(1)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    long element = long(loop_element(position, grid));
    if (element >= given.count) {
        return;
    }
    long divisor = long(given.divisor);
    long part = element * long(given.remainder);
    long remainder = part % divisor;
    long value = long(given.start) + element * long(given.step) + part / divisor - (remainder < 0 ? 1 : 0);
    output[element] = Out(value + (value < 0 && remainder != 0 ? 1 : 0));
}

#define RANGE(name, Bits, E, F) \
    template [[host_name("range_" #name)]] kernel void range<Bits, E, F>(device Bits *, constant Range &, uint2, uint2);

RANGE(float, uint, 8, 23)
RANGE(half, ushort, 5, 10)
RANGE(bfloat, ushort, 8, 7)

#define WHOLE_RANGE(Out)                                                      \
    template [[host_name("whole_range_" #Out)]] kernel void whole_range<Out>( \
        device Out *, constant WholeRange &, uint2, uint2);

WHOLE_RANGE(long)
WHOLE_RANGE(int)
WHOLE_RANGE(uint)
WHOLE_RANGE(char)
WHOLE_RANGE(uchar)
