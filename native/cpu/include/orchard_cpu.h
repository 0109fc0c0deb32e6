// orchard_cpu.h: the C interface of the dylib `OrchardCPU`, the cpu backend.
//
// Vector kernels, a thread pool, an allocator and matrix products for macOS and Linux. The dylib has no notion of
// tensors: each call passes shapes and strides.
//
// Conventions
//   Status      Functions that can fail return an orchard_cpu_status. Values below 16 are those of orchard_status in
//               orchard.h. orchard_cpu_last_error returns the message on the same thread. On failure no out-parameter
//               is written and, except for ORCHARD_CPU_INTERNAL, no element of the result. C++ exceptions do not leave
//               the dylib.
//   Functions   Operations are functions in a table, which orchard_cpu_tables describes; orchard_cpu_run… calls one by
//               its ordinal. This header names no operation: `ORCHARD_FUNCTION` in native/cpu registers them.
//   Blocks      A block is a struct of doubles, declared by a header in native/cpu: attributes, shapes, strides and
//               offsets. Integers are at most 2^53 and so exact. Offsets and strides are in elements; strides may be
//               0 or negative. Enumerations (operations, dtypes, rules) are indices into the tables' lists of names.
//               A block is followed by the size of each operand in bytes, one double each; it is negative for an
//               omitted operand.
//   Operands    Base addresses of storages, which the call does not keep. The block's offset gives the first element.
//               Nothing outside the described elements is read or written.
//   Trust       Only the addresses and sizes of operands are trusted. A block is rejected with
//               ORCHARD_CPU_INVALID_ARGUMENT if its numbers are invalid, or lead out of an operand or beyond the
//               address space; so are indices in an operand that are out of range. If only an element's value is
//               invalid (an index, a weight), results may be partly written.
//   Threads     Any function may be called from any thread. An operation is complete when its function returns.
//   Order       Results do not depend on the number of threads or their scheduling.
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

#define ORCHARD_CPU_ABI_VERSION 4

// ---------------------------------------------------------------- status and errors

typedef enum orchard_cpu_status {
  ORCHARD_CPU_OK = 0,
  ORCHARD_CPU_INVALID_ARGUMENT = 1, // a code, a size or a name out of range
  ORCHARD_CPU_OUT_OF_MEMORY = 9,    // the system could not allocate memory
  ORCHARD_CPU_UNSUPPORTED = 13,     // not supported by this processor or for this dtype; the message says why
  ORCHARD_CPU_INTERNAL = 15,
  ORCHARD_CPU_MEMORY_LIMIT = 16 // the memory limit is reached; the message has the numbers
} orchard_cpu_status;

// Returns the ORCHARD_CPU_ABI_VERSION that the dylib was compiled with.
ORCHARD_CPU_API int32_t orchard_cpu_abi_version(void);

