// The contract between a compiled kernel and the runtime that runs it: plain structs, included by both sides. The
// kernel includes it in the prelude of the Metal standard library, so it uses no system header, and only names that do
// not clash.
//
// A kernel library is compiled to a shared object that exports one symbol, `mrt_module`. Each thread of the grid is a
// fiber; all threads of a threadgroup run on one operating-system thread.
#ifndef MRT_KERNEL_ABI_H
#define MRT_KERNEL_ABI_H

#include "texture_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MRT_ABI_VERSION 6u

typedef __UINT8_TYPE__ mrt_u8;
typedef __UINT32_TYPE__ mrt_u32;
typedef __UINT64_TYPE__ mrt_u64;

struct MrtLaunch; // one dispatch
struct MrtGroup;  // a running threadgroup
struct MrtThread; // a running thread of the grid

// The part of a launch that a kernel reads. The runtime's struct begins with this struct.
typedef struct MrtLaunch {
  void *const *buffers;         // [31] addresses, by buffer index; null: not bound
  const void *const *constants; // by position in MrtModule::constants: address of the value, or null if undefined
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
  void *const *threadgroup_variables; // by position in MrtModule::variables: address of the variable
} MrtGroup;

// A thread's array in the checked build, with a record of the bytes that the thread has written.
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

// ---- collective operations: when all active lanes of a SIMD-group have arrived, `resolve` runs once
typedef struct MrtExchange {
  mrt_u32 active;     // bit i: lane i takes part
  mrt_u32 lane_count; // lanes that exist in this SIMD-group (32, or fewer at the end of a threadgroup)
  mrt_u32 active_count;
  mrt_u8 order[32];    // the active lanes, in the (seeded) order in which a reduction combines them
  void *input[32];     // each lane's operand, null for a lane that is not active
  void *output[32];    // where each lane's result goes
  const void *uniform; // the uniform parameter (delta, mask, lane …) of the lowest active lane
  // Reports that `lane` read from lane `from`, which is not active or does not exist.
  void (*inactive_lane)(struct MrtExchange *exchange, mrt_u32 lane, mrt_u32 from);
  // Reports that a parameter that must be uniform differed between lanes.
  void (*nonuniform)(struct MrtExchange *exchange, const char *parameter);
} MrtExchange;

typedef void (*MrtResolve)(MrtExchange *exchange);

enum MrtCollectiveKind {
  MRT_COLLECTIVE_SIMD = 0,   // any set of active lanes
  MRT_COLLECTIVE_QUAD = 1,   // like SIMD; `resolve` processes each group of four lanes separately
  MRT_COLLECTIVE_MATRIX = 2, // all lanes of the SIMD-group must take part; otherwise there is a finding
  MRT_COLLECTIVE_BARRIER = 3 // simdgroup_barrier: `resolve` is null; orders memory within the SIMD-group
};

// mem_flags, with the values of MSL's enumeration.
enum MrtMemoryFlags {
  MRT_MEM_NONE = 0,
  MRT_MEM_DEVICE = 1,
  MRT_MEM_THREADGROUP = 2,
  MRT_MEM_TEXTURE = 4,
  MRT_MEM_THREADGROUP_IMAGEBLOCK = 8,
  MRT_MEM_OBJECT_DATA = 16
};

// memory_order and thread_scope, with the values of MSL's enumerations.
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
  mrt_u32 uniform_size;  // compared between lanes; a difference is reported
  const char *operation; // "simd_sum"
  // __builtin_FILE(), __builtin_LINE() and __builtin_COLUMN() of the caller, passed by default arguments
  const char *file;
  // the column distinguishes two calls on one line; in a rewritten text it is not the position in the user's source
  mrt_u32 line, column;
} MrtCollective;

