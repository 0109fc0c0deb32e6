// The norms of several gradients of one dtype, and their products with a factor.
//
// Tiling: a threadgroup processes a chunk of adjacent elements of one gradient, and each thread every THREADS-th
// element. Each gradient is read once, and each product written once. Threads sum squares in float32; then their sums
// are added pairwise as a tree, so every run gives the same bits, since the order of simd_sum is unspecified.

#include <metal_stdlib>
using namespace metal;

#include "common/extended.h"
#include "optim/buffers.h"

// - gradients: number of gradients
// - chunk: elements per chunk
// - sizes: in elements
// - first_chunks: the number of each gradient's first chunk
#include "generated/gradients.h"

#define THREADS 256

// A threadgroup's gradient, and its elements.
struct Chunk {
    uint number;
    ulong first;
    ulong end;
};

inline Chunk chunk_of(uint group, constant Gradients &table) {
    uint number = 0;
    while (number + 1 < uint(table.gradients) && group >= uint(table.first_chunks[number + 1])) number += 1;
    ulong first = ulong(group - uint(table.first_chunks[number])) * ulong(table.chunk);
    return {number, first, min(ulong(table.sizes[number]), first + ulong(table.chunk))};
}

template <typename T> inline Squares sum_of_squares(device const T *gradient, Chunk chunk, uint thread_index) {
    Squares sum = {0.0f, -1};
    for (ulong i = chunk.first + thread_index; i < chunk.end; i += THREADS) {
        sum = added(sum, square_of(float(gradient[i])));
    }
    return sum;
}

// Writes the root of the sum of all threads' squares. All threads must call it; the first one writes.
inline void write_root(Squares squares, threadgroup Squares *sums, uint thread_index, device float *out) {
    sums[thread_index] = squares;
    for (uint half_count = THREADS / 2; half_count > 0; half_count /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (thread_index < half_count) {
            sums[thread_index] = added(sums[thread_index], sums[thread_index + half_count]);
        }
    }
    if (thread_index == 0) *out = root(sums[0]);
}

template <typename T>
inline void scale(device const T *before, device T *after, float factor, Chunk chunk, uint thread_index) {
    for (ulong i = chunk.first + thread_index; i < chunk.end; i += THREADS) after[i] = T(float(before[i]) * factor);
}

#define BUFFERS(pointer, name, first)                                                       \
    NINE_BUFFERS(pointer, name, first), pointer name##_9 [[buffer(first + 9)]],             \
        pointer name##_10 [[buffer(first + 10)]], pointer name##_11 [[buffer(first + 11)]], \
        pointer name##_12 [[buffer(first + 12)]], pointer name##_13 [[buffer(first + 13)]]

#define CHOSEN(name, number)       \
    CHOSEN_OF_EIGHT(               \
        name, number,              \
        number == 8    ? name##_8  \
        : number == 9  ? name##_9  \
        : number == 10 ? name##_10 \
        : number == 11 ? name##_11 \
        : number == 12 ? name##_12 \
                       : name##_13)

// norms                      [[buffer(0)]]      one for each chunk
// gradient_0 … gradient_13   [[buffer(1…14)]]   dense; the first one repeated if there are fewer
// table                      [[buffer(15)]]
// grid: one threadgroup per chunk; the chunks of the first gradient come before those of the second, and so on
#define NORMS_KERNEL(T)                                                                        \
    kernel void norms_##T(                                                                     \
        device float *norms [[buffer(0)]], BUFFERS(device const T *, gradient, 1),             \
        constant Gradients &table [[buffer(15)]], uint group [[threadgroup_position_in_grid]], \
        uint thread_index [[thread_index_in_threadgroup]]) {                                   \
        threadgroup Squares shared[THREADS];                                                   \
        Chunk chunk = chunk_of(group, table);                                                  \
        device const T *gradient = CHOSEN(gradient, chunk.number);                             \
        Squares squares = sum_of_squares(gradient, chunk, thread_index);                       \
        write_root(squares, shared, thread_index, norms + group);                              \
    }

// factor                     [[buffer(0)]]       one number
// before_0 … before_13       [[buffer(1…14)]]    dense; the first one repeated if there are fewer
// after_0 … after_13         [[buffer(15…28)]]
// table                      [[buffer(29)]]
// grid: as above
#define SCALE_KERNEL(T)                                                                                   \
    kernel void scale_##T(                                                                                \
        device const float *factor [[buffer(0)]], BUFFERS(device const T *, before, 1),                   \
        BUFFERS(device T *, after, 15), constant Gradients &table [[buffer(29)]],                         \
        uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]]) { \
        Chunk chunk = chunk_of(group, table);                                                             \
        scale(CHOSEN(before, chunk.number), CHOSEN(after, chunk.number), factor[0], chunk, thread_index); \
    }

NORMS_KERNEL(float)
NORMS_KERNEL(half)
NORMS_KERNEL(bfloat)

SCALE_KERNEL(float)
SCALE_KERNEL(half)
SCALE_KERNEL(bfloat)
