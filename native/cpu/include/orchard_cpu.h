// orchard_cpu.h: the C interface of the dylib `OrchardCPU`, the cpu backend.
//
// Vector kernels, a thread pool, an allocator and matrix products for macOS and Linux. It knows nothing of tensors: shapes
// and strides come with each call.
//
// Conventions
//   Status      Functions that can fail return an orchard_cpu_status, whose values are those of orchard_status (orchard.h). What
//               went wrong is read with orchard_cpu_last_error on the same thread. On failure no out-parameter is written
//               and, but for ORCHARD_CPU_INTERNAL, no element of the result. No C++ exception crosses.
//   Blocks      An operation takes `(const double *block, operands …, result)`. The block is an array of doubles: codes, shapes,
//               strides, offsets and attributes, in the order that each function documents. Whole numbers lie below 2^53 and
//               are exact. Offsets and strides count elements, strides may be 0 or negative.
//   Operands    Base addresses of storages, which the call does not keep. The offset in the block leads to the first element.
//               What lies outside the described elements is neither read nor written.
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

#define ORCHARD_CPU_ABI_VERSION 1

// ---------------------------------------------------------------- status and errors

typedef enum orchard_cpu_status {
  ORCHARD_CPU_OK = 0,
  ORCHARD_CPU_INVALID_ARGUMENT = 1,  // a code, a size or a name outside its range
  ORCHARD_CPU_OUT_OF_MEMORY = 9,     // the memory limit or the machine's memory; the message names the figures
  ORCHARD_CPU_UNSUPPORTED = 13,      // this processor or dtype can't; the message says why
  ORCHARD_CPU_INTERNAL = 15
} orchard_cpu_status;

// Element types, in the order of every table.
typedef enum orchard_cpu_dtype {
  ORCHARD_CPU_FLOAT64 = 0,
  ORCHARD_CPU_FLOAT32 = 1,
  ORCHARD_CPU_FLOAT16 = 2,   // IEEE 754 binary16; computed in float32
  ORCHARD_CPU_BFLOAT16 = 3,  // the upper half of a float32; computed in float32
  ORCHARD_CPU_INT64 = 4,
  ORCHARD_CPU_INT32 = 5,
  ORCHARD_CPU_UINT32 = 6,
  ORCHARD_CPU_INT8 = 7,
  ORCHARD_CPU_UINT8 = 8,
  ORCHARD_CPU_BOOL = 9  // a byte, 0 or 1
} orchard_cpu_dtype;

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

// out[i] = (dtype of out) source[i] for i < count. Block: count, source dtype, source offset, out dtype, out offset.
// To a narrower float: rounds to nearest even, NaN stays NaN. Float to integer: truncates; beyond the range the nearer end of it,
// NaN 0. Integer to integer: wraps. To bool: whether it is not 0 (NaN is not). The two may be the same storage, element on element.
ORCHARD_CPU_API int32_t orchard_cpu_convert(const double *block, const void *source, void *out);

// out = alpha a b + beta input for each matrix of a batch: a is m x k, b is k x n, out and input are m x n.
// Block: dtype, m, n, k, 1 where there is an input or else 0, alpha, beta, rank of the batch (at most 6), its shape, then for
// each of a, b, out and (where there is one) input: offset, stride of rows, stride of columns, stride along each axis of the batch.
// Stride 0 repeats an operand; out must not overlap itself or a or b, and may be the very elements of input. Without an input,
// `input` is not read and may be any address; neither is an input with beta 0.
// float64 and float32 go to the BLAS where there is one. float16 and bfloat16 are summed in float32 and rounded once. Integers
// wrap, alpha and beta are whole. bool: ORCHARD_CPU_UNSUPPORTED. k = 0 leaves beta input, or zeros.
ORCHARD_CPU_API int32_t orchard_cpu_matmul(const double *block, const void *a, const void *b, const void *input, void *out);
// Elementwise operations take a loop: the rank (at most 8), the sizes of the result's axes from the outermost, then for each
// operand, the result last, its offset and its strides along these axes; 0 repeats. No operand may overlap the result.

// Reduces axes of a tensor. Block: code (src/ops/reduction/names.ts), input dtype, input offset, out dtype, out offset, offset of
// the indices, parameter (p of a norm, correction of a variance), then the nest of kept axes (rank, shape, strides of the input, strides
// of the results) and that of reduced ones (rank, shape, strides of the input). max and min also write the index of the element
// within the reduced axes to `indices`, an int64 tensor with the strides of `out`; the others leave it alone.
ORCHARD_CPU_API int32_t orchard_cpu_reduce(const double *block, const void *input, void *out, void *indices);

// Functions of a reduction's element x and its result y, of which gradients are made. Block: code (`slopeNames` in
// src/ops/reduction/names.ts), parameter, dtype (a float), offsets of x, y and out, then the nest of out's axes (rank, shape, strides of
// x, strides of y). out is row-major.
ORCHARD_CPU_API int32_t orchard_cpu_slope(const double *block, const void *x, const void *y, void *out);