// Math functions in double precision, from the host's libm: a kernel is not linked against libraries. A float function
// that computes in double and rounds once is within 1 ulp. Initialized by execute/math_table.cpp.
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
  // Called before each atomic operation in every build, to detect spin-waits and, in the checked build, to update the
  // shadow state. `write` is 0 for a load, 1 for a store, 2 for a read-modify-write. The runtime compares the values in
  // `seen` to detect whether the variable has changed.
  void (*atomic)(const void *address, mrt_u32 size, mrt_u32 write, mrt_u64 seen, const char *file, mrt_u32 line);
  // atomic_thread_fence.
  void (*fence)(mrt_u32 flags, mrt_u32 order, mrt_u32 scope);
  // Returns whether an atomic_compare_exchange_weak fails spuriously, although the value is the expected one.
  bool (*fails_weakly)(void);
  // Counts 8x8x8 matrix multiply-accumulates: called once per SIMD-group, inside `resolve`.
  void (*count_matrix)(mrt_u32 multiply_accumulates);
  // Reports that thread_elements() was used: the code relies on the lane layout.
  void (*layout_dependence)(const char *file, mrt_u32 line);
  // Called before a memory access in the checked build, by the callbacks of the instrumentation in mrt/hooks.h. `write`
  // is 0 for a read, 1 for a write, 2 for a read followed by a write. The program counter identifies the source line.
  void (*access)(const void *address, mrt_u64 size, mrt_u32 write, const void *program_counter);
  // Called before a copy of `size` bytes, such as that of a struct.
  void (*copy)(const void *destination, const void *source, mrt_u64 size, const void *program_counter);
  // Reports a pointer that is not aligned for its type. `type` is quoted: "'float4'".
  void (*misaligned)(const void *address, mrt_u32 alignment, const char *type, const void *program_counter);
  // Reports a subscript past the end of an array of known size. `type` is the quoted type of the array: "'float[8]'".
  void (*subscript)(mrt_u64 index, const char *type, const void *program_counter);
  const MrtMath *math; // mrt_math_table
  // Reports a pixel outside its texture: x, y, z, array index, level. It is read as 0, and not written.
  void (*texture_bounds)(const MrtTexture *texture, const mrt_u32 *position, mrt_u32 write, const char *file,
                         mrt_u32 line);
  // Returns the address space of an object of the running thread: an MrtSpace.
  mrt_u32 (*space_of)(const volatile void *object);
  // Reports an iteration of a loop in which the thread waits for memory to change.
  void (*wait_turn)(mrt_u64 turns, const char *file, mrt_u32 line);
  // Reports a mistake with tensors in the checked build: an mrt::TensorProblem with its two numbers (mrt/tensor.h).
  void (*tensor_problem)(mrt_u32 problem, long one, long other, const char *file, mrt_u32 line);
} MrtRuntime;

// ---- exports of a library
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
  // for a texture: its type (MTLTextureType's numbers), its access (MSL's numbers), and the type of its components
  mrt_u32 element_size, element_alignment, data_type;
  mrt_u8 is_const, is_reference;
  mrt_u8 is_coherent; // declared coherent(device)
  // position of [[function_constant(name)]] in the constants; -1: none, -2: a derived constant (see gate_value)
  int gate;
  bool (*gate_value)(const MrtLaunch *launch); // used if gate is -2
  mrt_u32 count;                               // number of textures or samplers in an array, else 1
} MrtParameter;

typedef struct MrtEntry {
  const char *name;        // host name
  const char *source_name; // the function's name in the source
  const char *file;
  mrt_u32 line;
  void (*run)(MrtThread *thread);
  // Sets `owner` to the compiler's name of the instantiated function, which equals MrtVariable::owner.
  const char *(*identity)(void);
  const MrtParameter *parameters;
  mrt_u32 parameter_count;
  mrt_u32 max_total_threads; // attribute, 0: none
  // bits: 1 SIMD-group operations, 2 matrices, 4 barriers, 8 atomics; an over-estimate is allowed
  mrt_u32 uses;
  // [constant_count]: 0 not used, 1 used only in is_function_constant_defined or a gate, 2 required
  const mrt_u8 *constants_used;
} MrtEntry;

typedef struct MrtVariable { // a threadgroup variable
  const char *name;
  const char *owner; // the instantiated kernel to which it belongs
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
  mrt_u32 checked; // whether this build is instrumented
  const MrtEntry *entries;
  mrt_u32 entry_count;
  const MrtConstant *constants;
  mrt_u32 constant_count;
  MrtVariable *const *variables;
  mrt_u32 variable_count; // may include variables of instantiations that are never used
  // Returns the address of the calling operating-system thread's pointer to the running thread, which the scheduler
  // updates at each switch.
  MrtThread **(*current)(void);
  void (*bind)(const MrtRuntime *runtime);
} MrtModule;

#ifdef __cplusplus
}
#endif
#endif
