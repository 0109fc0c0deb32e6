// Atomic functions (MSL 6.15).
#ifndef MRT_ATOMIC_H
#define MRT_ATOMIC_H

#include "current.h"
#include "synchronization.h"
#include "types.h"

namespace metal {

template <typename T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;

template <typename T>
MRT_FUNC T atomic_fetch_add_explicit(volatile atomic<T> *object, T operand, memory_order MRT_SITE) {
  T seen = __atomic_load_n(&object->value, __ATOMIC_RELAXED);
  mrt::runtime->atomic(const_cast<atomic<T> *>(object), sizeof(T), 2, mrt_u64(seen), site.file, mrt_u32(site.line));
  return __atomic_fetch_add(&object->value, operand, __ATOMIC_RELAXED);
}

} // namespace metal
#endif
