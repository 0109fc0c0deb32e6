// The C interface between the Swift module `Metal` (Linux) and the runtime that compiles and runs Metal Shading
// Language on the CPU. Only the module `Metal` uses it, except for features that Apple's Metal lacks: the checker's
// findings, the counters and the settings.
//
// Conventions: every object is opaque. Every `char **message` receives a malloc'ed UTF-8 string or NULL, to be freed
// with mrt_string_free. Functions that can fail return false or NULL and set the message. All functions may be called
// from any thread.
#ifndef METAL_RUNTIME_H
#define METAL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../metal/tensor_abi.h"
#include "../metal/texture_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MRT_MAX_BUFFERS = 31, MRT_MAX_THREADGROUP_ARGUMENTS = 31, MRT_SIMD_WIDTH = 32 };

void mrt_string_free(char *string);

// ---------------------------------------------------------------- settings (support/settings.cpp)
// Settings are identified by name. Each has an environment variable ORCHARD_METAL_<NAME IN CAPITALS> for its initial
// value. They may be changed at any time between dispatches.
//   check          0|1|report   enables the checker (default 0). If the environment variable is 1 or report, each
//                  finding is printed once to stderr when it is made. If it is 1, a process that would end with status
//                  0 ends with 1 if there was an error.
//   count          0|1   count the memory traffic of every dispatch, for mrt_dispatch_counts_json (default 0)
//   workers        n     threads that run threadgroups (default: those of the affinity mask; the checker uses one)
//   seed           n     seed of the order of threads, SIMD-groups and threadgroups (default 1; 0: ascending order)
//   denormals      keep|flush   float32 subnormals (default keep; half subnormals are always kept)
//   contract       0|1   fuse multiply-add (default 0)
//   fast           auto|0|1     fast formulas: according to the library's math mode (auto), never, always
//   poison         auto|0|1  contents of new device memory: zeros, as Apple documents (0), or NaN patterns (1). The
//                  default auto: zeros; under the checker NaN patterns, by which it recognizes unwritten bytes, and
//                  which are read as zeros. Threadgroup memory, which no device clears, has NaN patterns unless it is
//                  0.
//   max_threads    n     limit on a pipeline's maxTotalThreadsPerThreadgroup (default 1024)
//   timeout_ms     n     a dispatch that runs longer fails with a time-out (default 60000)
//   compile_timeout_ms n a compilation that runs longer is ended, and the library or function fails (default 60000)
//   spin_limit     n     consecutive atomic operations of a thread that read the same value, from which on it counts as
//                        a spin-wait (default 1000000)
//   strict         0|1   the strict type-checking pass at library creation (default 1)
//   cache          path  folder of compiled kernels (default: $XDG_CACHE_HOME or ~/.cache, then orchard/kernels; "" =
//                  off)
//   cache_limit    bytes in that folder over which the least recently used files are removed (default 536870912; 0: no
//                  limit)
//   clang          path  the clang++ that compiles kernels (default: next to the toolchain, then on PATH)
//   headers        path  the folder of the Metal standard library's headers
//   max_findings   n     findings that are kept; others are only counted (default 1000)
//   abort_on_misuse 0|1  print and abort, as Apple's validation layer does, if no handler is set (default 1)
//   memory_limit   n     limit on all device memory in bytes (default 0: three quarters of the machine's memory)
//   execute        0|1   0: dispatches are validated, compiled and completed, but run no threads (default 1)
//   whole          0|1   a library is rejected if the executing pass rejects any of its kernels, however many there are
//                  (default 0: kernels of libraries with more than 16 are compiled when they are first used)
//   gpu_clang      path  the clang++ that compiles kernels for NVIDIA GPUs (default: the one that `orchard toolchain
//                  install --gpu` installs)
//   gpu_compile    0|1   every pipeline of the software device is also compiled for NVIDIA GPUs, which fills the cache
//                  for a machine without a compiler (default 0)
//   gpu_graphs     0|1   launches that repeat on an NVIDIA GPU become CUDA graphs (default 0)
//   cuda           path  the NVIDIA driver's library (default libcuda.so.1)
//   device         software|nvidia|nvidia:N  the device that MTLCreateSystemDefaultDevice returns (default software)
//   after_fault    continue|ignore|discard  what a queue does after a command buffer that failed: runs the next ones
//                  (default), rejects them all, or stops the next one halfway and runs the following ones
bool mrt_setting_set(const char *name, const char *value, char **message);
char *mrt_setting_get(const char *name); // NULL if there is no such setting
char *mrt_settings_json(void);

