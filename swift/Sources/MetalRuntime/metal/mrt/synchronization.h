// Barriers and fences (MSL 6.9.1, 6.15.3).
//
//   function               requires
//   threadgroup_barrier    any family
//   simdgroup_barrier      any family
//   atomic_thread_fence    Metal 3.2
#ifndef MRT_SYNCHRONIZATION_H
#define MRT_SYNCHRONIZATION_H

#include "current.h"

#if !defined(MRT_STRICT) && !defined(MRT_GPU)
namespace mrt {
[[maybe_unused]] MRT_UNINSTRUMENTED static void fence(mrt_u32 flags, mrt_u32 order, mrt_u32 scope) {
  runtime->fence(flags, order, scope);
}
MRT_COOPERATIVE void wait_for_lanes(mrt_u32 flags, Site site) {
  meet({MRT_COLLECTIVE_BARRIER, "simdgroup_barrier", site}, nullptr, nullptr, nullptr, flags);
}
} // namespace mrt
#endif

namespace metal {

enum class mem_flags {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16
};

constexpr MRT_FUNC mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
constexpr MRT_FUNC mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(int(a) & int(b)); }
constexpr MRT_FUNC mem_flags operator^(mem_flags a, mem_flags b) { return mem_flags(int(a) ^ int(b)); }
constexpr MRT_FUNC mem_flags operator~(mem_flags a) { return mem_flags(~int(a)); }

// Atomic operations accept only memory_order_relaxed; the other orders are for fences.
enum memory_order {
  memory_order_relaxed = 0,
#if __METAL_VERSION__ >= 320
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5
#endif
};

// The numbers are AIR's. Scope 3 is the whole system, which MSL does not name but some programs define.
enum thread_scope {
  thread_scope_thread = 0,
  thread_scope_threadgroup = 1,
  thread_scope_device = 2,
  thread_scope_simdgroup = 4
};

MRT_COOPERATIVE void threadgroup_barrier(mem_flags flags MRT_SITE) MRT_BODY(mrt::wait_at_barrier(mrt_u32(flags), site);)

    MRT_COOPERATIVE
    void simdgroup_barrier(mem_flags flags MRT_SITE) MRT_BODY(mrt::wait_for_lanes(mrt_u32(flags), site);)

#if __METAL_VERSION__ >= 320
        MRT_CALL void atomic_thread_fence(mem_flags flags, memory_order order, thread_scope scope = thread_scope_device)
            MRT_BODY(mrt::fence(mrt_u32(flags), mrt_u32(order), mrt_u32(scope));)
#endif

} // namespace metal
#endif
