// orchard_cpu.h: the C interface of the dylib `OrchardCPU`, the cpu backend.
//
// Vector kernels, a thread pool, an allocator and matrix products for macOS and Linux. It knows nothing of tensors: shapes
// and strides come with each call.
//
// Conventions
//   Status      Functions that can fail return an orchard_cpu_status, whose values are those of orchard_status
//               (orchard.h). The message is read with orchard_cpu_last_error on the same thread. On failure no
//               out-parameter is written and, but for ORCHARD_CPU_INTERNAL, no element of the result. No C++ exception
//               crosses.
//   Functions   An operation is a function of a table, which orchard_cpu_tables describes; orchard_cpu_run… calls one by
//               its ordinal. Nothing in this header names an operation: `ORCHARD_FUNCTION` in native/cpu does.
//   Blocks      A block is a struct of doubles, which a header in native/cpu declares: attributes, shapes, strides and
//               offsets. Whole numbers lie below 2^53 and are exact. Offsets and strides count elements; strides may be 0
//               or negative. Names (of operations, dtypes, rules) are ordinals of the tables' lists.
//   Operands    Base addresses of storages, which the call does not keep. The offset in the block leads to the first
//               element. What lies outside the described elements is neither read nor written.
//   Threads     Any function may be called from any thread. An operation has ended when its function returns.
//   Order       Results depend neither on the number of threads nor on the order in which they run.
#ifndef ORCHARD_CPU_H
#define ORCHARD_CPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ORCHARD_CPU_API __attribute__((visibility("default")))
#else
#define ORCHARD_CPU_API
#endif

#define ORCHARD_CPU_ABI_VERSION 2

// ---------------------------------------------------------------- status and errors

typedef enum orchard_cpu_status {
  ORCHARD_CPU_OK = 0,
  ORCHARD_CPU_INVALID_ARGUMENT = 1,  // a code, a size or a name outside its range
  ORCHARD_CPU_OUT_OF_MEMORY = 9,     // the memory limit or the machine's memory; the message names the figures
  ORCHARD_CPU_UNSUPPORTED = 13,      // this processor or dtype can't; the message says why
  ORCHARD_CPU_INTERNAL = 15
} orchard_cpu_status;

// Returns ORCHARD_CPU_ABI_VERSION of the dylib.
ORCHARD_CPU_API int32_t orchard_cpu_abi_version(void);

