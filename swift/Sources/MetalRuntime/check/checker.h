// The events that the executor sends to the checker, in the order in which they happen. From them the checker tracks
// memory, threads and barriers, and adds what it detects to the findings.
//
// Checked and counted dispatches run one at a time on one operating-system thread: the executor holds a lock from
// begin_dispatch to end_dispatch. The functions for memory at the end may be called by any thread at any time.
#pragma once

#include "include/metal_runtime.h"
#include "metal/kernel_abi.h"

#include <cstddef>
#include <cstdint>

namespace mrt {

// The thread of a kernel that runs on this operating-system thread; null outside kernels. The scheduler updates it at
// each switch.
extern __thread MrtThread *current_thread __attribute__((tls_model("initial-exec")));

namespace checker {

// A piece of threadgroup memory: a variable or a [[threadgroup(n)]] argument. Poisoned bytes surround each piece.
struct Region {
  const void *address;
  size_t size;
  const char *name;
};

struct Dispatch {
  const mrt_dispatch *request;
  const MrtLaunch *launch; // equals group->launch of all its threadgroups
  const MrtModule *module;
  const MrtEntry *entry;
  void **addresses;       // MrtLaunch::buffers; the checker may replace the addresses of arguments (views.h)
  mrt_counters *counters; // the checker adds bytes and cache lines, unless it is null; the executor counts the rest
  bool detect;            // false: count only
  uint64_t timeout_ms;
};

void begin_dispatch(const Dispatch &dispatch);
// Returns the original address of memory that a kernel accesses through a view (views.h).
const void *original_address(const void *address);
// Reports the findings so far, so that they come before the report of a failed dispatch.
void hand_over();
// Called after all threadgroups have run, on their thread.
void end_of_groups();
// Returns whether this process is a trial of some values (trials.h), and ends such a process if its dispatch fails.
bool is_trial();
void give_up_trial();
void end_dispatch(bool completed); // false: it failed, and its last threadgroup has no end_group

void begin_group(const MrtGroup *group, const Region *regions, size_t count); // regions: in ascending order
void end_group(const MrtGroup *group);

// The moment (race.h) of the thread that runs on this operating-system thread in a checked dispatch. Where it is 0, no
// thread of a kernel runs, and the checker ignores accesses. The scheduler sets it at each switch from `moments`, which
// has one for each thread of the threadgroup.
extern __thread mrt_u32 running_moment __attribute__((tls_model("initial-exec")));
const mrt_u32 *moments();

// Called once when all threads that have not ended are waiting at the barrier, before they continue.
void threadgroup_barrier(const MrtGroup *group, mrt_u32 flags, const char *file, mrt_u32 line);
// The lanes in `lanes` (bit i: lane i) are waiting at a simdgroup_barrier (`flags`), or at another collective
// operation, which orders no memory (MRT_MEM_NONE).
void simd_barrier(const MrtGroup *group, mrt_u32 simdgroup, mrt_u32 lanes, mrt_u32 flags);

// Called through the runtime's table, only by instrumented kernels, on the kernel's stack (see MrtRuntime).
void access(const void *address, mrt_u64 size, mrt_u32 write, const void *program_counter);
void copy(const void *destination, const void *source, mrt_u64 size, const void *program_counter);
void misaligned(const void *address, mrt_u32 alignment, const char *type, const void *program_counter);
void subscript(mrt_u64 index, const char *type, const void *program_counter);
void layout_dependence(const char *file, mrt_u32 line);
void tensor_problem(mrt_u32 problem, long one, long other, const char *file, mrt_u32 line);
void texture_bounds(const MrtTexture *texture, const mrt_u32 *position, mrt_u32 write, const char *file, mrt_u32 line);
// Called by the executor for atomic accesses in a checked dispatch. `write` is 0 for a load, 1 for a store, 2 for a
// read-modify-write.
void atomic_access(const void *address, mrt_u32 size, mrt_u32 write, const char *file, mrt_u32 line);
void fence(const MrtThread *thread, mrt_u32 flags, mrt_u32 order, mrt_u32 scope);

// ---- memory; `memory.h` finds the allocation of an address
void memory_allocated(const void *address, size_t length);
void memory_freed(const void *address, size_t length);
void memory_written(const void *address, size_t length);
void memory_copied(const void *destination, const void *source, size_t length);
void memory_fresh(const void *address, size_t length);
// Replaces bytes that were never written, recognized by their poison pattern, by zeros.
void memory_settled(void *address, size_t length);

} // namespace checker
} // namespace mrt
