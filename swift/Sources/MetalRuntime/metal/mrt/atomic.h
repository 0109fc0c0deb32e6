// Atomic functions (MSL 6.15): relaxed, on device and threadgroup memory.
//
//   type            device                              threadgroup          requires
//   atomic_int      all functions                       all functions        any family
//   atomic_uint     all functions                       all functions        any family
//   atomic_bool     load, store, exchange, compare      the same             Metal 2.4
//   atomic_float    the same, fetch_add, fetch_sub      none                 Apple7, Mac2; Metal 3
//   atomic_ulong    atomic_min, atomic_max              none                 Apple8 with Mac2, Apple9
#ifndef MRT_ATOMIC_H
#define MRT_ATOMIC_H

#include "lanes.h"
#include "synchronization.h"

namespace mrt {

// The operations on an atomic<T>, and its representation in memory.
enum { atomic_exchanges = 1, atomic_adds = 2, atomic_combines = 4, atomic_in_threadgroup = 8 };
template <typename T> struct AtomicType {
  static constexpr MRT_CONSTANT int can = 0;
  typedef T storage;
};
#define MRT_ATOMIC_TYPE(T, S, C)                                                                                       \
  template <> struct AtomicType<T> {                                                                                   \
    static constexpr MRT_CONSTANT int can = C;                                                                         \
    typedef S storage;                                                                                                 \
  };
MRT_ATOMIC_TYPE(int, int, atomic_exchanges | atomic_adds | atomic_combines | atomic_in_threadgroup)
MRT_ATOMIC_TYPE(uint, uint, atomic_exchanges | atomic_adds | atomic_combines | atomic_in_threadgroup)
MRT_ATOMIC_TYPE(bool, uint, atomic_exchanges | atomic_in_threadgroup)
MRT_ATOMIC_TYPE(float, uint, atomic_exchanges | atomic_adds)
#undef MRT_ATOMIC_TYPE
template <typename T> using atomic_storage = typename AtomicType<T>::storage;

template <typename T, int what> constexpr MRT_CONSTANT bool atomic_can = (AtomicType<T>::can & (what)) == (what);
template <typename T, int what> using if_atomic_can = metal::enable_if_t<atomic_can<T, what>, int>;
// The operand may have any type that converts to the atomic's type.
template <typename T, typename U, int what>
using if_atomic_takes = metal::enable_if_t<(atomic_can<T, what>) && __is_convertible_to(U, T), int>;

} // namespace mrt

namespace metal {

// Accessed only through the functions below, never copied as a whole.
template <typename T, typename = void> struct atomic {
  atomic() = default;
  atomic(const atomic &) = delete;
  atomic &operator=(const atomic &) = delete;
  mrt::atomic_storage<T> bits;
};

template <typename T> using _atomic = atomic<T>; // Apple's internal name for it, which programs also use
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;

} // namespace metal

#ifndef MRT_STRICT
namespace mrt {

struct Difference {
  template <typename E> static E of(E a, E b) { return E(a - b); }
};
struct Replacement {
  template <typename E> static E of(E, E b) { return b; }
};

template <typename T> MRT_FUNC atomic_storage<T> to_bits(T value) {
  if constexpr (__is_same(T, float)) return __builtin_bit_cast(atomic_storage<T>, value);
  else return atomic_storage<T>(value);
}
template <typename T> MRT_FUNC T from_bits(atomic_storage<T> bits) {
  if constexpr (__is_same(T, float)) return __builtin_bit_cast(T, bits);
  else return T(bits);
}

} // namespace mrt