// ---------------------------------------------------------------- memory (support/memory.cpp)
// Device memory. Every allocation has a separate range of one reserved region, between unmapped guard ranges, so that
// an address identifies its allocation, and an access past the end faults or is found. `length` is exact: for the
// checker, the bytes after it, up to the end of the page, are out of bounds.
void *mrt_memory_allocate(size_t length, const char *label);            // NULL: out of memory
void *mrt_memory_wrap(void *pointer, size_t length, const char *label); // the caller's memory; returns pointer
void mrt_memory_free(void *pointer);
void mrt_memory_set_label(void *pointer, const char *label);
// The host wrote these bytes through an API call (makeBuffer(bytes:), fill, replace): they are initialized.
void mrt_memory_mark_written(void *pointer, size_t length);
// A blit copied these bytes: their initialization state is copied with them.
void mrt_memory_mark_copied(void *destination, const void *source, size_t length);
// Poisons these bytes again and marks them as uninitialized (heap memory made aliasable, or a purgeable buffer that was
// emptied).
void mrt_memory_mark_fresh(void *pointer, size_t length);
// The host may read these bytes now: NaN patterns of `auto` in unwritten bytes are replaced by zeros.
void mrt_memory_settle(void *pointer, size_t length);
// The allocation is reused for `length` bytes, at most its original length; for the checker, bytes beyond are out of
// bounds. If the checker is on, all bytes become uninitialized.
void mrt_memory_reuse(void *pointer, size_t length);
size_t mrt_memory_live_bytes(void);

// ---------------------------------------------------------------- libraries (compile/library.cpp)
typedef struct mrt_library mrt_library;
typedef struct mrt_function mrt_function;

typedef struct mrt_macro {
  const char *name;
  const char *value;
} mrt_macro;

typedef struct mrt_compile_options {
  uint32_t language_version; // MTLLanguageVersion's raw value, 0: newest (3.2 = 0x30002)
  uint32_t math_mode;        // 0 safe, 1 relaxed, 2 fast (MTLMathMode's raw values)
  uint32_t math_functions;   // 0 fast, 1 precise (MTLMathFloatingPointFunctions' raw values)
  const mrt_macro *macros;   // preprocessorMacros
  size_t macro_count;
  uint32_t max_threads; // maxTotalThreadsPerThreadgroup, 0: none
} mrt_compile_options;

// Compiles a library. On failure returns NULL, and `message` has every diagnostic in Metal's form:
// "program_source:LINE:COLUMN: error: …", with the line and a caret. On success `message` may have warnings in the same
// form.
mrt_library *mrt_library_create(const char *source, const mrt_compile_options *options, char **message);
void mrt_library_retain(mrt_library *library);
void mrt_library_release(mrt_library *library);
size_t mrt_library_function_count(const mrt_library *library);
const char *mrt_library_function_name(const mrt_library *library, size_t index);

// A function constant that was set by index or by name. `type` is MTLDataType's raw value.
typedef struct mrt_constant_value {
  const char *name; // NULL: by index
  uint32_t index;
  uint32_t type;
  uint8_t value[32]; // as laid out in MSL, at most 4 x 8 bytes
} mrt_constant_value;

// Returns NULL if the name is unknown, a constant that the function needs is missing, or one has the wrong type; the
// message names it.
mrt_function *mrt_function_create(mrt_library *library, const char *name, const mrt_constant_value *values,
                                  size_t count, char **message);
void mrt_function_retain(mrt_function *function);
void mrt_function_release(mrt_function *function);

