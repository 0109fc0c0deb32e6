// The bodies of the kernels `normalize_gradient` and `add_chunks` (normalize_gradient.metal).

#ifndef ORCHARD_NORMALIZATION_NORMALIZE_GRADIENT_H
#define ORCHARD_NORMALIZATION_NORMALIZE_GRADIENT_H

#include "normalization/rows.h"

// The operands of normalize_gradient, as bound.
template <typename T, typename W> struct Operands {
    device const T *x;
    device const T *grad_out;
    device const T *grad_sum;
    device const W *weight;
    device const float *means;
    device const float *scales;
    device T *grad_x;
};

// The address of a row's first element in each operand.
template <typename T> struct Row {
    device const T *x;
    device const T *grad_out;
    device const T *grad_sum;
    device T *grad_x;
    float mean;
    float scale;
};

template <typename T, typename W> inline Row<T> row_at(Operands<T, W> all, constant Normalization &p, long number) {
    long offsets[3];
    slice_offsets(p.rows, ulong(number), offsets);
    const float mean = is_centered() ? all.means[number] : 0.0f;
    device T *grad_x = all.grad_x + number * p.rows.length;
    return {all.x + offsets[0], all.grad_out + offsets[1], all.grad_sum + offsets[2], grad_x, mean, all.scales[number]};
}

// A thread's registers for a block of a row.
struct Elements {
    float normalized[HELD];
    float gradient[HELD];
    float weight[HELD];
};

// A thread's lane, and the block of elements that it processes.
struct Block {
    uint lane;
    uint length;
    long begin;
};

inline Block block_at(constant Normalization &p, uint lane, long begin) {
    return {lane, block_length(p, begin), begin};
}

template <typename T, typename W>
inline void load_weight(thread Elements &held, Operands<T, W> all, constant Normalization &p, Block block) {
    device const W *weight = all.weight + p.weight_start + block.begin * p.weight_stride;
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = block.lane + i * LANES;
        held.weight[i] = 1.0f;
        if (has(NORMALIZATION_OPTION_WEIGHT) && at < block.length) {
            held.weight[i] = float(weight[distance(at, p.weight_stride)]);
        }
    }
}

// Loads a thread's elements of a row, and 0 beyond the end of the block.
template <typename T> inline void load_row(thread Elements &held, Row<T> row, constant Normalization &p, Block block) {
    device const T *x = row.x + block.begin * p.rows.along[0];
    device const T *grad_out = row.grad_out + block.begin * p.rows.along[1];
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = block.lane + i * LANES;
        held.normalized[i] = 0.0f;
        held.gradient[i] = 0.0f;
        if (at >= block.length) continue;
        held.normalized[i] = (float(x[distance(at, p.rows.along[0])]) - row.mean) * row.scale;
        held.gradient[i] = float(grad_out[distance(at, p.rows.along[1])]);
    }
}

// A thread's partial sums of v and v · n.
inline float2 sums_of(thread const Elements &held) {
    float2 sums = 0.0f;
    for (uint i = 0; i < COUNT; i += 1) {
        const float v = held.gradient[i] * held.weight[i];
        sums += float2(is_centered() ? v : 0.0f, v * held.normalized[i]);
    }
    return sums;
}

// `sums` are those of the whole row.
template <typename T>
inline void store_gradients(
    thread const Elements &held, float2 sums, Row<T> row, constant Normalization &p, Block block) {
    const float2 averages = sums / float(p.rows.length);
    device const T *grad_sum = row.grad_sum + block.begin * p.rows.along[2];
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = block.lane + i * LANES;
        if (at >= block.length) break;
        float result = row.scale * ((held.gradient[i] * held.weight[i] - averages.x) - held.normalized[i] * averages.y);
        if (has(NORMALIZATION_OPTION_GRAD_SUM)) result += float(grad_sum[distance(at, p.rows.along[2])]);
        row.grad_x[block.begin + at] = T(result);
    }
}

// A chunk's partial sums of the gradients of weight and bias, for the elements in a thread's registers.
struct ChunkSums {
    float weight[HELD];
    float bias[HELD];
};

inline void clear(thread ChunkSums &sums) {
    for (uint i = 0; i < COUNT; i += 1) {
        sums.weight[i] = 0.0f;
        sums.bias[i] = 0.0f;
    }
}

inline void add_row(thread ChunkSums &sums, thread const Elements &held) {
    for (uint i = 0; i < COUNT; i += 1) {
        if (has(NORMALIZATION_OPTION_GRAD_WEIGHT)) sums.weight[i] += held.gradient[i] * held.normalized[i];
        if (has(NORMALIZATION_OPTION_GRAD_BIAS)) sums.bias[i] += held.gradient[i];
    }
}

// Stores the gradients of a row whose sums are known, and adds it to the sums of its chunk.
template <typename T>
inline void finish_row(
    thread ChunkSums &chunk,
    thread const Elements &held,
    float2 sums,
    Row<T> row,
    constant Normalization &p,
    Block block) {
    if (has(NORMALIZATION_OPTION_GRAD_X)) store_gradients(held, sums, row, p, block);
    add_row(chunk, held);
}

