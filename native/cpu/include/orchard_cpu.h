// orchard_cpu.h: the C interface of the dylib `OrchardCPU`, the cpu backend.
//
// Vector kernels, a thread pool, an allocator and matrix products for macOS and Linux. It knows nothing of tensors:
// shapes and strides come with each call.
//
// Conventions
//   Status      Functions that can fail return an orchard_cpu_status, whose values below 16 are those of
//               orchard_status (orchard.h). The message is read with orchard_cpu_last_error on the same thread. On
//               failure no out-parameter is written and, but for ORCHARD_CPU_INTERNAL, no element of the result. No C++
//               exception crosses.
//   Functions   An operation is a function of a table, which orchard_cpu_tables describes; orchard_cpu_run… calls one
//               by its ordinal. Nothing in this header names an operation: `ORCHARD_FUNCTION` in native/cpu does.
//   Blocks      A block is a struct of doubles, which a header in native/cpu declares: attributes, shapes, strides and
//               offsets. Whole numbers lie below 2^53 and are exact. Offsets and strides count elements; strides may be
//               0 or negative. Names (of operations, dtypes, rules) are ordinals of the tables' lists. Behind a block
//               lie the bytes of each operand, one double each, negative for an operand that is left out.
//   Operands    Base addresses of storages, which the call does not keep. The offset in the block leads to the first
//               element. What lies outside the described elements is neither read nor written.
//   Trust       A call is believed what lies where, and nothing else: numbers of a block that lead out of an operand,
//               that no memory could hold or that mean nothing are ORCHARD_CPU_INVALID_ARGUMENT, and so are indices out
//               of range in an operand. Where only elements show it (an index, a weight), results may be partly
//               written.
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

#define ORCHARD_CPU_ABI_VERSION 4

// ---------------------------------------------------------------- status and errors

typedef enum orchard_cpu_status {
  ORCHARD_CPU_OK = 0,
  ORCHARD_CPU_INVALID_ARGUMENT = 1, // a code, a size or a name outside its range
  ORCHARD_CPU_OUT_OF_MEMORY = 9,    // the system gives no more
  ORCHARD_CPU_UNSUPPORTED = 13,     // this processor or dtype can't; the message says why
  ORCHARD_CPU_INTERNAL = 15,
  ORCHARD_CPU_MEMORY_LIMIT = 16 // the memory limit allows no more; the message names the figures
} orchard_cpu_status;

// Returns ORCHARD_CPU_ABI_VERSION of the dylib.
ORCHARD_CPU_API int32_t orchard_cpu_abi_version(void);