typedef enum mrt_argument_kind {
  MRT_ARGUMENT_BUFFER = 0,
  MRT_ARGUMENT_THREADGROUP = 1,
  MRT_ARGUMENT_TEXTURE = 3,
  MRT_ARGUMENT_SAMPLER = 4
} mrt_argument_kind;
typedef enum mrt_argument_space {
  MRT_SPACE_DEVICE = 0,
  MRT_SPACE_CONSTANT = 1,
  MRT_SPACE_THREADGROUP = 2
} mrt_argument_space;

typedef struct mrt_argument {
  const char *name;      // as in the source
  const char *type_name; // of the pointee, as in the source
  uint32_t kind;         // mrt_argument_kind
  uint32_t space;        // mrt_argument_space
  uint32_t index;
  uint32_t element_size; // sizeof the pointee, 0 if it is void
  uint32_t element_alignment;
  uint32_t data_type; // MTLDataType's raw value if the pointee is a scalar or vector, else 1 (struct) or 0
  bool is_const;      // a pointer or reference to const, or `constant`
  bool is_reference;  // T&: the buffer must hold at least one element
  bool is_active;     // false: disabled by a function constant that is false or undefined
  // The number of textures or samplers in an array, else 1. For a texture, element_size is the raw value of its
  // MTLTextureType, and element_alignment is its access: 0 sample, 1 read, 2 write, 3 read and write.
  uint32_t count;
} mrt_argument;

typedef struct mrt_function_constant {
  const char *name;
  uint32_t index;
  uint32_t type; // MTLDataType's raw value
  bool required; // used by the function outside is_function_constant_defined
} mrt_function_constant;

typedef struct mrt_function_info {
  const char *name; // the host name
  const mrt_argument *arguments;
  size_t argument_count;
  const mrt_function_constant *constants;
  size_t constant_count;
  uint32_t static_threadgroup_bytes; // variables declared `threadgroup` in the kernel
  // the minimum of [[max_total_threads_per_threadgroup(n)]], the options and the settings; at most 1024
  uint32_t max_total_threads;
  bool uses_simd;   // SIMD-group operations
  bool uses_matrix; // simdgroup_matrix
} mrt_function_info;

// Valid while the function exists.
const mrt_function_info *mrt_function_info_get(const mrt_function *function);
// Returns the constants that a function of a library uses, for functionConstantsDictionary. Nothing is compiled if each
// constant's index is a literal and its type is one of Metal's names. Valid while the library exists.
const mrt_function_constant *mrt_library_function_constants(const mrt_library *library, const char *name,
                                                            size_t *count);

// Statistics of compilations since the start: how many ran, and how many were found in the cache on disk.
typedef struct mrt_compile_stats {
  uint64_t compiled;
  uint64_t from_disk;
  uint64_t from_memory;
  double seconds;
} mrt_compile_stats;
mrt_compile_stats mrt_compile_stats_get(void);
// Writes the compiled form of the function's library atomically to a folder, and loads it from there, for
// MTLBinaryArchive.
bool mrt_function_archive(const mrt_function *function, const char *folder, char **message);

// ---------------------------------------------------------------- dispatch (execute/dispatch.cpp)
typedef struct mrt_size {
  uint64_t width, height, depth;
} mrt_size;

typedef struct mrt_bound_buffer {
  void *address;     // of the first byte that the kernel receives; NULL: not bound
  size_t length;     // bytes from there to the end of the buffer
  const char *label; // the buffer's label, may be NULL
  bool is_bytes;     // bytes that setBytes copied, which are in the host's memory on every device
} mrt_bound_buffer;

typedef struct mrt_counters {
  // counted if `count` is set or the checker is on
  uint64_t device_bytes_read, device_bytes_written;
  uint64_t threadgroup_bytes_read, threadgroup_bytes_written;
  // scalar multiply-adds inside simdgroup_matrix operations (8x8x8 = 512 each)
  uint64_t matrix_multiply_accumulates;
  uint64_t barriers;        // threadgroup barriers, counted once per threadgroup
  uint64_t simd_operations; // counted once per SIMD-group
  uint64_t atomics;
  uint64_t threads, threadgroups;
  uint64_t cache_lines_read, cache_lines_written; // distinct 128-byte lines of device memory
  // from buffers bound to `constant` parameters, counted once per thread; not included in the device bytes
  uint64_t constant_bytes_read;
} mrt_counters;

