// first[0] = min(first[0], the number of the first index that is negative or at least `size`); indices equal to
// `except` are accepted.
//
// Kernels that use indices ignore those out of range. This kernel finds such an index, and the host reports it when it
// next waits for the device.

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// - loop: operand: index
// - except: an index that is accepted although out of range
#include "generated/index_range.h"

// index  [[buffer(0)]]  the elements that its strides reach
// first  [[buffer(1)]]  one number, 2^32 - 1 if no index is out of range; numbers above 2^32 - 2 are stored as that
// range  [[buffer(2)]]
template <typename Index>
kernel void find_out_of_range(
    device const Index *index [[buffer(0)]],
    device atomic_uint *first [[buffer(1)]],
    constant IndexRange &range [[buffer(2)]],
    uint2 position [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
    ulong element = loop_element(position, grid);
    if (element >= ulong(range.loop.count)) {
        return;
    }
    long offsets[1];
    loop_places(range.loop, element, offsets);
    long value = long(index[offsets[0]]);
    if ((value < 0 || value >= range.size) && value != range.except) {
        atomic_fetch_min_explicit(first, uint(min(element, ulong(0xfffffffe))), memory_order_relaxed);
    }
}

#define FIND_OUT_OF_RANGE(Index)                                                              \
    template [[host_name("find_out_of_range_" #Index)]] kernel void find_out_of_range<Index>( \
        device const Index *, device atomic_uint *, constant IndexRange &, uint2, uint2);

FIND_OUT_OF_RANGE(long)
FIND_OUT_OF_RANGE(int)