// out = x where an element's place along an axis is the (int64) index there, else 0. Block: size of the axis, elements of out from one of
// its indices to the next, dtype (a float), offsets of x, the indices and out, then the nest as above.
ORCHARD_CPU_API int32_t orchard_cpu_select_at(const double *block, const void *x, const void *indices, void *out);

// Scans along an axis. Block: code (`scanNames` in src/ops/scan/names.ts), dtype of x (and of a), dtype of out (that of x, or int64
// where that is no float), offsets of x, a and out, length of the axis, its strides in x, a and out, then the other axes: rank (at
// least 1), shape, strides of x, of a, of out. Scans without a leave it alone.
ORCHARD_CPU_API int32_t orchard_cpu_scan(const double *block, const void *x, const void *a, void *out);

// Softmax along an axis, and gradients. Block: code (`softmaxNames` in src/ops/softmax/names.ts), dtype (a float), then as for a scan
// from the offsets on, with y in place of a: the forward's result, which only gradients read.
ORCHARD_CPU_API int32_t orchard_cpu_softmax(const double *block, const void *x, const void *y, void *out);

// The cross entropy of logits with classes. Block: dtype (a float), index dtype, classes, the target that counts for nothing, smoothing, logits
// offset, logits stride along the classes, targets offset, whether there are factors of the classes, their offset and their sum, then a nest
// of all other axes: logits, targets, and what is one number a line. Targets were checked; factors are dense, in the dtype that computes
// (float64 for float64, float32 for all others), which the results have: the losses, the targets' factors, and log Σ exp(logits) as two planes, the largest logits and what is left.
ORCHARD_CPU_API int32_t orchard_cpu_cross_entropy(const double *block, const void *logits, const void *targets, const void *factors,
                                                  void *losses, void *used, void *log_sums);

// Its gradient, of the logits' dtype, from log Σ exp(logits) and the gradient of each loss. Block: as above up to the sum of the factors,
// then offsets of the two and of the result, the result's stride along the classes, and a nest: logits, targets, log_sums, scales, gradient.
ORCHARD_CPU_API int32_t orchard_cpu_cross_entropy_gradient(const double *block, const void *logits, const void *targets,
                                                           const void *factors, const void *log_sums, const void *scales,
                                                           void *gradient);

// The loss of each element, or of all of them times a factor. Block: code (`lossNames` in src/ops/loss/names.ts), dtype (a float), whether
// all are summed, the factor, offsets of x, target, weight, pos_weight and out, then a nest of the five (the last along out's axes, or
// 0). Operands are of the dtype; a sum is of the dtype that computes. A loss without weights gets x in their places, with strides of 0.
ORCHARD_CPU_API int32_t orchard_cpu_loss(const double *block, const void *x, const void *target, const void *weight,
                                         const void *pos_weight, void *out);

// Its gradients of x and of the target, times a factor and the gradient `scale` (of the dtype that computes) of each loss. Block: code, dtype,
// whether the gradient of x and that of the target are wanted, the factor, offsets of x, target, weight, pos_weight, scale and the two
// gradients, then a nest of the seven.
ORCHARD_CPU_API int32_t orchard_cpu_loss_gradient(const double *block, const void *x, const void *target, const void *weight,
                                                  const void *pos_weight, const void *scale, void *gradient, void *target_gradient);

// Normalized rows, and gradients: src/ops/normalization/problem.ts has the formulas and says what each operand is. A block begins with: dtype of
// x, dtype of weight, bias and their gradients, 1 where rows are centred or else 0, eps, length of a row, then the nest of the rows (rank, shape,
// strides of three operands of the shape of x). Then for each of these: 1 where it is there or else 0, offset, stride along a row. Then for weight
// (and bias): 1 or 0, offset, stride. Then 1 or 0 for results that may be missing. Results and statistics are row-major. An operand that is not
// there may be any address.

// x and residual to out, scale, and what there is of sum and mean.
ORCHARD_CPU_API int32_t orchard_cpu_normalize(const double *block, const void *x, const void *residual, const void *weight,
                                              const void *bias, void *out, void *sum, void *mean, void *scale);

// x, gradOut and gradSum to those gradients that are there. The mean is read where rows are centred.
ORCHARD_CPU_API int32_t orchard_cpu_normalize_gradient(const double *block, const void *x, const void *gradOut, const void *gradSum,
                                                       const void *weight, const void *mean, const void *scale, void *gradX,
                                                       void *gradWeight, void *gradBias);

// ---------------------------------------------------------------- sorting
//
// A "nest" in a block is a rank (at most 8), a shape, then for each operand its strides along it.

// The first k elements of each line in order, and their indices (int64). Equal elements keep their order; NaN counts as larger than all
// numbers, 0 and -0 as equal. Block: dtype, offsets of x, values, indices, length of a line, k, 1 for descending or 0, strides along
// the line of x, values, indices, nest over the other axes of x, values, indices.
ORCHARD_CPU_API int32_t orchard_cpu_sort(const double *block, const void *x, void *values, void *indices);