typedef struct mrt_dispatch {
  const mrt_function *function;
  const char *label; // debug groups and encoder label, may be NULL
  mrt_bound_buffer buffers[MRT_MAX_BUFFERS];
  uint32_t threadgroup_lengths[MRT_MAX_THREADGROUP_ARGUMENTS];
  mrt_size grid; // threads (exact: the last threadgroups may be smaller)
  mrt_size threads_per_threadgroup;
  // Order among dispatches, for the checker: two dispatches are ordered unless they have the same `epoch`. The encoder
  // takes a new epoch (mrt_epoch_next) at every barrier(scope: .buffers), at encoder boundaries, and after each
  // dispatch of a serial encoder.
  uint64_t epoch;
  // Resources that a memoryBarrier(resources:) has ordered within the epoch.
  const void *const *ordered_resources;
  size_t ordered_resource_count;
  // Allocations that can be reached without a binding (useResource, gpuAddress).
  const void *const *used_resources;
  size_t used_resource_count;
  bool count; // set the counters, which requires the counting build
  // Indexed by binding, null if nothing is bound; MRT_MAX_TEXTURES and MRT_MAX_SAMPLERS entries. The memory of a
  // texture must be among used_resources.
  const MrtTexture *const *textures;
  const MrtSampler *const *samplers;
} mrt_dispatch;

typedef enum mrt_result {
  MRT_RESULT_OK = 0,
  MRT_RESULT_PAGE_FAULT = 1, // an access outside all memory
  MRT_RESULT_TIMEOUT = 2,
  MRT_RESULT_STACK_OVERFLOW = 3,
  MRT_RESULT_INVALID = 4, // the kernel could not be loaded, or trapped
  MRT_RESULT_OUT_OF_MEMORY = 5
} mrt_result;

uint64_t mrt_epoch_next(void);
// Runs the dispatch to its end, on the calling thread and the workers. Several threads may dispatch at once.
mrt_result mrt_dispatch_run(const mrt_dispatch *dispatch, mrt_counters *counters, char **message);

// Returns the counters of dispatches that ran while the setting `count` was on, summed by label and kernel, in order of
// first occurrence: [{label, kernel, count, counters: {…}}].
char *mrt_dispatch_counts_json(bool clear);

// ---------------------------------------------------------------- NVIDIA GPUs (gpu/)
// The driver is loaded by the first of these calls. GPUs are numbered from 0. Work is issued to a stream of the calling
// thread, on which it runs in order; mrt_gpu_finish waits for it. After some errors a GPU is lost to the process: then
// every call fails.
typedef struct mrt_gpu_info {
  const char *name;
  uint64_t memory; // bytes
  uint32_t major, minor;
  bool integrated; // shares the processor's memory
} mrt_gpu_info;

typedef struct mrt_gpu_mark mrt_gpu_mark;