// Writes the message of the calling thread's last failure, UTF-8 without a terminator, at most `capacity` bytes of it. Returns
// its whole length; 0 where there is none.
ORCHARD_CPU_API int32_t orchard_cpu_last_error(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- settings

// Changes a setting from now on, for every thread. Both texts end with a 0.
//   isa      "baseline", "avx2", "avx512" (x86-64) or "neon" (arm64); "auto": the best that the processor has
//   threads  a whole number of at least 1; "auto": the processors on which this process may run
//   blas     paths or names of BLAS libraries, one a line, tried in this order when the first matrix product wants one;
//            "none": the dylib's own matrix product serves. At first: "none", but for Accelerate on macOS
ORCHARD_CPU_API int32_t orchard_cpu_configure(const char *name, const char *value);

// Writes JSON as orchard_cpu_last_error writes its message, and returns the whole length:
// { "isa": "avx512", "isas": ["baseline", "avx2", "avx512"], "threads": 8, "blas": null | { "name", "path" }, "blasProblems": [] }
// `isas` are those that the processor can run. Looks for the BLAS where that was not done yet.
ORCHARD_CPU_API int32_t orchard_cpu_describe(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- memory

// Takes a block of at least `bytes` bytes, aligned to 64, its contents undefined. out[0] is its address, out[1] its context, both
// whole numbers. A freed block of the same size class is reused; a class is at most 12.5% larger than what was asked for (or
// 64 bytes). The block is given back by orchard_cpu_release or orchard_cpu_collected; its context lives until the latter.
ORCHARD_CPU_API int32_t orchard_cpu_allocate(double bytes, double *out);

// Gives the bytes of a block back at once. The context stays valid, and a second release does nothing.
ORCHARD_CPU_API int32_t orchard_cpu_release(void *context);

// Gives a block back, where orchard_cpu_release did not, and frees its context: the deallocator of an ArrayBuffer
// over the block (JSTypedArrayBytesDeallocator), which a collector may call on any thread.
ORCHARD_CPU_API void orchard_cpu_collected(void *bytes, void *context);

// The address of orchard_cpu_collected.
ORCHARD_CPU_API void *orchard_cpu_collector(void);

// Limits in bytes. Allocations beyond the memory limit (live bytes; at first three quarters of the machine's memory) are
// ORCHARD_CPU_OUT_OF_MEMORY. Free blocks beyond the cache limit (at first an eighth) go back to the system, the oldest first.
ORCHARD_CPU_API int32_t orchard_cpu_set_memory_limit(double bytes);
ORCHARD_CPU_API int32_t orchard_cpu_set_cache_limit(double bytes);

// Gives every free block back to the system.
ORCHARD_CPU_API int32_t orchard_cpu_trim(void);

// For tests: the next `count` allocations (scratch memory of operations included) are refused.
ORCHARD_CPU_API int32_t orchard_cpu_fail_allocations(int32_t count);

enum {
  ORCHARD_CPU_STATISTICS = 10  // numbers that orchard_cpu_statistics writes
};

// Writes, in this order: liveBytes, liveBlocks, cachedBytes, cachedBlocks, peakBytes (of live ones), allocations, cacheHits,
// refusals, memoryLimit, cacheLimit. Bytes are those of the size classes.
ORCHARD_CPU_API int32_t orchard_cpu_statistics(double *out);

// Starts peakBytes anew, from what is live now.
ORCHARD_CPU_API int32_t orchard_cpu_reset_peak(void);

// ---------------------------------------------------------------- operations

// Writes JSON as orchard_cpu_last_error writes its message, and returns the whole length: the functions that orchard_cpu_run… call, in the order
// of their ordinals, with the bytes of their blocks and their number of operands; and the lists of names to which blocks refer by ordinal.
// { "functions": [{ "name": "scan", "blockBytes": 296, "operands": 3 }, …], "names": { "Scan": "cumsum, cumprod, …", … } }
ORCHARD_CPU_API int32_t orchard_cpu_tables(char *buffer, int32_t capacity);

// Runs a function: its block, and as many operands as it has; those beyond may be any address. They differ in the room for operands.
ORCHARD_CPU_API int32_t orchard_cpu_run3(int32_t function, const void *block, void *o0, void *o1, void *o2);
ORCHARD_CPU_API int32_t orchard_cpu_run6(int32_t function, const void *block, void *o0, void *o1, void *o2, void *o3, void *o4, void *o5);
ORCHARD_CPU_API int32_t orchard_cpu_run16(int32_t function, const void *block, void *o0, void *o1, void *o2, void *o3, void *o4, void *o5,
                                          void *o6, void *o7, void *o8, void *o9, void *o10, void *o11, void *o12, void *o13, void *o14,
                                          void *o15);
ORCHARD_CPU_API int32_t orchard_cpu_run30(int32_t function, const void *block, void *o0, void *o1, void *o2, void *o3, void *o4, void *o5,
                                          void *o6, void *o7, void *o8, void *o9, void *o10, void *o11, void *o12, void *o13, void *o14,
                                          void *o15, void *o16, void *o17, void *o18, void *o19, void *o20, void *o21, void *o22,
                                          void *o23, void *o24, void *o25, void *o26, void *o27, void *o28, void *o29);

// Fills a tensor of any strides with one element. Block: bytes of an element (1, 2, 4 or 8), offset, the lower and the upper 32 bits of the
// element, rank (at most 8), shape, strides.
ORCHARD_CPU_API int32_t orchard_cpu_fill(const double *block, void *out);

// Steps of a line, dense, computed in float64 and rounded once to the dtype of a float: out[i] = start + i · step for i < turn, and
// end − (count − 1 − i) · step from there on. Block: count, dtype, offset, start, step, end, turn.
ORCHARD_CPU_API int32_t orchard_cpu_range(const double *block, void *out);

// Whole steps of a line, dense: out[i] = start + i · step + i · rest / divisor, cut towards zero, exact. Block: count, dtype, offset; then
// start, step, rest and divisor, each as the lower and the upper 32 bits of an int64. |i · rest| < 2^63.
ORCHARD_CPU_API int32_t orchard_cpu_whole_range(const double *block, void *out);

// Random numbers by place, dense (src/random/philox.ts says which). Block: distribution (0 words, 1 uniform, 2 normal, 3 integers), count,
// dtype, offset, two words of key, four words of counter; then three numbers: low, high − low, high of a uniform one; mean and
// standard deviation of a normal one; or four words of an integer one: the least value and how many there are, the lower word first.
ORCHARD_CPU_API int32_t orchard_cpu_random(const double *block, void *out);

// out[i] = 1 with the probability p[i], else 0. Block: count, dtype, offset, key and counter as above; dtype and offset of p, its
// rank (at most 8), shape and strides.
ORCHARD_CPU_API int32_t orchard_cpu_bernoulli(const double *block, const void *p, void *out);

// Indices of categories by their weights, int64, dense. Block: rows, categories, samples, 1 with or 0 without replacement, offset, key and
// counter as above; dtype and offset of the weights, stride of rows, stride of categories. ORCHARD_CPU_INVALID_ARGUMENT where a weight is
// negative or not finite, or a row has too few above 0; the result is then partly written.
ORCHARD_CPU_API int32_t orchard_cpu_multinomial(const double *block, const void *weights, void *out);

// A permutation of 0 … count − 1 (src/ops/random/randperm.ts). Block: count, dtype, offset, bits of the left and of the right half, whether
// places 0 and 1 change before (1 or 0), 24 keys.
ORCHARD_CPU_API int32_t orchard_cpu_permutation(const double *block, void *out);
// Elementwise operations take a loop: the rank (at most 8), the sizes of the result's axes from the outermost, then for each
// operand, the result last, its offset and its strides along these axes; 0 repeats. No operand may overlap the result.

// Rotary position embedding: src/ops/position/problem.ts says what is computed. Block: dtype (a float), 1 where pairs are neighbours or 0, pairs, elements
// of a row, strides along it of x and out, magnitude, what is added to positions, 1 where there are positions or 0, their dtype (int64 or int32), offsets of
// x, positions and out; then the nest of axes along which positions differ (rank, shape, strides of x, positions, out), that of the others (rank, shape,
// strides of x, out), and the turns of each pair a position. Without positions a row's is its place by the strides of positions.
ORCHARD_CPU_API int32_t orchard_cpu_rope(const double *block, const void *x, const void *positions, void *out);

// Bags of rows of a table. Every block begins with: dtype (a float), dtype of the indices, dtype of the offsets, mode (`bagModes` in
// src/ops/embedding/modes.ts), bags, indices, indices of each bag (or -1: the offsets say where each begins, and one more where the last ends),
// rows, width, the padding row or -1, whether there are factors of the indices; then what each function says. Indices, offsets, which were
// checked, and factors are dense.
//
// out [bags, width] = the sum, mean or largest of the rows of each bag; counts [bags] = how many rows that are (float64 for float64, float32
// for all others); best [bags, width] = the number of the index whose row is the largest, -1 in an empty bag (largest only). Block:
// offsets of the indices, the offsets, the factors and the table, strides of the table.
ORCHARD_CPU_API int32_t orchard_cpu_embedding_bag(const double *block, const void *indices, const void *offsets, const void *factors,
                                                  const void *table, void *out, void *counts, void *best);

// out [rows, width] = for each row the sum of the gradients [bags, width] of the bags that it is in, in the order of the indices. Block:
// offsets of the indices, the offsets, the factors, the gradients, counts and best, strides of the gradients.
ORCHARD_CPU_API int32_t orchard_cpu_embedding_bag_gradient(const double *block, const void *indices, const void *offsets,
                                                           const void *factors, const void *gradients, const void *counts,
                                                           const void *best, void *out);

// out [indices] = the product of each index' row with the gradient of its bag. Block: offsets of the indices, the offsets, the table and the
// gradients, strides of the table, strides of the gradients.
ORCHARD_CPU_API int32_t orchard_cpu_embedding_bag_factors(const double *block, const void *indices, const void *offsets,
                                                          const void *table, const void *gradients, void *out);

// ---------------------------------------------------------------- indexing
//
// A "nest" in a block is a rank (at most 8), a shape, then for each operand its strides along it. Indices are int64 or int32.

// Writes the number (row-major) of the first index that is negative or at least `size`, and is not `except`; -1 where none is. The functions below
// take indices that were checked so. Block: index dtype, index offset, size, except, nest of the index.
ORCHARD_CPU_API int32_t orchard_cpu_find_outside(const double *block, const void *index, double *out);

// Writes the number of the first of dense offsets that is less than the one before it, or more than `size`, or of the first one where
// it is not 0; -1 where none is. Block: dtype, offset, count, size.
ORCHARD_CPU_API int32_t orchard_cpu_find_descent(const double *block, const void *offsets, double *out);

// out = x at the place along an axis that the index names, for each element of the nest. Block: dtype, index dtype, x offset, index
// offset, out offset, x's stride along the axis, nest of x (stride 0 along the axis), index, out.
ORCHARD_CPU_API int32_t orchard_cpu_gather(const double *block, const void *x, const void *index, void *out);

// out = x + the sum, in the order of the indices, of the elements of source whose index names it. Block: dtype, index dtype,
// offsets of x, index, source, out, length of source along the axis, length of x along it, strides along it of x, index,
// source, out, nest over the other axes of x, index, source, out. Floats are summed in float64, integers wrap, bools are or-ed.
ORCHARD_CPU_API int32_t orchard_cpu_scatter_add(const double *block, const void *x, const void *index, const void *source, void *out);

// out = x where column <= row + diagonal (lower 1) or column >= row + diagonal (lower 0), else 0. Block: dtype, x offset, out offset,
// lower, diagonal, columns, x's stride along them, nest of x over the other axes, rows last. out is dense.
ORCHARD_CPU_API int32_t orchard_cpu_triangle(const double *block, const void *x, void *out);

// out[i, c] = 1 where index[i] is c, else 0; int64, dense. Block: index dtype, index offset, out offset, classes, nest of the index.
ORCHARD_CPU_API int32_t orchard_cpu_one_hot(const double *block, const void *index, void *out);

#ifdef __cplusplus
}
#endif

#endif
