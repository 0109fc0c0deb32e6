// orchard.h: the C interface of the dylib `OrchardMetal`.
//
// A small general runtime over Metal: it compiles Metal Shading Language, manages buffers, and encodes dispatches. It
// knows nothing of tensors or operations. The same functions work on macOS 14+ (Apple's Metal) and on Linux (the
// software device).
//
// Conventions
//   Status      Every function but orchard_abi_version returns an orchard_status. orchard_last_error returns the error
//               message on the same thread. On failure no out-parameter is written, except the length of a text that
//               did not fit.
//   Handles     Contexts, buffers, libraries and pipelines are opaque uint64_t handles below 2^53 (exact in a
//               JavaScript number) and never 0. A handle contains its kind and a generation. A released handle gives
//               ORCHARD_STALE_HANDLE, and one of another kind ORCHARD_WRONG_KIND. A handle whose context was closed
//               gives ORCHARD_CLOSED, or ORCHARD_STALE_HANDLE once a new context uses its slot. No handle causes a
//               crash.
//   Blocks      A descriptor is one block of bytes: a struct followed by the data of its spans. The struct's first two
//               fields are `size` (sizeof the struct that the caller knows) and `version` (ORCHARD_ABI_VERSION). A span
//               is an offset from the start of the block and a length, both in bytes, so a block contains no pointers;
//               an array in a span is aligned to 8. `block_length` is the number of bytes that may be read. An empty
//               span (length 0) means "none".
//   Results     Structs that the function fills in: the caller sets `size` and `version`, and `block_length` bytes may
//               be written.
//   Text        UTF-8, with a length, without a terminator. A function that returns text writes at most `capacity`
//               bytes and sets `*length` to the length of the whole text. If that exceeds `capacity`, it returns
//               ORCHARD_LIMIT_EXCEEDED, has no effect, and may be called again. (orchard_last_error truncates.)
//   Threads     Any function may be called from any thread. Operations run in the order of the calls.
//   Waiting     Only orchard_buffer_read, orchard_buffer_write, orchard_ticket_wait, orchard_close, and
//               orchard_device_info with ORCHARD_PROBE_CAPABILITIES wait for the device.
//   Order       Operations of a context behave as if each ended before the next began. Those that don't touch the same
//               bytes run concurrently.
#ifndef ORCHARD_H
#define ORCHARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORCHARD_ABI_VERSION 2

// ---------------------------------------------------------------- status and errors

typedef enum orchard_status {
  ORCHARD_OK = 0,
  ORCHARD_INVALID_ARGUMENT = 1,   // a null pointer, a span outside its block, a value outside its range
  ORCHARD_STALE_HANDLE = 2,       // released, or never issued
  ORCHARD_WRONG_KIND = 3,         // a handle, or a binding, of an unexpected kind
  ORCHARD_COMPILE_FAILED = 4,     // the message has every diagnostic, with file and line of the caller's sources
  ORCHARD_FUNCTION_NOT_FOUND = 5, // the message lists the functions of the library
  ORCHARD_CONSTANT_MISSING = 6,   // a function constant is missing, unknown, or of another type
  ORCHARD_BINDING_MISSING = 7,    // the kernel uses an argument that is not bound
  ORCHARD_LIMIT_EXCEEDED = 8,     // a limit of the device, the pipeline, or the caller's text buffer
  ORCHARD_OUT_OF_MEMORY = 9,      // the memory limit, or the device's memory; the message has the numbers
  ORCHARD_DEVICE_FAILED = 10,     // a command buffer failed; the message has the device's reason
  ORCHARD_TIMEOUT = 11,
  ORCHARD_CLOSED = 12,      // the context of this handle was closed
  ORCHARD_UNSUPPORTED = 13, // not supported by this device or system; the message says why
  ORCHARD_IO = 14,          // an error with a file or folder; the message names it
  ORCHARD_INTERNAL = 15
} orchard_status;

// Returns the ORCHARD_ABI_VERSION that the dylib was compiled with.
int32_t orchard_abi_version(void);

// Writes the message of the calling thread's last failure, "" if there is none. The text may be truncated: `*length` is
// the length of the whole message.
int32_t orchard_last_error(char *buffer, uint64_t capacity, uint64_t *length);

// ---------------------------------------------------------------- blocks

typedef struct orchard_span {
  uint32_t offset; // from the start of the block
  uint32_t length; // in bytes; 0: none
} orchard_span;

