// Attention with scores in registers (common/fragments.h). A SIMD-group has 16 rows of scores, stored as two rows of
// 8 x 8 matrices.

#ifndef ORCHARD_ATTENTION_FRAGMENTS_H
#define ORCHARD_ATTENTION_FRAGMENTS_H

#include "attention/pairs.h"
#include "attention/tiles.h"
#include "common/fragments.h"

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
