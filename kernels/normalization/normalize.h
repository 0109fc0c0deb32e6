// The body of the kernel `normalize` (normalize.metal).

#ifndef ORCHARD_NORMALIZATION_NORMALIZE_H
#define ORCHARD_NORMALIZATION_NORMALIZE_H

#include "normalization/moments.h"

constant uint CHUNKED [[function_constant(5)]];  // whether teams process several rows with weight and bias in registers

// The address of a row's first element in each operand.
template <typename T> struct Row {
    device const T *x;
    device const T *residual;
    device T *out;
    device T *sum;
};

// A thread's registers: elements of a row, and of weight and bias if teams process several rows.
struct Elements {
    float row[HELD];
    float weight[HELD];
    float bias[HELD];
};

// Loads the elements of the block that begins at `begin`, and 0 beyond its end. With a residual, also writes the sum.
template <typename T>
inline void load_block(thread Elements &held, Row<T> row, constant Normalization &p, uint lane, long begin) {
    const uint length = block_length(p, begin);
    device const T *x = row.x + begin * p.rows.along[0];
    device const T *residual = row.residual + begin * p.rows.along[1];
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = lane + i * LANES;
        held.row[i] = 0.0f;
        if (at >= length) continue;
        T element = x[distance(at, p.rows.along[0])];
        if (has(NORMALIZATION_OPTION_RESIDUAL)) {
            element = T(float(element) + float(residual[distance(at, p.rows.along[1])]));
            row.sum[begin + at] = element;
        }
        held.row[i] = float(element);
    }
}

// Loads a row that was read before, and multiplies it by `unit`. Each thread reads the elements of the sum that it
// wrote itself.
template <typename T>
inline void load_again(
    thread Elements &held, Row<T> row, constant Normalization &p, uint lane, long begin, float unit) {
    const uint length = block_length(p, begin);
    device const T *x = row.x + begin * p.rows.along[0];
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = lane + i * LANES;
        held.row[i] = 0.0f;
        if (at >= length) continue;
        const T element = has(NORMALIZATION_OPTION_RESIDUAL) ? row.sum[begin + at] : x[distance(at, p.rows.along[0])];
        held.row[i] = float(element) * unit;
    }
}

// Weight and bias as bound, for one block.
template <typename W> struct Vectors {
    device const W *weight;
    device const W *bias;
};

template <typename W> inline Vectors<W> from_block(Vectors<W> all, constant Normalization &p, long begin) {
    return {all.weight + begin * p.weight_stride, all.bias + begin * p.bias_stride};
}

template <typename W>
inline void load_vectors(thread Elements &held, Vectors<W> from, constant Normalization &p, uint i, uint at) {
    if (has(NORMALIZATION_OPTION_WEIGHT)) held.weight[i] = float(from.weight[distance(at, p.weight_stride)]);
    if (has(NORMALIZATION_OPTION_BIAS)) held.bias[i] = float(from.bias[distance(at, p.bias_stride)]);
}

// Computes the moments of a row that is longer than a block, whether it is read for the first time or again.
template <typename T>
inline Moments long_row_moments(
    thread Elements &held,
    Row<T> row,
    constant Normalization &p,
    uint lane,
    bool is_first,
    float unit,
    thread Exchanges &exchanges) {
    Moments all = {0.0f, 0.0f, 0.0f, 0.0f};
    for (long begin = 0; begin < p.rows.length; begin += LANES * COUNT) {
        if (is_first) {
            load_block(held, row, p, lane, begin);
        } else {
            load_again(held, row, p, lane, begin, unit);
        }
        const Moments block = team_moments(held.row, lane, block_length(p, begin), exchanges);
        all = begin == 0 ? block : merged(all, block);
    }
    return all;
}

// Returns the largest absolute value of a row, ignoring NaN.
template <typename T>
inline float row_largest(
    thread Elements &held, Row<T> row, constant Normalization &p, uint lane, thread Exchange<float> &exchange) {
    float largest = 0.0f;
    for (long begin = 0; begin < (FITS ? 1 : p.rows.length); begin += LANES * COUNT) {
        if (!FITS) load_again(held, row, p, lane, begin, 1.0f);
        for (uint i = 0; i < COUNT; i += 1) {
            largest = max(largest, abs(held.row[i]));
        }
    }
    return team_combined<Largest>(largest, exchange);
}

