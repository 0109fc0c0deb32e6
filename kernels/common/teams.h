// Sums and the like over a team: LANES threads, which share a row, a SIMD-group or all threads of a threadgroup.
//
// Who includes this has declared `constant uint LANES` (a function constant): 32, or a power of two of up to 32
// SIMDGROUPS. Exchanges are by shuffles, one barrier where a team has several SIMD-groups, and one read a thread.

#ifndef ORCHARD_COMMON_TEAMS_H
#define ORCHARD_COMMON_TEAMS_H

#define SIMDGROUPS 16  // of a team, at most

// What SIMD-groups of a team tell each other. A part's place is used every second time, so that one barrier is enough:
// who writes it again has met the barrier behind which all read it.
template <typename Number> struct Exchange {
    threadgroup Number *parts;  // 2 · SIMDGROUPS
    uint thread_index;
    uint turn;
};

struct Sum {
    template <typename Number> static Number of(Number a, Number b) { return a + b; }
};
struct Largest {
    static float of(float a, float b) { return max(a, b); }
};

// Of a team's numbers, in all of its threads the same bits: both sides of an exchange compute the same. Teams of a
// SIMD-group meet no barrier.
template <typename Combine, typename Number>
inline Number team_combined(Number value, thread Exchange<Number> &exchange) {
    for (ushort mask = 16; mask > 0; mask /= 2) {
        value = Combine::of(value, simd_shuffle_xor(value, mask));
    }
    if (LANES == 32) return value;
    const uint groups = LANES / 32;
    threadgroup Number *parts = exchange.parts + exchange.turn * SIMDGROUPS;
    exchange.turn = 1 - exchange.turn;
    if (exchange.thread_index % 32 == 0) {
        parts[exchange.thread_index / 32] = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = parts[exchange.thread_index % groups];
    for (ushort mask = ushort(groups / 2); mask > 0; mask /= 2) {
        value = Combine::of(value, simd_shuffle_xor(value, mask));
    }
    return value;
}

#endif
