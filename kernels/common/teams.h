// Reductions over a team: LANES threads that share a row. A team is a SIMD-group, or all threads of a threadgroup.
//
// A file that includes this header first declares `constant uint LANES` (a function constant): 32, or a power of two
// that is at most 32 SIMDGROUPS. A reduction uses shuffles; if a team has several SIMD-groups, it also takes one
// barrier and one read of threadgroup memory per thread.

#ifndef ORCHARD_COMMON_TEAMS_H
#define ORCHARD_COMMON_TEAMS_H

#define SIMDGROUPS 16  // largest number of SIMD-groups in a team

// Threadgroup memory through which the SIMD-groups of a team exchange partial results. Two sets of elements alternate,
// so that one barrier is enough: a thread that writes to a set again has passed a barrier that all threads reached
// after they had read it.
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

// Combines the numbers of a team. All threads get the same bits, because both sides of each exchange compute the same
// result. Teams of one SIMD-group need no barrier.
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
