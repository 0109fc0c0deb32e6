// Reductions over a team: LANES threads, which share a row. A team is a SIMD-group or all threads of a threadgroup.
//
// A file that includes this declares `constant uint LANES` (a function constant) before: 32, or a power of two of up to
// 32 SIMDGROUPS. A reduction uses shuffles, and if a team has several SIMD-groups one barrier and one read a thread.

#ifndef ORCHARD_COMMON_TEAMS_H
#define ORCHARD_COMMON_TEAMS_H

#define SIMDGROUPS 16  // of a team, at most

// Memory by which the SIMD-groups of a team exchange parts. Two sets of places are used in turn, so that one barrier is
// enough: a thread that writes to a set again has passed the barrier behind which all threads read it.
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

// Combines the numbers of a team. All threads get the same bits, because both sides of an exchange compute the same.
// Teams of one SIMD-group have no barrier.
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
