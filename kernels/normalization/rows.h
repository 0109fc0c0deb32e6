// Rows of normalizations (x, n and scale as in src/ops/normalization/problem.ts), and how threads share a row.
//
// `LANES` threads form a team, which processes one row after the other: a SIMD-group for short rows, else all threads
// of a threadgroup. A thread keeps COUNT elements of a block of a row in registers: every LANES-th element, starting
// with its lane. Rows of a single block (`FITS`) are read once. Sums are added in an order that depends on sizes only.

#ifndef ORCHARD_NORMALIZATION_ROWS_H
#define ORCHARD_NORMALIZATION_ROWS_H

#include "common/slices.h"
#include "generated/normalization_option.h"

// - rows: the rows of up to three operands with the shape of x, in row-major order
// - chunk: rows per team
#include "generated/normalization.h"

#define HELD 32        // largest number of elements per thread
#define SIMDGROUPS 16  // largest number of SIMD-groups per threadgroup
#define TEAMS 4        // SIMD-groups per threadgroup, if each processes a row

constant uint OPTIONS [[function_constant(0)]];   // one bit for each optional operand
constant uint LANES [[function_constant(1)]];     // 32, or all threads of a threadgroup
constant uint COUNT [[function_constant(2)]];     // elements per thread
constant uint FITS [[function_constant(3)]];      // whether rows have at most LANES · COUNT elements
constant uint ADJACENT [[function_constant(4)]];  // whether a row's elements are adjacent in all operands

#include "common/teams.h"

// Returns whether an operand, a constant of generated/normalization_option.h, is present.
inline bool has(uint operand) { return (OPTIONS >> operand & 1) != 0; }

// Rows are centered if their means are an operand.
inline bool is_centered() { return has(NORMALIZATION_OPTION_MEAN); }

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
