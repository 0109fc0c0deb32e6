// Attention with scores in registers. A SIMD-group has 16 rows of scores, stored as two rows of 8 x 8 matrices. Each
// lane processes the elements that it holds.
//
// MSL does not specify which elements a lane holds. Apple's GPUs have one layout, which other libraries depend on too
// (MLX, `steel/gemm/mma.h`, 2024). On an NVIDIA GPU, Orchard's functions give the layout of its tensor cores.

#ifndef ORCHARD_ATTENTION_FRAGMENTS_H
#define ORCHARD_ATTENTION_FRAGMENTS_H

#include "attention/pairs.h"
#include "attention/tiles.h"

#ifdef __HAVE_ORCHARD_FRAGMENTS__
using namespace orchard;
#else
struct fragment_place {
    ushort row;
    ushort column;
    ushort neighbors[2];
};

inline fragment_place place_of_lane(ushort lane) {
    const ushort quad = lane / 4;
    return {ushort((quad & 4) + lane / 2 % 4), ushort((quad & 2) * 2 + lane % 2 * 2), {1, 8}};
}

template <typename T> inline vec<T, 2> fragment_elements(simdgroup_matrix<T, 8, 8> matrix) {
    return vec<T, 2>(matrix.thread_elements()[0], matrix.thread_elements()[1]);
}

template <typename T> inline simdgroup_matrix<T, 8, 8> fragment_of(vec<T, 2> elements) {
    simdgroup_matrix<T, 8, 8> matrix;
    matrix.thread_elements()[0] = elements.x;
    matrix.thread_elements()[1] = elements.y;
    return matrix;
}

template <typename T> inline simdgroup_matrix<T, 8, 8> rounded_fragment(float2 elements) {
    return fragment_of(vec<T, 2>(T(elements.x), T(elements.y)));
}

inline float flushed_exp2(float x) { return fast::exp2(x); }

template <typename T>
inline void fragment_load(
    thread simdgroup_matrix<T, 8, 8> &first,
    thread simdgroup_matrix<T, 8, 8> &second,
    threadgroup const T *source,
    threadgroup const T *next,
    ulong pitch,
    bool transpose) {
    simdgroup_load(first, source, pitch, ulong2(0), transpose);
    simdgroup_load(second, next, pitch, ulong2(0), transpose);
}

template <typename T>
inline void fragment_multiply_accumulate(
    thread Sums &upper,
    thread Sums &lower,
    simdgroup_matrix<T, 8, 8> a0,
    simdgroup_matrix<T, 8, 8> a1,
    simdgroup_matrix<T, 8, 8> a2,
    simdgroup_matrix<T, 8, 8> a3,
    simdgroup_matrix<T, 8, 8> b0,
    simdgroup_matrix<T, 8, 8> b1) {
    simdgroup_multiply_accumulate(upper, a0, b0, upper);
    simdgroup_multiply_accumulate(upper, a2, b1, upper);
    simdgroup_multiply_accumulate(lower, a1, b0, lower);
    simdgroup_multiply_accumulate(lower, a3, b1, lower);
}
#endif

// Returns e^x, for a result that is rounded to T. Subnormal results may be 0.
template <typename T> inline float exponential_for(float x) {
    return sizeof(T) == 2 ? flushed_exp2(x * LOG2_E) : exponential(x);
}

// gradient_of (pairs.h), for results that are rounded to T.
template <typename T>
inline PairGradient gradient_for(constant Attention &a, Score score, float grad, float kept, RowSums row) {
    const bool counts = score.value != -INFINITY && row.log_sum_exp != -INFINITY;
    const float exponent = (score.value - row.log_sum_exp) - row.log_sum_exp_low;
    const float probability = counts ? exponential_for<T>(exponent) : 0.0f;
    const float gradient = counts ? probability * ((kept == 0.0f ? 0.0f : kept * grad) - row.delta) : 0.0f;
    return {probability * kept, gradient, a.scale * gradient * score.cap_derivative};
}

// Rows of a SIMD-group.
constant constexpr int TALL_ROWS = 16;

// A tile of rows, and its head.
struct TileOfHead {
    int tile;
    int head;
};

// Returns the tile that a threadgroup of a grid (tiles, heads) computes. Threadgroups start in the order of their
// tiles: in causal attention later tiles have less work, and the longest should not start last. Only heads whose
// operands fit into a cache together take part in one order.
inline TileOfHead tile_of_head(uint3 group, uint3 groups, long bytes_of_head) {
    constexpr long cache_bytes = 16 << 20;
    const int section = max(1, min(int(groups.y), int(cache_bytes / max(bytes_of_head, 1L))));
    const int first = int(group.y) / section * section;
    const int heads = min(section, int(groups.y) - first);
    const int place = (int(group.y) - first) * int(groups.x) + int(group.x);
    return {place / heads, first + place % heads};
}

// The head and the first query of a threadgroup that computes `rows` queries. The last queries come first: in causal
// attention they have the most keys.
struct QueriesOfHead {
    uint head;
    int first;
};

template <typename T> inline QueriesOfHead queries_of_head(Sequence s, uint3 group, uint3 groups, int rows) {
    const TileOfHead place = tile_of_head(group, groups, s.keys * long(DIM + VALUE_DIM) * long(sizeof(T)));
    return {uint(place.head), (int(groups.x) - 1 - place.tile) * rows};
}

// rows[row] = factors[…] · sums[row], for rows in bounds. A lane has one factor for each of its two rows.
template <typename T, int COUNT>
inline void store_fragments(
    thread const SumBlocks<COUNT, 2> &sums,
    device T *rows,
    constant AttentionOperand &operand,
    int rows_left,
    int dim,
    thread const float (&factors)[2],
    fragment_place place) {
    UNROLLED
    for (int high = 0; high < 2; high += 1) {
        const int row = high * 8 + place.row;
        UNROLLED
        for (int block = 0; block < COUNT; block += 1) {
            const float2 pair = fragment_elements(sums.at[high][block]) * factors[high];
            UNROLLED
            for (int i = 0; i < 2; i += 1) {
                const int column = block * 8 + place.column + i;
                if (row < rows_left && column < dim) {
                    rows[row * operand.row + column * operand.column] = T(pair[i]);
                }
            }
        }
    }
}

#endif
