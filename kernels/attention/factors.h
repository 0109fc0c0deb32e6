// Factors of the products of attention's kernels for NVIDIA GPUs. Tensor cores multiply half and bfloat matrices. A
// float is the sum of three bfloats, each of which has the next 8 bits of its significand (Henry, Tang and Heinecke,
// 2019):
//
//     a b = a0 b0 + (a0 b1 + a1 b0) + (a0 b2 + a1 b1 + a2 b0) + …
//
// The omitted terms are about as large as the rounding error of a float. The products of NaN and infinity are wrong, so
// factor_tiles.h replaces them.

#ifndef ORCHARD_ATTENTION_FACTORS_H
#define ORCHARD_ATTENTION_FACTORS_H

#include "attention/fragments.h"

// The number of factors that an element of type T is split into.
template <typename T> constexpr int part_count() { return sizeof(T) == 4 ? 3 : 1; }

// Two rows of matrices, in parts of type F.
template <typename F, int PARTS, int COUNT> struct Factors {
    simdgroup_matrix<F, 8, 8> at[PARTS][2][COUNT];

    // Sets a lane's two elements of a matrix, rounded to F unless there are several parts.
    inline void set(int high, int block, float2 elements) thread {
        if (PARTS == 1) {
            at[0][high][block] = rounded_fragment<F>(elements);
            return;
        }
        UNROLLED
        for (int part = 0; part < PARTS; part += 1) {
            const uint2 words = as_type<uint2>(elements);
            at[part][high][block] = fragment_of(as_type<vec<F, 2>>(words.x >> 16 | (words.y & 0xffff0000)));
            elements -= as_type<float2>(words & 0xffff0000);
        }
    }

    // Loads the rows of a SIMD-group. Padding rows and elements are 0. Returns whether a lane's elements include NaN or
    // infinity.
    template <typename T>
    inline bool load(
        device const T *rows, constant AttentionOperand &operand, int rows_left, int dim, fragment_place place) thread {
        bool is_nonfinite = false;
        UNROLLED
        for (int high = 0; high < 2; high += 1) {
            const int row = high * 8 + place.row;
            UNROLLED
            for (int block = 0; block < COUNT; block += 1) {
                float2 pair = 0.0f;
                UNROLLED
                for (int i = 0; i < 2; i += 1) {
                    const int column = block * 8 + place.column + i;
                    if (row < rows_left && column < dim) {
                        pair[i] = float(rows[row * operand.row + column * operand.column]);
                    }
                    is_nonfinite = is_nonfinite || !isfinite(pair[i]);
                }
                set(high, block, pair);
            }
        }
        return is_nonfinite;
    }
};

// Writes four elements to a tile; a part's elements are `plane` elements after those of the previous part.
template <typename F> inline void store_parts(threadgroup F *to, int plane, float4 elements) {
    UNROLLED
    for (int part = 0; part < 3; part += 1) {
        const uint4 words = as_type<uint4>(elements);
        *reinterpret_cast<threadgroup uint2 *>(to + part * plane) =
            uint2(words.x >> 16 | (words.y & 0xffff0000), words.z >> 16 | (words.w & 0xffff0000));
        elements -= as_type<float4>(words & 0xffff0000);
    }
}

// sums += left right, where `left` has `count` columns of matrices, and right[i][j] = tile[j * pitch + i] if
// `transposed`, else tile[i * pitch + j]. Terms of the same magnitude are summed first, so that the many small ones
// keep their digits. An operation that rounds to nearest then adds these sums to `upper` and `lower`.
template <typename F, int PARTS, int COUNT>
inline void add_column(
    thread Sums &upper,
    thread Sums &lower,
    thread const Factors<F, PARTS, COUNT> &left,
    int count,
    threadgroup const F *tile,
    int plane,
    int pitch,
    bool transposed) {
    Sums sums[PARTS][2];
    UNROLLED
    for (int order = 0; order < PARTS; order += 1) {
        sums[order][0] = sums[order][1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    if (PARTS == 1) {
        sums[0][0] = upper;
        sums[0][1] = lower;
    }
    UNROLLED
    for (int block = 0; block < COUNT; block += 2) {
        if (block >= count) {
            break;
        }
        const int step = transposed ? 8 : 8 * pitch;
        const bool is_last = block + 1 == count;
        simdgroup_matrix<F, 8, 8> first[PARTS];
        simdgroup_matrix<F, 8, 8> second[PARTS];
        UNROLLED
        for (int part = 0; part < PARTS; part += 1) {
            threadgroup const F *from = tile + part * plane + block * step;
            fragment_load(first[part], second[part], from, is_last ? from : from + step, pitch, transposed);
        }
        const simdgroup_matrix<F, 8, 8> zero = make_filled_simdgroup_matrix<F, 8, 8>(F(0));
        UNROLLED
        for (int order = PARTS - 1; order >= 0; order -= 1) {
            UNROLLED
            for (int part = 0; part <= order; part += 1) {
                const int other = order - part;
                fragment_multiply_accumulate(
                    sums[order][0], sums[order][1], left.at[part][0][block], left.at[part][1][block],
                    is_last ? zero : left.at[part][0][block + 1], is_last ? zero : left.at[part][1][block + 1],
                    first[other], is_last ? zero : second[other]);
            }
        }
    }
    if (PARTS == 1) {
        upper = sums[0][0];
        lower = sums[0][1];
        return;
    }
    float2 high = 0.0f;
    float2 low = 0.0f;
    UNROLLED
    for (int order = PARTS - 1; order >= 0; order -= 1) {
        high += fragment_elements(sums[order][0]);
        low += fragment_elements(sums[order][1]);
    }
    upper = fragment_of(fragment_elements(upper) + high);
    lower = fragment_of(fragment_elements(lower) + low);
}

// products[row][column] = rows[row] · tile[column]
template <typename F, int PARTS, int COUNT, int COLUMNS, int PITCH>
inline void multiply_by_rows(
    thread Sums (&products)[2][COLUMNS / 8],
    thread const Factors<F, PARTS, COUNT> &rows,
    threadgroup const F *tile,
    int count) {
    UNROLLED
    for (int column = 0; column < COLUMNS / 8; column += 1) {
        products[0][column] = products[1][column] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        add_column<F, PARTS, COUNT>(
            products[0][column], products[1][column], rows, count, tile + column * 8 * PITCH, COLUMNS * PITCH, PITCH,
            true);
    }
}

// sums[row] += weights[row] · tile. If the tile contains NaN or infinity, `without_nonfinite_values` must be called
// first.
template <typename F, int PARTS, int COUNT, int COLUMNS, int PITCH>
inline void add_weighted_rows(
    thread SumBlocks<COUNT, 2> &sums,
    thread const Factors<F, PARTS, COLUMNS / 8> &weights,
    threadgroup const F *tile,
    int count) {
    UNROLLED
    for (int block = 0; block < COUNT; block += 1) {
        if (block >= count) {
            break;
        }
        add_column<F, PARTS, COLUMNS / 8>(
            sums.at[0][block], sums.at[1][block], weights, COLUMNS / 8, tile + block * 8, COLUMNS * PITCH, PITCH,
            false);
    }
}

#endif
