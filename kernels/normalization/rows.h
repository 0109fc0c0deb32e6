// Rows of normalizations: what src/ops/normalization/problem.ts calls x, n and scale, and how threads share a row.
//
// `LANES` threads are a team, which takes one row after the other: a SIMD-group where rows are short, else all 256 threads of a threadgroup.
// A thread holds up to HELD elements of a row, its lane's and every LANES-th one from there: rows of up to LANES · HELD elements
// (`FITS`) are read once. Sums come together in an order that depends on sizes only.

#ifndef ORCHARD_NORMALIZATION_ROWS_H
#define ORCHARD_NORMALIZATION_ROWS_H

#include "scan/lines.h"

#define HELD 16
#define THREADS 256
#define SIMDGROUPS (THREADS / 32)

constant uint OPTIONS [[function_constant(0)]];
constant uint LANES [[function_constant(1)]];
constant uint FITS [[function_constant(2)]];

// Bits of OPTIONS, in the order of `options` in src/ops/normalization/rows.metal.ts.
enum Option {
    OPTION_CENTRED = 1,
    OPTION_RESIDUAL = 2,
    OPTION_WEIGHT = 4,
    OPTION_BIAS = 8,
    OPTION_GRAD_SUM = 16,
    OPTION_GRAD_X = 32,
    OPTION_GRAD_WEIGHT = 64,
    OPTION_GRAD_BIAS = 128,
};

inline bool has(uint option) { return (OPTIONS & option) != 0; }

struct Normalization {
    LineParameters lines;  // rows of up to three operands of the shape of x, in row-major order
    long weight_start, weight_stride;
    long bias_start, bias_stride;
    long chunk;            // rows that a team takes
    long chunks;
    float eps;
};

// A thread's place: in its team, and the rows that the team takes.
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
    team.end_row = min(p.lines.lines, team.first_row + p.chunk);
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