typedef enum orchard_storage {
  ORCHARD_STORAGE_DEFAULT = 0, // the context's default; for a view: either
  ORCHARD_STORAGE_SHARED = 1,  // the CPU can access it
  ORCHARD_STORAGE_PRIVATE = 2  // only the GPU can access it
} orchard_storage;

// ---------------------------------------------------------------- context

enum {
  ORCHARD_OPEN_EXACT = 1 // allocate exact lengths, never reuse: the software device's checker then sees every bound
};

typedef struct orchard_open_options {
  uint32_t size, version;
  uint32_t default_storage;  // orchard_storage; default: shared
  uint32_t flags;            // ORCHARD_OPEN_*
  uint32_t batch_operations; // operations in a command buffer before it is committed; 0: 40
  uint32_t timeout_ms;       // longest wait inside read, write and close; 0: 60,000
  uint64_t batch_bytes;      // bytes bound in a command buffer before it is committed; 0: 40 MB
  // bytes of free buffers that are kept for reuse; 0: a quarter of the memory limit; 1: none
  uint64_t cache_limit;
  uint64_t memory_limit;           // bytes of live and cached buffers; 0: the device's recommended working set
  orchard_span cache_folder;       // for compiled pipelines; none: nothing is stored on disk
  orchard_span materialize_source; // text of kernels/runtime/materialize.metal; none: strided views can't be copied
  orchard_span label;
  uint64_t batch_work; // estimated operations in a command buffer before it is committed; 0: 2^36
} orchard_open_options;

// Opens the system's default device. `options` may be NULL for all defaults; then block_length is 0.
int32_t orchard_open(const orchard_open_options *options, uint64_t block_length, uint64_t *context);

// Commits open command buffers, waits at most timeout_ms for running ones, and frees everything, including every handle
// of the context. With ORCHARD_TIMEOUT, work is still running and its memory is freed when it ends; the context is
// closed nevertheless.
int32_t orchard_close(uint64_t context);

enum { ORCHARD_PROBE_CAPABILITIES = 1, ORCHARD_PROBE_LIBRARIES = 2 };

// Returns properties of the device as JSON:
// { name, architecture, isSoftware, system, families: ["apple7", …], unifiedMemory, recommendedWorkingSet,
//   maxBufferLength, maxThreadgroupMemory, maxThreadsPerThreadgroup: [w, h, d], maxInlineBytes, maxBuffers,
//   capabilities, productLibrary }
// `probe` is a sum of ORCHARD_PROBE_*; without one, its part is null:
//   ORCHARD_PROBE_CAPABILITIES compiles and runs a probe for each capability, and caches the results;
//     capabilities: { bfloat, simdReduction, simdMatrix, tensorOps: { supported: true|false, reason } }
//   ORCHARD_PROBE_LIBRARIES loads the library that multiplies matrices on an NVIDIA GPU; null on other devices;
//     productLibrary: { supported: true|false, reason: its name, or why there is none }
int32_t orchard_device_info(uint64_t context, uint32_t probe, char *buffer, uint64_t capacity, uint64_t *length);

// ---------------------------------------------------------------- handles of buffers, libraries, pipelines

// Increments the reference count. The handle stays the same.
int32_t orchard_retain(uint64_t handle);

// Decrements the reference count; at 0 the handle becomes stale. Memory that the device still uses is freed when the
// device is done.
int32_t orchard_release(uint64_t handle);

// Like orchard_release, with the signature of a deallocator that a garbage collector calls: `handle` is the handle
// itself instead of a pointer, and `bytes` is ignored. A stale handle is not an error, since the collector can't know.
int32_t orchard_collected(void *bytes, void *handle);

// ---------------------------------------------------------------- buffers

enum {
  ORCHARD_BUFFER_ZERO = 1 // filled with zeros; else the contents are undefined
};

typedef struct orchard_buffer_options {
  uint32_t size, version;
  uint64_t length;  // in bytes, at least 1
  uint32_t storage; // orchard_storage
  uint32_t flags;   // ORCHARD_BUFFER_*
  orchard_span label;
} orchard_buffer_options;

typedef struct orchard_buffer_info {
  uint32_t size, version;
  uint64_t length;    // as requested
  uint64_t allocated; // the size class
  // address of the contents in this process; 0 for private storage. Valid until the release or a change of storage.
  uint64_t contents;
  // the last operation that uses the buffer; 0: none. The contents are final once it is complete.
  uint64_t last_ticket;
  uint32_t storage; // orchard_storage, shared or private
  uint32_t retain_count;
} orchard_buffer_info;

