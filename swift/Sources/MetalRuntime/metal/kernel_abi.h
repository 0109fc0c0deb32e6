// The contract between a compiled kernel and the runtime that runs it: plain structs, included by both sides (by the
// kernel inside the prelude of the Metal standard library, hence without any system header and with unusual names
// only).
//
// A kernel library is compiled to a shared object that exports one symbol, `mrt_module`. Each thread of the grid is a
// fiber; threads of one threadgroup run on one operating-system thread for their whole life.
#ifndef MRT_KERNEL_ABI_H
#define MRT_KERNEL_ABI_H

#include "texture_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MRT_ABI_VERSION 5u

typedef __UINT8_TYPE__ mrt_u8;
typedef __UINT32_TYPE__ mrt_u32;
typedef __UINT64_TYPE__ mrt_u64;

struct MrtLaunch; // one dispatch
struct MrtGroup;  // one threadgroup that runs
struct MrtThread; // one thread of the grid that runs

// The part of a launch that a kernel reads. The runtime's struct begins with this one.
typedef struct MrtLaunch {
  void *const *buffers;         // [31] addresses, by buffer index; null: not bound
  const void *const *constants; // by position in MrtModule::constants: the value, or null where undefined
  mrt_u32 threads_per_grid[3];
  mrt_u32 threadgroups_per_grid[3];
  mrt_u32 dispatch_threads_per_threadgroup[3]; // as dispatched
  const MrtTexture *const *textures;           // [128], by texture index; null: not bound
  const MrtSampler *const *samplers;           // [16]
} MrtLaunch;

typedef struct MrtGroup {
  const MrtLaunch *launch;
  mrt_u32 threadgroup_position_in_grid[3];
  mrt_u32 threads_per_threadgroup[3]; // of this threadgroup: smaller at the grid's edge
  mrt_u32 simdgroups_per_threadgroup;
  mrt_u32 dispatch_simdgroups_per_threadgroup;
  void *const *threadgroup_arguments; // [31] addresses of [[threadgroup(n)]] memory
  void *const *threadgroup_variables; // by position in MrtModule::variables: address of the variable's memory
} MrtGroup;

// An array of a thread, in the checked build: which of its bytes the thread has written.
typedef struct MrtArray {
  const char *name;
  const volatile void *begin;
  mrt_u64 size; // bytes
  mrt_u32 element_size;
  mrt_u8 *written; // a bit for each byte
  struct MrtArray *outer;
} MrtArray;

typedef struct MrtThread {
  MrtGroup *group;
  mrt_u32 thread_position_in_grid[3];
  mrt_u32 thread_position_in_threadgroup[3];
  mrt_u32 thread_index_in_threadgroup;
  mrt_u32 thread_index_in_simdgroup;
  mrt_u32 simdgroup_index_in_threadgroup;
  MrtArray *arrays; // the innermost one that is declared here
} MrtThread;

// ---- collective operations: all active lanes of a SIMD-group meet, then `resolve` runs once
typedef struct MrtExchange {
  mrt_u32 active;     // bit i: lane i takes part
  mrt_u32 lane_count; // lanes that exist in this SIMD-group (32, or fewer at the end of a threadgroup)
  mrt_u32 active_count;
  mrt_u8 order[32];    // the active lanes, in the (seeded) order in which a reduction takes them
  void *input[32];     // each lane's operand, null for a lane that is not active
  void *output[32];    // where each lane's result goes
  const void *uniform; // the operation's uniform parameter (delta, mask, lane …) of the lowest active lane
  // Reports that `lane` read lane `from`, which is not active or does not exist.
  void (*inactive_lane)(struct MrtExchange *exchange, mrt_u32 lane, mrt_u32 from);
  // Reports that a parameter that must be uniform differed between lanes.
  void (*nonuniform)(struct MrtExchange *exchange, const char *parameter);
} MrtExchange;

typedef void (*MrtResolve)(MrtExchange *exchange);

