// Rows of normalizations: what src/ops/normalization/problem.ts calls x, n and scale, and how threads share a row.
//
// `LANES` threads are a team, which takes one row after the other: a SIMD-group where rows are short, else all 256
// threads of a threadgroup. A thread holds up to HELD elements of a row, its lane's and every LANES-th one from there:
// rows of up to LANES · HELD elements (`FITS`) are read once. The order in which sums are added depends on sizes only.

#ifndef ORCHARD_NORMALIZATION_ROWS_H
#define ORCHARD_NORMALIZATION_ROWS_H

#include "common/slices.h"
#include "generated/normalization_option.h"

#define HELD 16
#define THREADS 256
#define SIMDGROUPS (THREADS / 32)

constant uint OPTIONS [[function_constant(0)]];  // a bit for each operand that a call may lack
constant uint LANES [[function_constant(1)]];
constant uint FITS [[function_constant(2)]];

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
    team.chunk = long(group) * (THREADS / LANES) + thread_index / LANES;
    team.first_row = team.chunk * p.chunk;
    team.end_row = min(p.rows.nest.count, team.first_row + p.chunk);
    return team;
}

// Two sums over a team, in all of its threads. Teams of a SIMD-group meet no barrier.
inline float2 team_sum(float2 own, threadgroup float2 *parts, uint thread_index) {
    for (ushort mask = 16; mask > 0; mask /= 2) {
        own += simd_shuffle_xor(own, mask);
    }
    if (LANES == 32) return own;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the last sums have been read
    if (thread_index % 32 == 0) {
        parts[thread_index / 32] = own;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float2 sum = parts[0];
    for (uint part = 1; part < SIMDGROUPS; part += 1) {
        sum += parts[part];
    }
    return sum;
}

#endif