// Creates a buffer: reuses a free one from the cache if one fits, else allocates from the device. Returns
// ORCHARD_OUT_OF_MEMORY over the limit.
int32_t orchard_buffer_create(uint64_t context, const orchard_buffer_options *options, uint64_t block_length,
                              uint64_t *buffer);

// Creates an uninitialized buffer like orchard_buffer_create, in one call. If the label has no bytes, it is "tensor".
// `facts` gets four numbers: the buffer, its `contents` and `last_ticket` as in orchard_buffer_info, and the context's
// live bytes.
int32_t orchard_tensor_create(uint64_t context, uint64_t length, uint32_t storage, const char *label,
                              uint64_t label_length, uint64_t *facts);

// Returns information about a buffer, without waiting.
int32_t orchard_buffer_info_get(uint64_t buffer, orchard_buffer_info *info, uint64_t block_length);

// Commits and waits for the operations that use the buffer, then copies bytes to or from the caller's memory. A private
// buffer is copied through a staging buffer.
int32_t orchard_buffer_read(uint64_t buffer, uint64_t offset, void *destination, uint64_t length);
int32_t orchard_buffer_write(uint64_t buffer, uint64_t offset, const void *source, uint64_t length);

// Operations on the device, in order with dispatches. Each sets `*ticket` (may be NULL) to the command buffer that
// contains it.
int32_t orchard_buffer_fill(uint64_t buffer, uint64_t offset, uint64_t length, uint32_t byte, uint64_t *ticket);
int32_t orchard_buffer_copy(uint64_t source, uint64_t source_offset, uint64_t destination, uint64_t destination_offset,
                            uint64_t length, uint64_t *ticket);

// Asks for another storage mode. If the mode changes, the device copies the contents into a new buffer; the call does
// not wait for that. The handle stays valid, but the address in orchard_buffer_info changes.
int32_t orchard_buffer_hint(uint64_t buffer, uint32_t storage);

// ---------------------------------------------------------------- views: materialize and write back

enum {
  ORCHARD_MAX_RANK = 8,
  ORCHARD_VIEW_CONTIGUOUS = 1 // row-major without gaps; otherwise the strides do not change
};

typedef struct orchard_view {
  uint32_t size, version;
  uint64_t buffer;
  uint64_t offset;                   // in bytes, of the element at index (0, …, 0)
  uint32_t element_size;             // 1, 2, 4 or 8 bytes
  uint32_t rank;                     // 0 … 8
  uint32_t storage;                  // the requested orchard_storage; default: either
  uint32_t flags;                    // ORCHARD_VIEW_*
  uint64_t shape[ORCHARD_MAX_RANK];  // in elements; only the first `rank` are used
  int64_t strides[ORCHARD_MAX_RANK]; // in elements; may be 0 or negative
  orchard_span label;
} orchard_view;

typedef struct orchard_materialized {
  uint32_t size, version;
  uint64_t buffer;   // the view's buffer if it already meets the request; to be released in any case
  uint64_t offset;   // in bytes, of the element at index (0, …, 0)
  uint32_t copies;   // 0 or 1
  uint32_t reserved; // 0
} orchard_materialized;

// Makes the view's elements available in the requested storage and layout. Nothing is copied if they already are;
// otherwise there is exactly one copy on the device: a blit if the layout stays the same, else a kernel.
int32_t orchard_materialize(const orchard_view *view, uint64_t block_length, orchard_materialized *result,
                            uint64_t result_length);

// The inverse: copies row-major elements at `source` back into the view. `*copies` (may be NULL) is 0 if they are the
// view's bytes already. A view in which two elements share bytes gives ORCHARD_INVALID_ARGUMENT.
int32_t orchard_write_back(const orchard_view *view, uint64_t block_length, uint64_t source, uint64_t source_offset,
                           uint32_t *copies);

// ---------------------------------------------------------------- libraries

typedef struct orchard_named_text {
  orchard_span name;
  orchard_span text;
} orchard_named_text;

enum { ORCHARD_MATH_SAFE = 0, ORCHARD_MATH_RELAXED = 1, ORCHARD_MATH_FAST = 2 };
enum { ORCHARD_FUNCTIONS_PRECISE = 0, ORCHARD_FUNCTIONS_FAST = 1 };

