// The running thread on an NVIDIA GPU; current.h defines the same for the software device. A SIMD-group is a warp.
//
// Lanes that have ended do not take part in a warp's operations (PTX ISA, shfl.sync: "non-exited threads"). So each
// operation names all 32 lanes, and determines which of them are still running.
#ifndef MRT_GPU_CURRENT_H
#define MRT_GPU_CURRENT_H

#include "../../kernel_abi.h"

#define MRT_CALL MRT_FUNC
#define MRT_SITE_ONLY [[maybe_unused]] mrt::Site site = {}
#define MRT_SITE , MRT_SITE_ONLY
#define MRT_BODY(...) {__VA_ARGS__}
#define MRT_UNINSTRUMENTED __attribute__((always_inline))

// A pragma before a loop: arrays stay in registers only if loops over them are unrolled.
#define MRT_LOOP(pragma) _Pragma(pragma)

// With MRT_SPACED, clang converts only between SYCL's address spaces; opencl_local is PTX's number 3 too.
#ifdef MRT_SPACED
#define MRT_SHARED MRT_THREADGROUP
#else
#define MRT_SHARED __attribute__((address_space(3)))
#endif

namespace mrt {

// Only the software device reports source positions.
struct Site {};
struct Meeting {};

constexpr mrt_u32 all_lanes = ~0u;

MRT_FUNC mrt_u32 lane_index() { return mrt_u32(__nvvm_read_ptx_sreg_laneid()); }
MRT_FUNC mrt_u32 active_lanes() { return __nvvm_vote_ballot_sync(all_lanes, true); }

MRT_FUNC bool lies_in(const volatile void *object, MrtSpace space) {
  const void *address = const_cast<const void *>(object);
  if (space == MRT_IN_THREADGROUP) return __nvvm_isspacep_shared(address);
  if (space == MRT_IN_THREAD) return __nvvm_isspacep_local(address);
  return space == MRT_IN_DEVICE && __nvvm_isspacep_global(address);
}

// The host's time limit ends an infinite loop.
MRT_FUNC void wait_turn(mrt_u64, int) {}

// bar.sync also orders the accesses of the threadgroup's threads to device memory (PTX ISA, memory consistency model).
MRT_FUNC void wait_at_barrier(mrt_u32, Site) { __syncthreads(); }
MRT_FUNC void wait_for_lanes(mrt_u32, Site) { __nvvm_bar_warp_sync(all_lanes); }

MRT_FUNC void fence(mrt_u32, mrt_u32 order, mrt_u32 scope) {
  if (order == MRT_ORDER_RELAXED || scope == MRT_SCOPE_THREAD) return;
  if (scope == MRT_SCOPE_SYSTEM) __nvvm_membar_sys();
  else if (scope == MRT_SCOPE_DEVICE) __nvvm_membar_gl();
  else __nvvm_membar_cta();
}

} // namespace mrt

#endif
