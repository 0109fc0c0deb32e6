// Barriers and fences (MSL 6.9.1 and 6.15.3).
//
// Needs: threadgroup_barrier and simdgroup_barrier every family; atomic_thread_fence Metal 3.2.
#ifndef MRT_SYNCHRONIZATION_H
#define MRT_SYNCHRONIZATION_H

#include "current.h"
#include "types.h"

namespace metal {

enum class mem_flags {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16
};

MRT_FUNC constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
MRT_FUNC constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(int(a) & int(b)); }

enum memory_order {
  memory_order_relaxed = 0,
#if __METAL_VERSION__ >= 320
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5
#endif
};

enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

#ifdef MRT_STRICT

void threadgroup_barrier(mem_flags flags);
void simdgroup_barrier(mem_flags flags);
#if __METAL_VERSION__ >= 320
void atomic_thread_fence(mem_flags flags, memory_order order, thread_scope scope = thread_scope_device);
#endif

#else

MRT_COOPERATIVE void threadgroup_barrier(mem_flags flags MRT_SITE) {
  mrt::runtime->threadgroup_barrier(mrt_u32(flags), site.file, site.line);
}

MRT_COOPERATIVE void simdgroup_barrier(mem_flags flags MRT_SITE) {
  mrt::meet(MRT_COLLECTIVE_BARRIER, mrt_u32(flags), "simdgroup_barrier", site);
}

#if __METAL_VERSION__ >= 320
MRT_COOPERATIVE void atomic_thread_fence(mem_flags flags, memory_order order, thread_scope scope = thread_scope_device) {
  mrt::runtime->fence(mrt_u32(flags), order, scope);
}
#endif

#endif

} // namespace metal
#endif