typedef struct orchard_library_options {
  uint32_t size, version;
  uint32_t language_version; // major << 16 | minor, as MTLLanguageVersion; 0: 3.1
  uint32_t math_mode;        // ORCHARD_MATH_*
  uint32_t math_functions;   // ORCHARD_FUNCTIONS_*
  uint32_t flags;            // 0
  orchard_span name;         // file name of `source` for messages; none: "program_source"
  orchard_span source;
  orchard_span headers; // orchard_named_text[]: name as included, text
  orchard_span macros;  // orchard_named_text[]: name, value
  orchard_span label;
} orchard_library_options;

// Compiles Metal Shading Language. `#include "name"` of a header in the list is replaced by its text, once per header;
// the name is first looked up relative to the including file, then unchanged. `#include <…>` is left to the compiler.
// Equal sources and options return the existing library.
int32_t orchard_library_create(uint64_t context, const orchard_library_options *options, uint64_t block_length,
                               uint64_t *library);

// JSON: [{ name, constants: [{ name, index, type, required }] }], by name. `type` is MTLDataType's raw value.
int32_t orchard_library_functions(uint64_t library, char *buffer, uint64_t capacity, uint64_t *length);

// ---------------------------------------------------------------- pipelines

typedef struct orchard_constant {
  orchard_span name; // none: identified by index
  uint32_t index;
  // MTLDataType's raw value: bool 53, char 45, uchar 49, short 37, ushort 41, int 29, uint 33, long 81, ulong 85,
  // float 3, half 16, bfloat 121; the vectors of 2, 3, 4 follow each.
  uint32_t type;
  uint8_t value[32]; // as laid out in Metal Shading Language, little-endian
} orchard_constant;

typedef struct orchard_pipeline_options {
  uint32_t size, version;
  orchard_span function;  // name of the kernel
  orchard_span constants; // orchard_constant[]
  uint32_t max_threads;   // largest number of threads per threadgroup that will be used; 0: the compiler's choice
  uint32_t flags;         // 0
  orchard_span label;
} orchard_pipeline_options;

// Equal options return the existing pipeline.
int32_t orchard_pipeline_create(uint64_t library, const orchard_pipeline_options *options, uint64_t block_length,
                                uint64_t *pipeline);

// Returns JSON: { function, maxTotalThreads, threadExecutionWidth, staticThreadgroupBytes,
//                 bindings: [{ name, index, kind: "buffer"|"threadgroup", access: "read"|"write"|"readwrite",
//                              dataSize, alignment, dataType, used }] }
// `dataType` is MTLDataType's raw value of one element, 0 for threadgroup memory.
int32_t orchard_pipeline_info(uint64_t pipeline, char *buffer, uint64_t capacity, uint64_t *length);

// ---------------------------------------------------------------- dispatch

enum { ORCHARD_ACCESS_READ = 1, ORCHARD_ACCESS_WRITE = 2, ORCHARD_ACCESS_READ_WRITE = 3 };
enum { ORCHARD_GRID_THREADS = 0, ORCHARD_GRID_THREADGROUPS = 1 };
enum { ORCHARD_MAX_INLINE_BYTES = 4096 };

typedef struct orchard_binding {
  uint64_t buffer;
  uint64_t offset; // in bytes
  uint64_t length; // in bytes, of the part that the kernel accesses; 0: to the end of the buffer
  uint32_t index;  // [[buffer(index)]]
  uint32_t access; // ORCHARD_ACCESS_*: how the kernel accesses it; determines the order of dispatches
} orchard_binding;

typedef struct orchard_inline {
  uint32_t index;     // [[buffer(index)]]
  uint32_t reserved;  // 0
  orchard_span bytes; // at most ORCHARD_MAX_INLINE_BYTES; the call copies them
} orchard_inline;

typedef struct orchard_threadgroup_memory {
  uint32_t index;  // [[threadgroup(index)]]
  uint32_t length; // in bytes, a multiple of 16
} orchard_threadgroup_memory;

typedef struct orchard_dispatch {
  uint32_t size, version;
  uint64_t pipeline;
  uint32_t grid[3];                // threads (exact: the last threadgroups may be smaller), or threadgroups
  uint32_t grid_kind;              // ORCHARD_GRID_*
  uint32_t threadgroup[3];         // threads per threadgroup
  uint32_t flags;                  // 0
  orchard_span bindings;           // orchard_binding[]
  orchard_span inline_bytes;       // orchard_inline[]
  orchard_span threadgroup_memory; // orchard_threadgroup_memory[]
  orchard_span label;
  uint64_t work; // approximate additions and multiplications of all threads; 0: estimated from threads and bytes
} orchard_dispatch;