enum MrtCollectiveKind {
  MRT_COLLECTIVE_SIMD = 0,   // any set of active lanes
  MRT_COLLECTIVE_QUAD = 1,   // as SIMD; `resolve` processes each group of four lanes separately
  MRT_COLLECTIVE_MATRIX = 2, // all lanes of the SIMD-group, or it is a finding
  MRT_COLLECTIVE_BARRIER = 3 // simdgroup_barrier: `resolve` is null; orders memory inside the SIMD-group
};

// mem_flags, with the values of MSL's enumeration
enum MrtMemoryFlags {
  MRT_MEM_NONE = 0,
  MRT_MEM_DEVICE = 1,
  MRT_MEM_THREADGROUP = 2,
  MRT_MEM_TEXTURE = 4,
  MRT_MEM_THREADGROUP_IMAGEBLOCK = 8,
  MRT_MEM_OBJECT_DATA = 16
};

// memory_order and thread_scope, with the values of MSL's enumerations
enum MrtMemoryOrder {
  MRT_ORDER_RELAXED = 0,
  MRT_ORDER_ACQUIRE = 2,
  MRT_ORDER_RELEASE = 3,
  MRT_ORDER_ACQ_REL = 4,
  MRT_ORDER_SEQ_CST = 5
};
enum MrtThreadScope {
  MRT_SCOPE_THREAD = 0,
  MRT_SCOPE_THREADGROUP = 1,
  MRT_SCOPE_DEVICE = 2,
  MRT_SCOPE_SYSTEM = 3,
  MRT_SCOPE_SIMDGROUP = 4
};

typedef struct MrtCollective {
  mrt_u32 kind;  // MrtCollectiveKind
  mrt_u32 flags; // MrtMemoryFlags of a barrier
  MrtResolve resolve;
  void *input, *output;
  const void *uniform;   // pointer to this lane's copy of the uniform parameter, or null
  mrt_u32 uniform_size;  // compared between lanes; a difference is a finding
  const char *operation; // "simd_sum"
  // __builtin_FILE(), __builtin_LINE() and __builtin_COLUMN() of the caller, taken by default arguments
  const char *file;
  // the column tells two calls on one line apart; in a rewritten text it is no position in the user's source
  mrt_u32 line, column;
} MrtCollective;

// Mathematics in double precision, from the host's libm: a kernel is linked against no library. A float function that
// computes in double and rounds once is within 1 ulp. Filled in by execute/math_table.cpp.
typedef struct MrtMath {
  double (*sin)(double), (*cos)(double), (*tan)(double);
  double (*asin)(double), (*acos)(double), (*atan)(double);
  double (*sinh)(double), (*cosh)(double), (*tanh)(double);
  double (*asinh)(double), (*acosh)(double), (*atanh)(double);
  double (*exp)(double), (*exp2)(double), (*log)(double), (*log2)(double), (*log10)(double);
  double (*atan2)(double, double), (*pow)(double, double), (*fmod)(double, double);
} MrtMath;

enum MrtSpace { MRT_IN_DEVICE = 0, MRT_IN_CONSTANT = 1, MRT_IN_THREADGROUP = 2, MRT_IN_THREAD = 3 };