// The shape of `parts` is [chunks, N] for the weight if its gradient is needed, followed by [chunks, N] for the bias.
inline void store_chunk(
    thread const ChunkSums &sums, device float *parts, constant Normalization &p, Block block, long chunk) {
    device float *weight_parts = parts + chunk * p.rows.length + block.begin;
    device float *bias_parts = weight_parts + (has(NORMALIZATION_OPTION_GRAD_WEIGHT) ? p.chunks * p.rows.length : 0);
    for (uint i = 0; i < COUNT; i += 1) {
        const uint at = block.lane + i * LANES;
        if (at >= block.length) break;
        if (has(NORMALIZATION_OPTION_GRAD_WEIGHT)) weight_parts[at] = sums.weight[i];
        if (has(NORMALIZATION_OPTION_GRAD_BIAS)) bias_parts[at] = sums.bias[i];
    }
}

// Processes rows that fit in a team's registers.
template <typename T, typename W>
inline void held_rows(
    Operands<T, W> all, device float *parts, constant Normalization &p, Team team, thread Exchange<float2> &exchange) {
    const Block block = block_at(p, team.lane, 0);
    Elements held;
    ChunkSums chunk;
    load_weight(held, all, p, block);
    clear(chunk);
    for (long number = team.first_row; number < team.end_row; number += 1) {
        const Row<T> row = row_at(all, p, number);
        load_row(held, row, p, block);
        const float2 sums =
            has(NORMALIZATION_OPTION_GRAD_X) ? team_combined<Sum>(sums_of(held), exchange) : float2(0.0f);
        finish_row(chunk, held, sums, row, p, block);
    }
    store_chunk(chunk, parts, p, block, team.chunk);
}

// Processes longer rows: computes the sums of each row, then reads all rows again, one block of elements at a time.
template <typename T, typename W>
inline void long_rows(
    Operands<T, W> all,
    device float *parts,
    constant Normalization &p,
    threadgroup float2 *row_sums,
    Team team,
    thread Exchange<float2> &exchange) {
    const long step = LANES * COUNT;
    Elements held;
    ChunkSums chunk;
    for (long number = team.first_row; has(NORMALIZATION_OPTION_GRAD_X) && number < team.end_row; number += 1) {
        float2 sums = 0.0f;
        for (long begin = 0; begin < p.rows.length; begin += step) {
            const Block block = block_at(p, team.lane, begin);
            load_weight(held, all, p, block);
            load_row(held, row_at(all, p, number), p, block);
            sums += sums_of(held);
        }
        sums = team_combined<Sum>(sums, exchange);
        if (team.lane == 0) {
            row_sums[number - team.first_row] = sums;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (long begin = 0; begin < p.rows.length; begin += step) {
        const Block block = block_at(p, team.lane, begin);
        load_weight(held, all, p, block);
        clear(chunk);
        for (long number = team.first_row; number < team.end_row; number += 1) {
            const Row<T> row = row_at(all, p, number);
            load_row(held, row, p, block);
            const float2 sums = has(NORMALIZATION_OPTION_GRAD_X) ? row_sums[number - team.first_row] : float2(0.0f);
            finish_row(chunk, held, sums, row, p, block);
        }
        store_chunk(chunk, parts, p, block, team.chunk);
    }
}

// Computes the rows of a threadgroup. `pairs` has 2 SIMDGROUPS elements.
template <typename T, typename W>
inline void normalize_gradient_rows(
    Operands<T, W> all,
    device float *parts,
    constant Normalization &p,
    threadgroup float2 *row_sums,
    threadgroup float2 *pairs,
    uint group,
    uint thread_index) {
    Exchange<float2> exchange = {pairs, thread_index, 0};
    const Team team = team_of(p, thread_index, group);
    // There may be fewer chunks than teams; teams of one SIMD-group use no barrier, so they may return.
    if (team.first_row >= team.end_row) return;
    if (FITS) {
        held_rows(all, parts, p, team, exchange);
    } else {
        long_rows(all, parts, p, row_sums, team, exchange);
    }
}

#define ADDED_COLUMNS 32
#define ADDED_PARTS 16
#define ADDED_THREADS (ADDED_COLUMNS * ADDED_PARTS)

// Adds the rows that the chunks wrote, for ADDED_COLUMNS columns. `sums` has ADDED_THREADS elements.
template <typename W>
inline void add_chunks_of(
    device const float *parts,
    device W *grad_weight,
    device W *grad_bias,
    constant Normalization &p,
    threadgroup float *sums,
    uint2 group,
    uint thread_index) {
    const long column = long(group.x) * ADDED_COLUMNS + thread_index % ADDED_COLUMNS;
    const long each = (p.chunks + ADDED_PARTS - 1) / ADDED_PARTS;
    const long first = thread_index / ADDED_COLUMNS * each;
    const long end = column < p.rows.length ? min(p.chunks, first + each) : 0;
    device const float *column_parts = parts + group.y * p.chunks * p.rows.length + column;
    float sum = 0.0f;
    for (long chunk = first; chunk < end; chunk += 1) {
        sum += column_parts[chunk * p.rows.length];
    }
    sums[thread_index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < ADDED_COLUMNS && column < p.rows.length) {
        for (uint part = 1; part < ADDED_PARTS; part += 1) {
            sum += sums[thread_index + part * ADDED_COLUMNS];
        }
        const bool is_weight = has(NORMALIZATION_OPTION_GRAD_WEIGHT) && group.y == 0;
        (is_weight ? grad_weight : grad_bias)[column] = W(sum);
    }
}

#endif