// Encodes one kernel. Everything is checked first: a rejected dispatch has no effect. `*ticket` (may be NULL) is set to
// the command buffer that contains it.
int32_t orchard_dispatch_encode(const orchard_dispatch *dispatch, uint64_t block_length, uint64_t *ticket);

// Encodes a list of dispatches in order, as if each were passed to orchard_dispatch_encode. The list has `length`
// bytes: for each dispatch the length of its block (uint64_t), then the block, padded to a multiple of 8 bytes.
// `outcome` gets three numbers: the encoded dispatches, and the command buffers of the first and the last one (0 if
// there is none). If a dispatch is rejected, those before it remain encoded, and its status is returned.
int32_t orchard_dispatches_encode(const void *list, uint64_t length, uint64_t *outcome);

// ---------------------------------------------------------------- tickets
// A ticket is the number of a command buffer, 1, 2, 3, …; tickets complete in order. If a command buffer fails, all its
// operations have failed; later command buffers continue. If the device drops a command buffer because another one
// failed, it runs again on a new queue, and so do those behind it, in order. It fails instead if a repetition could
// give other results, because it reads what a failed one did not write, or may have changed some bytes in place; then
// the report has a note.

enum { ORCHARD_TICKET_OPEN = 0, ORCHARD_TICKET_COMMITTED = 1, ORCHARD_TICKET_COMPLETE = 2 };

// Commits the open command buffer. `*ticket` is set to the last command buffer that has been committed; 0 if there is
// none.
int32_t orchard_commit(uint64_t context, uint64_t *ticket);

// Sets `*state` to an ORCHARD_TICKET_*. Returns ORCHARD_DEVICE_FAILED if the command buffer failed.
int32_t orchard_ticket_poll(uint64_t context, uint64_t ticket, uint32_t *state);

// Waits until the ticket is complete; an open command buffer is committed first. Returns ORCHARD_TIMEOUT after
// `timeout_ms`, and may be called again. Returns ORCHARD_DEVICE_FAILED if the command buffer failed.
int32_t orchard_ticket_wait(uint64_t context, uint64_t ticket, uint32_t timeout_ms);

// Returns the address of three uint64_t in memory that stays readable until the process ends: the highest ticket that
// is complete (failed ones included), the number of failed ones, and the number of replaced queues. Other threads
// update them at any time.
int32_t orchard_completion_counter(uint64_t context, uint64_t *address);

// ---------------------------------------------------------------- statistics and limits

typedef struct orchard_statistics {
  uint32_t size, version;
  uint64_t live_bytes, live_buffers;     // in use by handles or by the device
  uint64_t cached_bytes, cached_buffers; // free, kept for reuse
  uint64_t peak_bytes;                   // highest live_bytes
  uint64_t memory_limit, cache_limit;
  uint64_t allocations, pool_hits; // buffers allocated from the device; buffers reused from the cache
  uint64_t dispatches, command_buffers, encoders, barriers;
  uint64_t copies_storage;    // private ↔ shared, by a blit
  uint64_t copies_contiguous; // strided → contiguous, by a kernel
  uint64_t copies_write_back;
  uint64_t copies_staging;   // through a staging buffer, for reads and writes of private buffers
  uint64_t copies_requested; // orchard_buffer_copy
  uint64_t copied_bytes;     // by all of these copies
  uint64_t libraries_compiled, library_hits;
  uint64_t pipelines_compiled, pipeline_hits;
  uint64_t archive_hits;     // pipelines found in the cache folder
  uint64_t archive_rebuilds; // corrupt archives that were discarded
  uint64_t archive_failures; // archives that could not be written
  uint64_t errors;           // calls of this context that returned something other than ORCHARD_OK
  uint64_t failed_tickets;
  uint64_t queues_replaced;          // queues replaced because they accepted no more work after a failure of the device
  uint64_t command_buffers_repeated; // command buffers repeated on a new queue because another one had failed
  uint64_t largest_work;             // estimated operations of the largest command buffer
  uint64_t archive_writes;           // files of the cache folder that were written
} orchard_statistics;

// Returns counts since orchard_open, and current usage.
int32_t orchard_statistics_get(uint64_t context, orchard_statistics *statistics, uint64_t block_length);

// Frees cached buffers until at most `keep_bytes` are left.
int32_t orchard_trim(uint64_t context, uint64_t keep_bytes);