// The runtime's functions for kernels.
typedef struct MrtRuntime {
  mrt_u32 version;
  void (*threadgroup_barrier)(mrt_u32 flags, const char *file, mrt_u32 line);
  void (*collective)(MrtCollective *collective);
  // Called before each atomic operation (every build): spin-wait detection and, in the checked build, shadow state.
  // `write`: 0 load, 1 store, 2 read-modify-write. `changed` reporting is not needed: the runtime compares values it is
  // given.
  void (*atomic)(const void *address, mrt_u32 size, mrt_u32 write, mrt_u64 seen, const char *file, mrt_u32 line);
  // atomic_thread_fence
  void (*fence)(mrt_u32 flags, mrt_u32 order, mrt_u32 scope);
  // Returns whether an atomic_compare_exchange_weak fails although the value is the expected one, as it may.
  bool (*fails_weakly)(void);
  // 8x8x8 matrix multiply-accumulates, for the counters: once a SIMD-group, inside resolve
  void (*count_matrix)(mrt_u32 multiply_accumulates);
  // thread_elements() was used: code relies on the lane layout
  void (*layout_dependence)(const char *file, mrt_u32 line);
  // Memory accesses of the checked build (the instrumentation's callbacks, defined in mrt/hooks.h, end here), before
  // they happen. `write`: 0 read, 1 write, 2 read and then write. The program counter gives the source line.
  void (*access)(const void *address, mrt_u64 size, mrt_u32 write, const void *program_counter);
  // A copy of `size` bytes, such as that of a struct.
  void (*copy)(const void *destination, const void *source, mrt_u64 size, const void *program_counter);
  // A pointer whose alignment is wrong for its type. `type` is quoted: "'float4'".
  void (*misaligned)(const void *address, mrt_u32 alignment, const char *type, const void *program_counter);
  // A subscript past the end of an array of known size. `type` is the quoted type of the array: "'float[8]'".
  void (*subscript)(mrt_u64 index, const char *type, const void *program_counter);
  const MrtMath *math; // mrt_math_table
  // A pixel outside of its texture: x, y, z, the array's index, the level. It reads as 0, and is not written.
  void (*texture_bounds)(const MrtTexture *texture, const mrt_u32 *position, mrt_u32 write, const char *file,
                         mrt_u32 line);
  // Returns the address space of an object of the running thread: an MrtSpace.
  mrt_u32 (*space_of)(const volatile void *object);
  // A turn of a loop in which the thread waits for memory to change.
  void (*wait_turn)(mrt_u64 turns, const char *file, mrt_u32 line);
} MrtRuntime;

// ---- what a library exports
enum MrtParameterKind {
  MRT_PARAMETER_BUFFER = 0,
  MRT_PARAMETER_THREADGROUP = 1,
  MRT_PARAMETER_BUILTIN = 2,
  MRT_PARAMETER_TEXTURE = 3,
  MRT_PARAMETER_SAMPLER = 4
};

typedef struct MrtParameter {
  const char *name, *type_name;
  mrt_u32 kind, space; // an MrtSpace
  mrt_u32 index;       // of its kind
  // of a texture: its type, in MTLTextureType's numbers, its access (MSL's numbers), the type of its components
  mrt_u32 element_size, element_alignment, data_type;
  mrt_u8 is_const, is_reference;
  mrt_u8 is_coherent; // declared coherent(device)
  // position in constants of [[function_constant(name)]], -1: none, -2: a derived constant (see gate_value)
  int gate;
  bool (*gate_value)(const MrtLaunch *launch); // if gate is -2
  mrt_u32 count;                               // textures or samplers of an array, else 1
} MrtParameter;

typedef struct MrtEntry {
  const char *name;        // host name
  const char *source_name; // the function's name in the source
  const char *file;
  mrt_u32 line;
  void (*run)(MrtThread *thread);
  // Fills `owner` with the compiler's name of the instantiated function: MrtVariable::owner equals it.
  const char *(*identity)(void);
  const MrtParameter *parameters;
  mrt_u32 parameter_count;
  mrt_u32 max_total_threads; // attribute, 0: none
  // 1: SIMD-group operations, 2: matrices, 4: barriers, 8: atomics (an over-estimate is fine)
  mrt_u32 uses;
  // [constant_count]: 0 no, 1 only through is_function_constant_defined or a gate, 2 required
  const mrt_u8 *constants_used;
} MrtEntry;

typedef struct MrtVariable { // a threadgroup variable
  const char *name;
  const char *owner; // the instantiated kernel it belongs to
  mrt_u32 size, alignment;
  const char *file;
  mrt_u32 line;
} MrtVariable;

typedef struct MrtConstant {
  const char *name;
  mrt_u32 index, data_type, size;
} MrtConstant;

typedef struct MrtModule {
  mrt_u32 version;
  mrt_u32 checked; // the build: instrumented or not
  const MrtEntry *entries;
  mrt_u32 entry_count;
  const MrtConstant *constants;
  mrt_u32 constant_count;
  MrtVariable *const *variables;
  mrt_u32 variable_count; // may contain variables of instantiations that are never used
  // The address of the calling operating-system thread's pointer to the thread that runs; the scheduler writes it at
  // each switch.
  MrtThread **(*current)(void);
  void (*bind)(const MrtRuntime *runtime);
} MrtModule;

#ifdef __cplusplus
}
#endif
#endif
