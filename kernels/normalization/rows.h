// Rows of normalizations: what src/ops/normalization/problem.ts calls x, n and scale, and how threads share a row.
//
// `LANES` threads are a team, which takes one row after the other: a SIMD-group where rows are short, else all threads
// of a threadgroup. A thread holds COUNT elements of a block of a row, its lane's and every LANES-th one from there:
// rows of one block (`FITS`) are read once. The order in which sums are added depends on sizes only.

#ifndef ORCHARD_NORMALIZATION_ROWS_H
#define ORCHARD_NORMALIZATION_ROWS_H

#include "common/slices.h"
#include "generated/normalization_option.h"

#define HELD 32        // elements that a thread holds at most
#define SIMDGROUPS 16  // of a threadgroup, at most
#define TEAMS 4        // SIMD-groups of a threadgroup that take a row each

constant uint OPTIONS [[function_constant(0)]];   // a bit for each operand that a call may lack
constant uint LANES [[function_constant(1)]];     // 32, or all threads of a threadgroup
constant uint COUNT [[function_constant(2)]];     // elements that a thread holds
constant uint FITS [[function_constant(3)]];      // whether rows have no more than LANES · COUNT elements
constant uint ADJACENT [[function_constant(4)]];  // whether a row's elements are adjacent in all operands

// Whether a call has an operand: a constant of generated/normalization_option.h.
inline bool has(uint operand) { return (OPTIONS >> operand & 1) != 0; }

// Rows are centred where their means are an operand.
inline bool is_centred() { return has(NORMALIZATION_OPTION_MEAN); }

struct Normalization {
    Slices<3> rows;  // of up to three operands of the shape of x, in row-major order
    long weight_start;
    long weight_stride;
    long bias_start;
    long bias_stride;
    long chunk;  // rows that a team takes
    long chunks;
    float eps;
};

// A thread's lane in its team, and the rows that the team takes.
struct Team {
    uint lane;
    long chunk;
    long first_row;
    long end_row;
};

inline Team team_of(constant Normalization &p, uint thread_index, uint group) {
    Team team;
    team.lane = thread_index % LANES;
    team.chunk = LANES == 32 ? long(group) * TEAMS + thread_index / 32 : long(group);
    team.first_row = team.chunk * p.chunk;
    team.end_row = min(p.rows.nest.count, team.first_row + p.chunk);
    return team;
}

// Elements of the block that begins there.
inline uint block_length(constant Normalization &p, long begin) {
    return uint(min(p.rows.length - begin, long(LANES * COUNT)));
}

// From the first element of a block to its element `index`.
inline long distance(uint index, long stride) { return ADJACENT ? long(index) : long(index) * stride; }

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
inline Number team_combined(Number own, thread Exchange<Number> &exchange) {
    for (ushort mask = 16; mask > 0; mask /= 2) {
        own = Combine::of(own, simd_shuffle_xor(own, mask));
    }
    if (LANES == 32) return own;
    const uint groups = LANES / 32;
    threadgroup Number *parts = exchange.parts + exchange.turn * SIMDGROUPS;
    exchange.turn = 1 - exchange.turn;
    if (exchange.thread_index % 32 == 0) {
        parts[exchange.thread_index / 32] = own;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    own = parts[exchange.thread_index % groups];
    for (ushort mask = ushort(groups / 2); mask > 0; mask /= 2) {
        own = Combine::of(own, simd_shuffle_xor(own, mask));
    }
    return own;
}

#endif