// Writes the message of the calling thread's last failure as UTF-8 without a terminator, at most `capacity` bytes of
// it. Returns the length of the whole message; 0 if there is none.
ORCHARD_CPU_API int32_t orchard_cpu_last_error(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- settings

// Changes a setting for all threads. Both strings are null-terminated.
//   isa      "baseline", "avx2", "avx512" (x86-64) or "neon" (arm64); "auto": the best that the processor supports
//   threads  an integer of at least 1; "auto": the processors of the affinity mask (the caller must account for quotas
//            of control groups)
//   blas     paths or names of BLAS libraries, one per line; "none": only the dylib's implementations are used. The
//            libraries are tried in this order when linear algebra first needs LAPACK, or on macOS a matrix product.
//            The default is "none", except for Accelerate on macOS
//   products "table": a table for the system chooses, by size, what computes a matrix product; on Linux always the
//            dylib's kernels ("own"). "blas": the BLAS computes every product of float32 and float64, if there is one
ORCHARD_CPU_API int32_t orchard_cpu_configure(const char *name, const char *value);

// Writes JSON as orchard_cpu_last_error writes its message, and returns the length of the whole text:
// { "isa": "avx512", "isas": ["baseline", "avx2", "avx512"], "threads": 8, "blas": null | { "name", "path" },
//   "blasProblems": [] }
// `isas` are the supported instruction sets. Loads the BLAS if it is not loaded yet.
ORCHARD_CPU_API int32_t orchard_cpu_describe(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- memory

// Allocates a block of at least `bytes` bytes, aligned to 64 bytes, uninitialized. out[0] is its address and out[1] its
// context, both as integers. A free block of the same size class is reused; a size class is at most 12.5% (or 64 bytes)
// larger than the request. orchard_cpu_release or orchard_cpu_collected frees the block; the context lives until the
// latter.
ORCHARD_CPU_API int32_t orchard_cpu_allocate(double bytes, double *out);

// Frees a block's memory immediately. The context stays valid, and a second release has no effect.
ORCHARD_CPU_API int32_t orchard_cpu_release(void *context);

// Frees a block, unless orchard_cpu_release already did, and its context. This is the deallocator of an ArrayBuffer
// over the block (JSTypedArrayBytesDeallocator); a garbage collector may call it on any thread.
ORCHARD_CPU_API void orchard_cpu_collected(void *bytes, void *context);

// Returns the address of orchard_cpu_collected.
ORCHARD_CPU_API void *orchard_cpu_collector(void);

// Set limits in bytes. An allocation beyond the memory limit, which counts live bytes, fails with
// ORCHARD_CPU_MEMORY_LIMIT; the default is three quarters of the machine's memory. Free blocks are returned to the
// system, oldest first, if they exceed the cache limit (by default an eighth of the memory), or together with live
// blocks the memory limit.
ORCHARD_CPU_API int32_t orchard_cpu_set_memory_limit(double bytes);
ORCHARD_CPU_API int32_t orchard_cpu_set_cache_limit(double bytes);

// Returns all free blocks to the system.
ORCHARD_CPU_API int32_t orchard_cpu_trim(void);

// For tests: makes the next `count` allocations fail, including those of scratch memory.
ORCHARD_CPU_API int32_t orchard_cpu_fail_allocations(int32_t count);

enum {
  ORCHARD_CPU_STATISTICS = 10 // the number of values that orchard_cpu_statistics writes
};

// Writes, in this order: liveBytes, liveBlocks, cachedBytes, cachedBlocks, peakBytes (of live blocks), allocations,
// cacheHits, refusals, memoryLimit, cacheLimit. Bytes are counted in size classes.
ORCHARD_CPU_API int32_t orchard_cpu_statistics(double *out);

// Sets peakBytes to the current live bytes.
ORCHARD_CPU_API int32_t orchard_cpu_reset_peak(void);

// ---------------------------------------------------------------- operations

// Writes JSON as orchard_cpu_last_error writes its message, and returns the length of the whole text. It describes the
// functions that orchard_cpu_run… call, in the order of their ordinals: the size of their blocks in bytes (without the
// operands' sizes), their number of operands, and whether they take rows. It also has the lists of names to whose
// ordinals blocks refer.
// { "functions": [{ "name": "scan", "blockBytes": 296, "operands": 3, "takesRows": false }, …],
//   "names": { "Scan": "cumsum, cumprod, …" } }
ORCHARD_CPU_API int32_t orchard_cpu_tables(char *buffer, int32_t capacity);

// Run a function on a block and its operands. `block_bytes` includes the operands' sizes that follow the block.
// Addresses beyond the function's number of operands are ignored. The variants differ in the number of operands, since
// each argument makes a call through bun:ffi slower.
ORCHARD_CPU_API int32_t orchard_cpu_run3(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1,
                                         void *o2);
ORCHARD_CPU_API int32_t orchard_cpu_run6(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1,
                                         void *o2, void *o3, void *o4, void *o5);
ORCHARD_CPU_API int32_t orchard_cpu_run16(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1,
                                          void *o2, void *o3, void *o4, void *o5, void *o6, void *o7, void *o8,
                                          void *o9, void *o10, void *o11, void *o12, void *o13, void *o14, void *o15);
ORCHARD_CPU_API int32_t orchard_cpu_run29(int32_t function, const void *block, int32_t block_bytes, void *o0, void *o1,
                                          void *o2, void *o3, void *o4, void *o5, void *o6, void *o7, void *o8,
                                          void *o9, void *o10, void *o11, void *o12, void *o13, void *o14, void *o15,
                                          void *o16, void *o17, void *o18, void *o19, void *o20, void *o21, void *o22,
                                          void *o23, void *o24, void *o25, void *o26, void *o27, void *o28);

// Runs a function that takes rows. The result is the same as calling it for each row in sequence, but all rows are
// divided among the threads at once. `blocks` has each row's block, followed by the sizes of its operands;
// `block_bytes` is the total. `addresses` has the addresses of each row's operands, as integers. A row's result must
// not overlap another row's operands. All rows are checked before any element is written; error messages name the row,
// counted from 0.
ORCHARD_CPU_API int32_t orchard_cpu_run_rows(int32_t function, const void *blocks, int32_t block_bytes, int32_t rows,
                                             const double *addresses);

#ifdef __cplusplus
}
#endif

#endif
