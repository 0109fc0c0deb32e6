// The division of a reduction among threads: `LANES` threads share one result, and a threadgroup computes `COLUMNS`
// results.
//
// If LANES ≥ 32, adjacent threads read adjacent elements of one result (rows). Otherwise each reads an element of a
// different, adjacent result (columns). A threadgroup reduces one chunk of each of its results. If there are several
// chunks, it writes a state, and another pass merges the states. The shape of the tree depends on sizes only, so
// results are the same in every run.

#ifndef ORCHARD_REDUCTION_GROUPS_H
#define ORCHARD_REDUCTION_GROUPS_H

#include "common/loop.h"
#include "generated/reduction_parameters.h"

constant uint operation [[function_constant(0)]];
constant uint COLUMNS [[function_constant(1)]];
constant uint LANES [[function_constant(2)]];

// The part of a reduction that a thread computes.
struct Share {
    uint lane;  // among the threads of a result
    long result;
    long begin;  // of the threadgroup's chunk
    long end;
};

inline Share share_of(constant ReductionParameters &p, uint thread_index, uint2 group) {
    Share share;
    bool rows = LANES >= 32;
    share.lane = rows ? thread_index % LANES : thread_index / COLUMNS;
    share.result = long(group.x) * COLUMNS + (rows ? thread_index / LANES : thread_index % COLUMNS);
    share.begin = long(group.y) * p.chunk;
    share.end = share.result < p.kept.count ? min(p.count, share.begin + p.chunk) : 0;
    return share;
}

// A thread loads this many elements before it uses the first: a GPU hides the latency of memory only if enough loads
// are under way. On an H200, sums of 4096 rows of 4096 floats took 0.046 ms one element at a time.
template <typename T> constexpr uint elements_ahead() { return sizeof(T) < 4 ? 8 : 4; }

inline float shuffled_xor(float x, ushort mask) { return simd_shuffle_xor(x, mask); }
inline uint shuffled_xor(uint x, ushort mask) { return simd_shuffle_xor(x, mask); }
// Shuffles move at most 32 bits.
inline long shuffled_xor(long x, ushort mask) {
    uint low = simd_shuffle_xor(uint(ulong(x)), mask);
    uint high = simd_shuffle_xor(uint(ulong(x) >> 32), mask);
    return long(ulong(high) << 32 | ulong(low));
}

// Combines the states of a result's lanes, in lane 0. `Merge` defines how two states merge, and how a state is read
// from another thread.
template <typename Merge, typename State>
inline State combined(State state, threadgroup State *scratch, uint thread_index) {
    if (LANES >= 32) {
        for (ushort mask = 16; mask > 0; mask /= 2) {
            state = Merge::merge(state, Merge::shuffled(state, mask));
        }
        if (LANES > 32) {
            uint groups = LANES / 32;
            if (thread_index % 32 == 0) {
                scratch[thread_index / 32] = state;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            state = scratch[thread_index % groups];
            for (ushort mask = ushort(groups / 2); mask > 0; mask /= 2) {
                state = Merge::merge(state, Merge::shuffled(state, mask));
            }
        }
    } else if (LANES > 1) {
        scratch[thread_index] = state;
        for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (thread_index < half_lanes * COLUMNS) {
                scratch[thread_index] =
                    Merge::merge(scratch[thread_index], scratch[thread_index + half_lanes * COLUMNS]);
            }
        }
        state = scratch[thread_index];
    }
    return state;
}

#endif