// The moments of a row times `unit`, and its 1 / sqrt(squares / length + eps). The elements in registers are also
// multiplied by `unit`.
struct Statistics {
    Moments moments;
    float unit;
    float factor;
};

template <typename T>
inline Statistics statistics_of(
    thread Elements &held, Row<T> row, constant Normalization &p, uint lane, thread Exchanges &exchanges) {
    const float length = float(p.rows.length);
    Statistics found;
    found.unit = 1.0f;
    if (FITS) {
        load_block(held, row, p, lane, 0);
        found.moments = team_moments(held.row, lane, uint(p.rows.length), exchanges);
    } else {
        found.moments = long_row_moments(held, row, p, lane, true, 1.0f, exchanges);
    }
    float mean_square = found.moments.squares / length + p.eps;
    if (!is_in_range(mean_square)) {  // uniform for all threads of a team
        const float root = precise::sqrt(p.eps);
        found.unit = unit_of(max(root, row_largest(held, row, p, lane, exchanges.one)));
        if (FITS) {
            for (uint i = 0; i < COUNT; i += 1) {
                held.row[i] *= found.unit;
            }
            found.moments = team_moments(held.row, lane, uint(p.rows.length), exchanges);
        } else {
            found.moments = long_row_moments(held, row, p, lane, false, found.unit, exchanges);
        }
        mean_square = found.moments.squares / length + (root * found.unit) * (root * found.unit);
    }
    found.factor = precise::rsqrt(mean_square);
    return found;
}

// Normalizes the rows of a threadgroup. `parts` and `pairs` have 2 SIMDGROUPS elements.
template <typename T, typename W>
inline void normalize_rows(
    device const T *x,
    device const T *residual,
    device const W *weight,
    device const W *bias,
    device T *out,
    device T *sum,
    device float *means,
    device float *scales,
    constant Normalization &p,
    threadgroup float *parts,
    threadgroup float2 *pairs,
    uint group,
    uint thread_index) {
    Exchanges exchanges = {{parts, thread_index, 0}, {pairs, thread_index, 0}};
    const long length = p.rows.length;
    const Team team = team_of(p, thread_index, group);
    if (team.first_row >= team.end_row) return;  // no barrier follows: a larger team always has a row
    Elements held;
    const Vectors<W> vectors = {weight + p.weight_start, bias + p.bias_start};
    const bool is_held = CHUNKED && FITS;
    for (uint i = 0; is_held && i < COUNT; i += 1) {
        const uint at = team.lane + i * LANES;
        if (at < uint(length)) load_vectors(held, vectors, p, i, at);
    }
    for (long number = team.first_row; number < team.end_row; number += 1) {
        long offsets[3];
        slice_offsets(p.rows, ulong(number), offsets);
        const Row<T> row = {x + offsets[0], residual + offsets[1], out + number * length, sum + number * length};
        const Statistics found = statistics_of(held, row, p, team.lane, exchanges);
        if (team.lane == 0) {
            scales[number] = found.factor * found.unit;
            if (is_centered()) means[number] = (found.moments.mean + found.moments.lost) / found.unit;
        }
        for (long begin = 0; begin < length; begin += LANES * COUNT) {
            if (!FITS) load_again(held, row, p, team.lane, begin, found.unit);
            const Vectors<W> of_block = from_block(vectors, p, begin);
            const uint count = block_length(p, begin);
            for (uint i = 0; i < COUNT; i += 1) {
                const uint at = team.lane + i * LANES;
                if (at >= count) break;
                if (!is_held) load_vectors(held, of_block, p, i, at);
                float value = held.row[i];
                if (is_centered()) value = (value - found.moments.mean) - found.moments.lost;
                value *= found.factor;
                if (has(NORMALIZATION_OPTION_WEIGHT)) value *= held.weight[i];
                if (has(NORMALIZATION_OPTION_BIAS)) value += held.bias[i];
                row.out[begin + at] = T(value);
            }
        }
    }
}

#endif