size_t mrt_gpu_count(char **message); // if it is 0, `message` says why
bool mrt_gpu_info_get(uint32_t gpu, mrt_gpu_info *info);
// Compiles a function for GPUs without loading it, which needs no GPU.
bool mrt_gpu_compile(const mrt_function *function, char **message);
// Compiles and loads a function.
bool mrt_gpu_prepare(uint32_t gpu, const mrt_function *function, char **message);
// Shared memory, which the host can access at any time, or private memory, which only the GPU can access. NULL: out of
// memory. New memory contains zeros.
void *mrt_gpu_memory_allocate(uint32_t gpu, size_t length, bool is_private);
// Makes the caller's memory accessible to the GPU, at the same address.
bool mrt_gpu_memory_wrap(uint32_t gpu, void *pointer, size_t length);
void mrt_gpu_memory_free(void *pointer);
size_t mrt_gpu_memory_live_bytes(uint32_t gpu);
// Buffers must be memory of the GPU; setBytes's bytes are copied before the call returns. Textures are not supported.
// The fields for the checker have no effect. The launch is recorded, and issued with later ones, or by the calls below
// at the latest, which also report its errors.
mrt_result mrt_gpu_dispatch(uint32_t gpu, const mrt_dispatch *dispatch, char **message);
mrt_result mrt_gpu_copy(uint32_t gpu, void *destination, const void *source, size_t length, char **message);
mrt_result mrt_gpu_fill(uint32_t gpu, void *destination, uint8_t value, size_t length, char **message);
// Loads the library that runs the products of kernels/matmul/library.metal on GPUs: NVIDIA's cuBLASLt, from the path in
// ORCHARD_CUBLAS ("none" disables it). `text` receives its name. If it can't be loaded, returns false, and `text`
// receives the reason.
bool mrt_gpu_product_library(char **text);
// Waits for the calling thread's work, at most for the setting `timeout_ms`.
mrt_result mrt_gpu_finish(uint32_t gpu, char **message);
// Marks the end of the work that the calling thread has issued so far.
mrt_result mrt_gpu_mark_create(uint32_t gpu, mrt_gpu_mark **mark, char **message);
// Waits for a mark, for at most that many microseconds. Returns false if the work has not ended. Otherwise sets the
// result and frees the mark. Work that runs longer than `timeout_ms` after the first call for its mark has failed. Only
// the thread that created the mark may call it.
bool mrt_gpu_mark_reached(uint32_t gpu, mrt_gpu_mark *mark, uint32_t microseconds, mrt_result *result, char **message);

// ---------------------------------------------------------------- findings (support/findings.cpp)
// All findings of the checker, the encoders and the command buffers. The kinds are:
//   threadgroup-race device-race dispatch-race barrier-missing-flag barrier-divergence out-of-bounds uninitialized-read
//   inactive-lane constant-write misaligned nonuniform-matrix nonuniform-argument spin-wait page-fault timeout
//   stack-overflow layout-dependence absent-argument const-alias misuse
typedef struct mrt_finding {
  const char *kind;
  const char *severity;                           // "error" or "note"
  const char *message;                            // a complete sentence: the kernel, the line, the threads, the buffer
  const char *kernel;                             // or NULL
  const char *file;                               // or NULL
  uint32_t line, column;                          // 0: unknown
  uint32_t threadgroup[3], thread[3];             // position in the grid, and in the threadgroup
  uint32_t other_threadgroup[3], other_thread[3]; // of a race; else zero
  uint32_t other_line;
  const char *buffer; // label or "threadgroup variable 'name'" or NULL
  uint64_t offset;    // bytes into the buffer
  uint64_t count;     // occurrences: findings with the same kind, severity, kernel, lines and buffer are merged
} mrt_finding;

// Returns the names of the running kernels, as "'a', 'b'"; empty if there is none.
char *mrt_running_kernels(void);

void mrt_finding_add(const mrt_finding *finding);
size_t mrt_findings_count(void);     // of severity "error"; merged findings count once
char *mrt_findings_json(bool clear); // [{kind, severity, message, …}], in order of first occurrence

// Reports misuse of the host interface: adds a finding, then calls the handler. Without a handler, prints "-[Class
// method]:line: failed assertion `…'" as Apple's validation layer does, and aborts. If the handler returns, the misused
// call has no effect.
typedef void (*mrt_misuse_handler)(const char *sentence, void *context);
void mrt_misuse(const char *sentence);
void mrt_misuse_set_handler(mrt_misuse_handler handler, void *context);

// ---------------------------------------------------------------- faults (support/settings.cpp)
// Injected failures, for tests. The kinds "allocate", "library", "dynamic-library", "pipeline", "queue", "counters"
// and "command-buffer" are counted by the module `Metal`. After the next `skip` occurrences, `count` of them fail. For
// command buffers, `code` is MTLCommandBufferError's raw value.
void mrt_fault_inject(const char *kind, uint32_t skip, uint32_t count, int32_t code);
// Returns true if this occurrence must fail; `code` receives the injected code.
bool mrt_fault_take(const char *kind, int32_t *code);

#ifdef __cplusplus
}
#endif
#endif
