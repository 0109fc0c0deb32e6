// Gradients of normalized rows (src/ops/normalization/problem.ts), with v = grad_out · weight and
// n = (x - mean) · scale:
//
//     grad_x      = scale · (v - Σ v / N - n · Σ (v · n) / N) + grad_sum     without Σ v / N if rows are not centered
//     grad_weight = Σ grad_out · n,   grad_bias = Σ grad_out                 over all rows
//
// normalize_gradient: a team of threads processes a chunk of rows (rows.h) and sums their terms of grad_weight and
// grad_bias in registers, so that it writes one row of each, without atomics. Rows that fit in the registers are read
// once; longer rows are read twice, chunk by chunk.
// add_chunks: adds the rows that the teams wrote, in order.

#include <metal_stdlib>
using namespace metal;

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
        if (has(NORMALIZATION_OPTION_GRAD_X)) {
            store_gradients(held, team_combined<Sum>(sums_of(held), exchange), row, p, block);
        }
        add_row(chunk, held);
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
            if (has(NORMALIZATION_OPTION_GRAD_X)) {
                store_gradients(held, row_sums[number - team.first_row], row, p, block);
            }
            add_row(chunk, held);
        }
        store_chunk(chunk, parts, p, block, team.chunk);
    }
}

// x, grad_out, grad_sum  [[buffer(0, 1, 2)]]  [..., N] with any strides
// weight                 [[buffer(3)]]        [N]
// means, scales          [[buffer(4, 5)]]     [rows]
// grad_x                 [[buffer(6)]]        [rows, N]
// parts                  [[buffer(7)]]        [1 or 2, chunks, N]
// row_sums               [[threadgroup(0)]]   a pair for each row of a chunk, if rows are longer than a block
// grid: threadgroups (chunks / teams) of LANES threads, or of TEAMS SIMD-groups if LANES is 32
// For absent operands (OPTIONS), any buffer is bound, and it is not accessed.
// A thread has up to 16 elements of five arrays in registers. The limit of 512 threads keeps the compiler from using so
// many registers that such a threadgroup does not fit.
template <typename T, typename W>
[[kernel, max_total_threads_per_threadgroup(512)]] void normalize_gradient(
    device const T *x [[buffer(0)]],
    device const T *grad_out [[buffer(1)]],
    device const T *grad_sum [[buffer(2)]],
    device const W *weight [[buffer(3)]],
    device const float *means [[buffer(4)]],
    device const float *scales [[buffer(5)]],
    device T *grad_x [[buffer(6)]],
    device float *parts [[buffer(7)]],
    constant Normalization &p [[buffer(8)]],
    threadgroup float2 *row_sums [[threadgroup(0)]],
    uint group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float2 pairs[2 * SIMDGROUPS];
    Exchange<float2> exchange = {pairs, thread_index, 0};
    const Team team = team_of(p, thread_index, group);
    // There may be fewer chunks than teams; teams of one SIMD-group use no barrier, so they may return.
    if (team.first_row >= team.end_row) return;
    const Operands<T, W> all = {x, grad_out, grad_sum, weight, means, scales, grad_x};
    if (FITS) {
        held_rows(all, parts, p, team, exchange);
    } else {
        long_rows(all, parts, p, row_sums, team, exchange);
    }
}

#define COLUMNS 32
#define PARTS 16
#define THREADS (COLUMNS * PARTS)

// parts                   [[buffer(0)]]     [1 or 2, chunks, N]
// grad_weight, grad_bias  [[buffer(1, 2)]]  [N]
// grid: threadgroups (N / COLUMNS, number of gradients needed) of THREADS threads; PARTS threads add the chunks of one
// column
template <typename W>
kernel void add_chunks(
    device const float *parts [[buffer(0)]],
    device W *grad_weight [[buffer(1)]],
    device W *grad_bias [[buffer(2)]],
    constant Normalization &p [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup float sums[THREADS];
    const long column = long(group.x) * COLUMNS + thread_index % COLUMNS;
    const long each = (p.chunks + PARTS - 1) / PARTS;
    const long first = thread_index / COLUMNS * each;
    const long end = column < p.rows.length ? min(p.chunks, first + each) : 0;
    device const float *column_parts = parts + group.y * p.chunks * p.rows.length + column;
    float sum = 0.0f;
    for (long chunk = first; chunk < end; chunk += 1) {
        sum += column_parts[chunk * p.rows.length];
    }
    sums[thread_index] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < COLUMNS && column < p.rows.length) {
        for (uint part = 1; part < PARTS; part += 1) {
            sum += sums[thread_index + part * COLUMNS];
        }
        const bool is_weight = has(NORMALIZATION_OPTION_GRAD_WEIGHT) && group.y == 0;
        (is_weight ? grad_weight : grad_bias)[column] = W(sum);
    }
}

#define NORMALIZE_GRADIENT(T, W)                                                                      \
    template [[host_name("normalize_gradient_" #T "_" #W)]] kernel void normalize_gradient<T, W>(     \
        device const T *, device const T *, device const T *, device const W *, device const float *, \
        device const float *, device T *, device float *, constant Normalization &, threadgroup float2 *, uint, uint);
#define ADD_CHUNKS(W)                                                   \
    template [[host_name("add_chunks_" #W)]] kernel void add_chunks<W>( \
        device const float *, device W *, device W *, constant Normalization &, uint2, uint);

NORMALIZE_GRADIENT(float, float)
NORMALIZE_GRADIENT(half, half)
NORMALIZE_GRADIENT(half, float)
NORMALIZE_GRADIENT(bfloat, bfloat)
NORMALIZE_GRADIENT(bfloat, float)
ADD_CHUNKS(float)
ADD_CHUNKS(half)
ADD_CHUNKS(bfloat)