#ifdef MRT_GPU
#include "gpu/atomic.h"
#else
namespace mrt {

enum AtomicAccess { atomic_reads = 0, atomic_writes = 1, atomic_updates = 2 };

// Notifies the runtime of the next operation and of the value that the thread reads: a thread that reads the same value
// many times is spinning. Returns that value.
template <typename T>
MRT_UNINSTRUMENTED atomic_storage<T> announce(const volatile metal::atomic<T> *object, AtomicAccess access, Site site) {
  const atomic_storage<T> seen = __atomic_load_n(&object->bits, __ATOMIC_RELAXED);
  runtime->atomic(const_cast<const metal::atomic<T> *>(object), sizeof(seen), access, mrt_u64(seen), site.file,
                  mrt_u32(site.line));
  return seen;
}

template <typename Operation, typename T>
MRT_FUNC T atomic_update(volatile metal::atomic<T> *object, T operand, Site site) {
  atomic_storage<T> seen = announce(object, atomic_updates, site);
  while (!__atomic_compare_exchange_n(&object->bits, &seen,
                                      to_bits<T>(Operation::template of<T>(from_bits<T>(seen), operand)), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return from_bits<T>(seen);
}

template <typename T> MRT_FUNC T atomic_load(const volatile metal::atomic<T> *object, Site site) {
  return from_bits<T>(announce(object, atomic_reads, site));
}

template <typename T> MRT_FUNC void atomic_store(volatile metal::atomic<T> *object, T desired, Site site) {
  announce(object, atomic_writes, site);
  __atomic_store_n(&object->bits, to_bits<T>(desired), __ATOMIC_RELAXED);
}

template <typename T>
MRT_FUNC bool atomic_compare(volatile metal::atomic<T> *object, T *expected, T desired, Site site) {
  atomic_storage<T> seen = announce(object, atomic_updates, site);
  if (seen == to_bits<T>(*expected) && runtime->fails_weakly()) return false;
  seen = to_bits<T>(*expected);
  const bool swapped =
      __atomic_compare_exchange_n(&object->bits, &seen, to_bits<T>(desired), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (!swapped) *expected = from_bits<T>(seen);
  return swapped;
}

} // namespace mrt
#endif
#endif

// The memory order is checked at compile time, as in Metal's compiler.
#define MRT_RELAXED(order)                                                                                             \
  __attribute__((enable_if(order == memory_order_relaxed, "an atomic operation takes memory_order_relaxed")))

// Each function in each address space, with its requirements on the type.
#define MRT_ATOMIC_LOAD(space, required)                                                                               \
  template <typename T, mrt::if_atomic_can<T, mrt::atomic_exchanges | required> = 0>                                   \
  MRT_CALL T atomic_load_explicit(const volatile space atomic<T> *object, memory_order order MRT_SITE)                 \
      MRT_RELAXED(order) MRT_BODY(return mrt::atomic_load(object, site);)

#define MRT_ATOMIC_STORE(space, required)                                                                              \
  template <typename T, typename U, mrt::if_atomic_takes<T, U, mrt::atomic_exchanges | required> = 0>                  \
  MRT_CALL void atomic_store_explicit(volatile space atomic<T> *object, U desired, memory_order order MRT_SITE)        \
      MRT_RELAXED(order) MRT_BODY(mrt::atomic_store(object, T(desired), site);)

#define MRT_ATOMIC_COMPARE(space, required)                                                                            \
  template <typename T, typename U, mrt::if_atomic_takes<T, U, mrt::atomic_exchanges | required> = 0>                  \
  MRT_CALL bool atomic_compare_exchange_weak_explicit(volatile space atomic<T> *object, MRT_THREAD T *expected,        \
                                                      U desired, memory_order success, memory_order failure MRT_SITE)  \
      MRT_RELAXED(success) MRT_RELAXED(failure)                                                                        \
          MRT_BODY(return mrt::atomic_compare(object, expected, T(desired), site);)

#define MRT_ATOMIC_UPDATE(space, required, name, Operation, what)                                                      \
  template <typename T, typename U, mrt::if_atomic_takes<T, U, mrt::atomic_##what | required> = 0>                     \
  MRT_CALL T atomic_##name##_explicit(volatile space atomic<T> *object, U operand, memory_order order MRT_SITE)        \
      MRT_RELAXED(order) MRT_BODY(return mrt::atomic_update<mrt::Operation>(object, T(operand), site);)

#define MRT_ATOMIC_EXTREME(space, name, Operation)                                                                     \
  MRT_CALL void atomic_##name##_explicit(volatile space atomic_ulong *object, ulong operand,                           \
                                         memory_order order MRT_SITE) MRT_RELAXED(order)                               \
      MRT_BODY(mrt::atomic_update<mrt::Operation>(object, operand, site);)

// clang-format off
#define MRT_ATOMIC_FUNCTIONS(space, required)                               \
  MRT_ATOMIC_LOAD(space, required)                                          \
  MRT_ATOMIC_STORE(space, required)                                         \
  MRT_ATOMIC_COMPARE(space, required)                                       \
  MRT_ATOMIC_UPDATE(space, required, exchange,  Replacement, exchanges)     \
  MRT_ATOMIC_UPDATE(space, required, fetch_add, Sum,         adds)          \
  MRT_ATOMIC_UPDATE(space, required, fetch_sub, Difference,  adds)          \
  MRT_ATOMIC_UPDATE(space, required, fetch_and, And,         combines)      \
  MRT_ATOMIC_UPDATE(space, required, fetch_or,  Or,          combines)      \
  MRT_ATOMIC_UPDATE(space, required, fetch_xor, Xor,         combines)      \
  MRT_ATOMIC_UPDATE(space, required, fetch_min, Minimum,     combines)      \
  MRT_ATOMIC_UPDATE(space, required, fetch_max, Maximum,     combines)
// clang-format on

namespace metal {

MRT_ATOMIC_FUNCTIONS(MRT_DEVICE, 0)
#if defined(MRT_STRICT) || defined(MRT_SPACED)
MRT_ATOMIC_FUNCTIONS(MRT_THREADGROUP, mrt::atomic_in_threadgroup)
#endif
#ifdef MRT_SPACED // for members of a method's object, whose address space is unknown
MRT_ATOMIC_FUNCTIONS(, 0)
#endif
MRT_ATOMIC_EXTREME(MRT_DEVICE, min, Minimum)
MRT_ATOMIC_EXTREME(MRT_DEVICE, max, Maximum)

} // namespace metal
#endif