// ---------------------------------------------------------------- attention
//
// src/ops/attention/problem.ts has the formulas and says what each operand is. A block begins with: dtype of q, batch, heads, kvHeads, queries,
// keys, dim, valueDim, scale, softcap (0: none), left and right of the band (infinity: no bound), 1 where it is aligned bottom-right or else
// 0, then dropout: two words of its key, its threshold (0: none), keepScale; then the number of packed sequences (-1: each batch is one), each
// as queryStart, queries, keyStart, keys. Then for each operand in the order of the arguments: 1 where it is there or else 0, bytes of an
// element, offset, strides of batch, head, row and column (0 repeats). An operand that is not there may be any address.

// out and logSumExp.
ORCHARD_CPU_API int32_t orchard_cpu_attention(const double *block, const void *q, const void *k, const void *v, const void *mask,
                                              const void *bias, const void *sinks, const void *slopes, void *out, void *logSumExp);

// Those gradients that are there. gradBias is row-major.
ORCHARD_CPU_API int32_t orchard_cpu_attention_backward(const double *block, const void *q, const void *k, const void *v, const void *mask,
                                                       const void *bias, const void *sinks, const void *slopes, const void *out,
                                                       const void *logSumExp, const void *gradOut, const void *gradLogSumExp,
                                                       void *gradQ, void *gradK, void *gradV, void *gradBias, void *gradSinks);

// Which probabilities dropout keeps: a row-major bool [batch, heads, queries, keys]. Block: these four, dropout and sequences as above, offset.
ORCHARD_CPU_API int32_t orchard_cpu_attention_dropout_mask(const double *block, void *out);

// ---------------------------------------------------------------- optimizers

// A step of an optimizer over up to 9 dense parameters of a dtype, by one of the rules of src/optim/rules.ts. The state, float32 (float64 of float64
// parameters), is a row-major [planes, elements]: what the rule remembers, then the master weights where there are any. What is before may be
// what is after. Block: rule, 1 with or 0 without master weights, dtype of the parameters, dtype of the gradients (float64 of float64 parameters
// only), elements from one plane to the next, offsets of the state before and after, number of parameters; then for each its elements, where they
// begin in a plane, offsets before, of the gradient and after, and nine coefficients. Operands beyond that number may be any address.
ORCHARD_CPU_API int32_t orchard_cpu_update(const double *block, const void *state_before, void *state_after, const void *before0,
                                           const void *before1, const void *before2, const void *before3, const void *before4,
                                           const void *before5, const void *before6, const void *before7, const void *before8,
                                           const void *gradient0, const void *gradient1, const void *gradient2, const void *gradient3,
                                           const void *gradient4, const void *gradient5, const void *gradient6, const void *gradient7,
                                           const void *gradient8, void *after0, void *after1, void *after2, void *after3, void *after4,
                                           void *after5, void *after6, void *after7, void *after8);

// The sums of squares of up to 14 dense gradients of a float dtype: one for each 16,384 adjacent elements of the first, then of the second, and so
// on, float32 (float64 of float64). Block: dtype, number of gradients, offset of the sums; then for each gradient its elements, its offset, and 0.
// Operands beyond that number may be any address.
ORCHARD_CPU_API int32_t orchard_cpu_gradient_squares(const double *block, const void *gradient0, const void *gradient1,
                                                     const void *gradient2, const void *gradient3, const void *gradient4,
                                                     const void *gradient5, const void *gradient6, const void *gradient7,
                                                     const void *gradient8, const void *gradient9, const void *gradient10,
                                                     const void *gradient11, const void *gradient12, const void *gradient13, void *sums);

// Their products with a factor, one float32 (float64 of float64) number, each rounded once. Block: as above, with the offset of the factor, and
// for each gradient that of its product in place of 0.
ORCHARD_CPU_API int32_t orchard_cpu_gradient_scale(const double *block, const void *factor, const void *before0, const void *before1,
                                                   const void *before2, const void *before3, const void *before4, const void *before5,
                                                   const void *before6, const void *before7, const void *before8, const void *before9,
                                                   const void *before10, const void *before11, const void *before12, const void *before13,
                                                   void *after0, void *after1, void *after2, void *after3, void *after4, void *after5,
                                                   void *after6, void *after7, void *after8, void *after9, void *after10, void *after11,
                                                   void *after12, void *after13);

// ---------------------------------------------------------------- counters

// How many scores were computed since the dylib was loaded: out[0] by forward passes, out[1] by backward ones. A tile that is not skipped
// counts whole, with the pairs in it that do not attend and the rows that fill it up.
ORCHARD_CPU_API int32_t orchard_cpu_attention_scores(double *out);

#ifdef __cplusplus
}
#endif

#endif