// Writes the message of the calling thread's last failure, UTF-8 without a terminator, at most `capacity` bytes of it.
// Returns its whole length; 0 where there is none.
ORCHARD_CPU_API int32_t orchard_cpu_last_error(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- settings

// Changes a setting from now on, for every thread. Both texts end with a 0.
//   isa      "baseline", "avx2", "avx512" (x86-64) or "neon" (arm64); "auto": the best that the processor has
//   threads  a whole number of at least 1; "auto": the processors of the affinity mask (quotas of control
//            groups are the caller's to know)
//   blas     paths or names of BLAS libraries, one a line, tried in this order when linear algebra first wants the
//            LAPACK that comes in one, on macOS also products; "none": the dylib's own code serves. At first: "none",
//            but for Accelerate on macOS
//   products "table": what computes a matrix product is decided by a table of the system, by size; on Linux it is
//            always the dylib's own ("own"). "blas": every product of float32 and float64 goes to the BLAS where there
//            is one
ORCHARD_CPU_API int32_t orchard_cpu_configure(const char *name, const char *value);

// Writes JSON as orchard_cpu_last_error writes its message, and returns the whole length:
// { "isa": "avx512", "isas": ["baseline", "avx2", "avx512"], "threads": 8, "blas": null | { "name", "path" },
// "blasProblems": [] } `isas` are those that the processor can run. Looks for the BLAS where that was not done yet.
ORCHARD_CPU_API int32_t orchard_cpu_describe(char *buffer, int32_t capacity);

// ---------------------------------------------------------------- memory

// Takes a block of at least `bytes` bytes, aligned to 64, its contents undefined. out[0] is its address, out[1] its
// context, both whole numbers. A freed block of the same size class is reused; a class is at most 12.5% larger than
// what was asked for (or 64 bytes). The block is given back by orchard_cpu_release or orchard_cpu_collected; its
// context lives until the latter.
ORCHARD_CPU_API int32_t orchard_cpu_allocate(double bytes, double *out);

// Gives the bytes of a block back at once. The context stays valid, and a second release does nothing.
ORCHARD_CPU_API int32_t orchard_cpu_release(void *context);

// Gives a block back, where orchard_cpu_release did not, and frees its context: the deallocator of an ArrayBuffer
// over the block (JSTypedArrayBytesDeallocator), which a collector may call on any thread.
ORCHARD_CPU_API void orchard_cpu_collected(void *bytes, void *context);

// The address of orchard_cpu_collected.
ORCHARD_CPU_API void *orchard_cpu_collector(void);

// Limits in bytes. Allocations beyond the memory limit (live bytes; at first three quarters of the machine's memory)
// are ORCHARD_CPU_MEMORY_LIMIT. Free blocks go back to the system, the oldest first, beyond the cache limit (at first
// an eighth), and where with live ones they would be beyond the memory limit.
ORCHARD_CPU_API int32_t orchard_cpu_set_memory_limit(double bytes);
ORCHARD_CPU_API int32_t orchard_cpu_set_cache_limit(double bytes);

// Gives every free block back to the system.
ORCHARD_CPU_API int32_t orchard_cpu_trim(void);

// For tests: the next `count` allocations (scratch memory of operations included) are refused.
ORCHARD_CPU_API int32_t orchard_cpu_fail_allocations(int32_t count);

enum {
  ORCHARD_CPU_STATISTICS = 10 // numbers that orchard_cpu_statistics writes
};

// Writes, in this order: liveBytes, liveBlocks, cachedBytes, cachedBlocks, peakBytes (of live ones), allocations,
// cacheHits, refusals, memoryLimit, cacheLimit. Bytes are those of the size classes.
ORCHARD_CPU_API int32_t orchard_cpu_statistics(double *out);

// Starts peakBytes anew, from what is live now.
ORCHARD_CPU_API int32_t orchard_cpu_reset_peak(void);

// ---------------------------------------------------------------- operations

// Writes JSON as orchard_cpu_last_error writes its message, and returns the whole length: the functions that
// orchard_cpu_run… call, in the order of their ordinals, with the bytes of their blocks (without those of operands),
// their number of operands and whether they take rows; and the lists of names to which blocks refer by ordinal.
// { "functions": [{ "name": "scan", "blockBytes": 296, "operands": 3, "takesRows": false }, …],
//   "names": { "Scan": "cumsum, cumprod, …" } }
ORCHARD_CPU_API int32_t orchard_cpu_tables(char *buffer, int32_t capacity);

// Runs a function: its block, the bytes of the block with those of the operands behind it, and as many operands as the
// function has; those beyond may be any address. They differ in the room for operands: a call through bun:ffi costs
// more with each argument.
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

// Runs a function that takes rows: what calls of it, one after the other, would compute, divided among the threads as
// one piece of work. `blocks` has the block of each row, and behind each the bytes of its operands; `block_bytes` are
// those of all. `addresses` has those of each row's operands, whole numbers. No row's result may overlap an operand of
// another row. All rows are checked before any element is written; the message names the row, from 0 on.
ORCHARD_CPU_API int32_t orchard_cpu_run_rows(int32_t function, const void *blocks, int32_t block_bytes, int32_t rows,
                                             const double *addresses);

#ifdef __cplusplus
}
#endif

#endif