// ---------------------------------------------------------------- labels, capture, settings, report

// Labels a group of operations in messages, captures and reports. Groups can be nested, and belong to a context.
int32_t orchard_label_push(uint64_t context, const char *label, uint64_t length);
int32_t orchard_label_pop(uint64_t context);

// Captures everything until orchard_capture_end to a .gputrace at `path`. ORCHARD_UNSUPPORTED on Linux, and on macOS
// unless MTL_CAPTURE_ENABLED=1 is set.
int32_t orchard_capture_begin(uint64_t context, const char *path, uint64_t length);
int32_t orchard_capture_end(uint64_t context);

// Changes a setting. On every system: "storage" (shared|private), "cache_limit", "memory_limit", "batch_bytes",
// "batch_operations", "batch_work", "timeout_ms". On the software device also "count" (0|1: counters for each
// dispatch), and its settings "check", "workers", "seed", "denormals", "contract", "fast", "poison", "max_threads", …
// (ORCHARD_UNSUPPORTED on Apple's).
int32_t orchard_configure(uint64_t context, const char *name, uint64_t name_length, const char *value,
                          uint64_t value_length);

// Returns JSON: { notes: ["…"], settings: {…}, findings: [{ kind, severity, message, kernel, file, line, … }],
//                 dispatches: [{ label, kernel, count, counters: {…} }] }
// Only the software device has settings, findings and dispatches; they are null elsewhere. Neither commits nor waits.
// `clear` 1 removes notes, findings and dispatches after they are returned.
int32_t orchard_report(uint64_t context, uint32_t clear, char *buffer, uint64_t capacity, uint64_t *length);

// For tests: makes operations fail. Kinds: "allocate", "library", "pipeline", "command-buffer". After the next `skip`
// occurrences, `count` of them fail; a `count` of 0 cancels this. `code` is MTLCommandBufferError's raw value for
// command buffers (0: internal), and unused otherwise.
int32_t orchard_inject_fault(uint64_t context, const char *kind, uint64_t kind_length, uint32_t skip, uint32_t count,
                             int32_t code);

// ---------------------------------------------------------------- layout
// Natural alignment, 8 bytes at most, without hidden padding: a DataView writes at these offsets.

#ifdef __cplusplus
#define ORCHARD_LAYOUT(condition) static_assert(condition, #condition)
#else
#define ORCHARD_LAYOUT(condition) _Static_assert(condition, #condition)
#endif
ORCHARD_LAYOUT(sizeof(orchard_span) == 8);
ORCHARD_LAYOUT(sizeof(orchard_open_options) == 80 && offsetof(orchard_open_options, cache_folder) == 48);
ORCHARD_LAYOUT(sizeof(orchard_buffer_options) == 32 && offsetof(orchard_buffer_options, label) == 24);
ORCHARD_LAYOUT(sizeof(orchard_buffer_info) == 48 && offsetof(orchard_buffer_info, storage) == 40);
ORCHARD_LAYOUT(sizeof(orchard_view) == 176 && offsetof(orchard_view, shape) == 40 &&
               offsetof(orchard_view, label) == 168);
ORCHARD_LAYOUT(sizeof(orchard_materialized) == 32 && offsetof(orchard_materialized, copies) == 24);
ORCHARD_LAYOUT(sizeof(orchard_named_text) == 16);
ORCHARD_LAYOUT(sizeof(orchard_library_options) == 64 && offsetof(orchard_library_options, name) == 24);
ORCHARD_LAYOUT(sizeof(orchard_constant) == 48 && offsetof(orchard_constant, value) == 16);
ORCHARD_LAYOUT(sizeof(orchard_pipeline_options) == 40 && offsetof(orchard_pipeline_options, label) == 32);
ORCHARD_LAYOUT(sizeof(orchard_binding) == 32 && offsetof(orchard_binding, index) == 24);
ORCHARD_LAYOUT(sizeof(orchard_inline) == 16 && offsetof(orchard_inline, bytes) == 8);
ORCHARD_LAYOUT(sizeof(orchard_threadgroup_memory) == 8);
ORCHARD_LAYOUT(sizeof(orchard_dispatch) == 88 && offsetof(orchard_dispatch, bindings) == 48);
ORCHARD_LAYOUT(sizeof(orchard_statistics) == 8 + 8 * 32 && offsetof(orchard_statistics, live_bytes) == 8);
#undef ORCHARD_LAYOUT

#ifdef __cplusplus
}
#endif

#endif
