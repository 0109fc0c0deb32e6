// Guards of a thread's arrays and variables (rewrite/arrays.cpp): in the checked build, the checker sees each access to
// one, and finds reads of elements that were never written. The sanitizer skips accesses that it can trace to a local
// variable, so the program's name is a reference returned by a function of which only the size is known.
#ifndef MRT_ARRAYS_H
#define MRT_ARRAYS_H

#ifdef MRT_CHECKED

#include "current.h"
#include "packed.h"

namespace mrt {

// Elements of other types may have constructors, which write to them before a guard exists.
template <typename T> constexpr bool is_guarded = __is_arithmetic(T) || MRT_IS_BFLOAT(T);
template <typename T, int N> constexpr bool is_guarded<metal::vec<T, N>> = true;
template <typename T, int N> constexpr bool is_guarded<metal::packed_vec<T, N>> = true;
template <typename T> constexpr bool is_guarded<volatile T> = is_guarded<T>;

template <typename T> struct ElementOf {
  typedef T type;
};
template <typename T, __SIZE_TYPE__ N> struct ElementOf<T[N]> : ElementOf<T> {};

[[maybe_unused]] MRT_UNINSTRUMENTED __attribute__((alloc_size(1), optnone)) static void *guarded(__SIZE_TYPE__,
                                                                                                 void *array) {
  return array;
}

template <typename A, bool = is_guarded<typename ElementOf<A>::type>> struct ArrayGuard {
  ArrayGuard(const volatile void *, const char *) {}
  static MRT_METHOD A &of(A &array) { return array; }
};

template <typename A> struct ArrayGuard<A, true> : MrtArray {
  mrt_u8 bits[(sizeof(A) + 7) / 8];
  MRT_UNINSTRUMENTED ArrayGuard(const volatile void *array, const char *label) {
    name = label;
    begin = array;
    size = sizeof(A);
    element_size = sizeof(typename ElementOf<A>::type);
    written = bits;
    for (mrt_u8 &each : bits) each = 0;
    outer = current_thread->arrays;
    current_thread->arrays = this;
  }
  MRT_UNINSTRUMENTED ~ArrayGuard() { current_thread->arrays = outer; }
  ArrayGuard(const ArrayGuard &) = delete;
  // Without debug information: a read that the compiler moves out of a loop is then at the declaration's line.
  static MRT_METHOD A &of(A &array) { return *(A *)guarded(sizeof(A), (void *)&array); }
};

} // namespace mrt

#define MRT_ARRAY(array) mrt_array_##array
#define MRT_GUARD_ARRAY(array)                                                                                         \
  mrt::ArrayGuard<decltype(mrt_array_##array)> mrt_guard_##array(&mrt_array_##array, #array);                          \
  auto &array = mrt_guard_##array.of(mrt_array_##array);
#else
#define MRT_ARRAY(array) array
#define MRT_GUARD_ARRAY(array)
#endif

#endif
