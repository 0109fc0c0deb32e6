// Rows of normalizations (x, n and scale as in src/ops/normalization/problem.ts), and how threads share a row.
//
// `LANES` threads are a team, which processes one row after the other: a SIMD-group for short rows, else all threads of
// a threadgroup. A thread holds COUNT elements of a block of a row: every LANES-th one, starting at its lane. Rows of
// one block (`FITS`) are read once. Sums are added in an order that depends only on sizes.

#ifndef ORCHARD_NORMALIZATION_ROWS_H
#define ORCHARD_NORMALIZATION_ROWS_H

#include "common/slices.h"
#include "generated/normalization_option.h"

#define HELD 32        // elements that a thread holds at most
#define SIMDGROUPS 16  // of a threadgroup, at most
#define TEAMS 4        // SIMD-groups of a threadgroup that process a row each

constant uint OPTIONS [[function_constant(0)]];   // a bit for each operand that a call may lack
constant uint LANES [[function_constant(1)]];     // 32, or all threads of a threadgroup
constant uint COUNT [[function_constant(2)]];     // elements that a thread holds
constant uint FITS [[function_constant(3)]];      // whether rows have no more than LANES · COUNT elements
constant uint ADJACENT [[function_constant(4)]];  // whether a row's elements are adjacent in all operands

#include "common/teams.h"

// Returns whether a call has an operand, a constant of generated/normalization_option.h.
inline bool has(uint operand) { return (OPTIONS >> operand & 1) != 0; }

// Rows are centred if their means are an operand.
inline bool is_centred() { return has(NORMALIZATION_OPTION_MEAN); }

struct Normalization {
    Slices<3> rows;  // of up to three operands of the shape of x, in row-major order
    long weight_start;
    long weight_stride;
    long bias_start;
    long bias_stride;
    long chunk;  // rows of a team
    long chunks;
    float eps;
};

// A thread's lane in its team, and the team's rows.
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

// Returns the number of elements of the block that begins at `begin`.
inline uint block_length(constant Normalization &p, long begin) {
    return uint(min(p.rows.length - begin, long(LANES * COUNT)));
}

// Returns the distance from a block's first element to its element `index`.
inline long distance(uint index, long stride) { return ADJACENT ? long(index) : long(index) * stride; }

#endif
