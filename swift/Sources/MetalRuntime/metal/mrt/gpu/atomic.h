// Relaxed atomic operations on an NVIDIA GPU; atomic.h defines them for the software device.
#ifndef MRT_GPU_ATOMIC_H
#define MRT_GPU_ATOMIC_H

namespace mrt {

template <typename Operation, typename T> MRT_FUNC T compare_and_update(volatile metal::atomic<T> *object, T operand) {
  atomic_storage<T> seen = __atomic_load_n(&object->bits, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&object->bits, &seen,
                                      to_bits<T>(Operation::template of<T>(from_bits<T>(seen), operand)), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return from_bits<T>(seen);
}

// Integers use the hardware's operation if there is one. Floats are updated by a loop, which rounds like the software
// device.
template <typename Operation, typename T> MRT_FUNC T atomic_update(volatile metal::atomic<T> *object, T operand, Site) {
  constexpr bool is_integer = __is_integral(T) && !__is_same(T, bool);
  if constexpr (!is_integer) return compare_and_update<Operation>(object, operand);
  else if constexpr (__is_same(Operation, Sum)) return __atomic_fetch_add(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, Difference))
    return __atomic_fetch_sub(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, And)) return __atomic_fetch_and(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, Or)) return __atomic_fetch_or(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, Xor)) return __atomic_fetch_xor(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, Minimum)) return __atomic_fetch_min(&object->bits, operand, __ATOMIC_RELAXED);
  else if constexpr (__is_same(Operation, Maximum)) return __atomic_fetch_max(&object->bits, operand, __ATOMIC_RELAXED);
  else return __atomic_exchange_n(&object->bits, operand, __ATOMIC_RELAXED);
}

template <typename T> MRT_FUNC T atomic_load(const volatile metal::atomic<T> *object, Site) {
  return from_bits<T>(__atomic_load_n(&object->bits, __ATOMIC_RELAXED));
}

template <typename T> MRT_FUNC void atomic_store(volatile metal::atomic<T> *object, T desired, Site) {
  __atomic_store_n(&object->bits, to_bits<T>(desired), __ATOMIC_RELAXED);
}

template <typename T> MRT_FUNC bool atomic_compare(volatile metal::atomic<T> *object, T *expected, T desired, Site) {
  atomic_storage<T> seen = to_bits<T>(*expected);
  const bool swapped =
      __atomic_compare_exchange_n(&object->bits, &seen, to_bits<T>(desired), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (!swapped) *expected = from_bits<T>(seen);
  return swapped;
}

} // namespace mrt

#endif
