// The checker's interface with nothing behind it: findings come only from the executor.
#include "checker.h"

namespace mrt::checker {

void begin_dispatch(const Dispatch &) {}
void end_dispatch(bool) {}
void begin_group(const MrtGroup *, const Region *, size_t) {}
void end_group(const MrtGroup *) {}
void threadgroup_barrier(const MrtGroup *, mrt_u32, const char *, mrt_u32) {}
void simd_barrier(const MrtGroup *, mrt_u32, mrt_u32, mrt_u32) {}
void access(const void *, mrt_u32, mrt_u32, const void *) {}
void misaligned(const void *, mrt_u32, const char *, const char *, mrt_u32, mrt_u32) {}
void subscript(mrt_u64, mrt_u64, const char *, const char *, mrt_u32, mrt_u32) {}
void layout_dependence(const char *, mrt_u32) {}
void atomic_access(const MrtThread *, const void *, mrt_u32, mrt_u32, const char *, mrt_u32) {}
void fence(const MrtThread *, mrt_u32, mrt_u32, mrt_u32) {}
void memory_allocated(const void *, size_t) {}
void memory_freed(const void *, size_t) {}
void memory_written(const void *, size_t) {}
void memory_copied(const void *, const void *, size_t) {}
void memory_fresh(const void *, size_t) {}

} // namespace mrt::checker
