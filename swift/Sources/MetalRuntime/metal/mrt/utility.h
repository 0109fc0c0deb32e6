// array, pair and the other functions of <metal_utility> and <metal_array> (MSL 2.14).
#ifndef MRT_UTILITY_H
#define MRT_UTILITY_H

#include "traits.h"

namespace metal {

template <typename T, size_t N> struct array {
  typedef T value_type;
  typedef size_t size_type;
  T elements[N];

  static constexpr MRT_METHOD size_t size() { return N; }
  static constexpr MRT_METHOD size_t max_size() { return N; }
  static constexpr MRT_METHOD bool empty() { return N == 0; }
  constexpr MRT_METHOD T &operator[](size_t i) { return elements[i]; }
  constexpr MRT_METHOD const T &operator[](size_t i) const { return elements[i]; }
  constexpr MRT_METHOD T &front() { return elements[0]; }
  constexpr MRT_METHOD T &back() { return elements[N - 1]; }
  constexpr MRT_METHOD const T &front() const { return elements[0]; }
  constexpr MRT_METHOD const T &back() const { return elements[N - 1]; }
  constexpr MRT_METHOD auto data() { return &elements[0]; }
  constexpr MRT_METHOD auto data() const { return &elements[0]; }
  constexpr MRT_METHOD auto begin() { return &elements[0]; }
  constexpr MRT_METHOD auto begin() const { return &elements[0]; }
  constexpr MRT_METHOD auto end() { return &elements[0] + N; }
  constexpr MRT_METHOD auto end() const { return &elements[0] + N; }
  MRT_METHOD void fill(T value) {
    for (size_t i = 0; i < N; ++i) elements[i] = value;
  }
#ifdef MRT_STRICT
  constexpr MRT_METHOD const MRT_CONSTANT T &operator[](size_t i) const MRT_CONSTANT { return elements[i]; }
  constexpr MRT_METHOD const MRT_CONSTANT T &front() const MRT_CONSTANT { return elements[0]; }
  constexpr MRT_METHOD const MRT_CONSTANT T &back() const MRT_CONSTANT { return elements[N - 1]; }
  constexpr MRT_METHOD auto data() const MRT_CONSTANT { return &elements[0]; }
  constexpr MRT_METHOD auto begin() const MRT_CONSTANT { return &elements[0]; }
  constexpr MRT_METHOD auto end() const MRT_CONSTANT { return &elements[0] + N; }
#endif
};

template <typename T, typename U> struct pair {
  typedef T first_type;
  typedef U second_type;
  T first;
  U second;
};
template <typename T, typename U> constexpr MRT_FUNC pair<T, U> make_pair(T first, U second) { return {first, second}; }

template <typename T> constexpr MRT_FUNC __remove_reference_t(T) &&move(T &&value) {
  return static_cast<__remove_reference_t(T) &&>(value);
}
template <typename T> T declval();
typedef decltype(nullptr) nullptr_t;

// Lists of numbers as template parameters.
template <typename T, T... I> struct integer_sequence {
  typedef T value_type;
  static constexpr MRT_METHOD size_t size() { return sizeof...(I); }
};
template <typename T, T N> using make_integer_sequence = __make_integer_seq<integer_sequence, T, N>;
template <size_t... I> using index_sequence = integer_sequence<size_t, I...>;
template <size_t N> using make_index_sequence = make_integer_sequence<size_t, N>;
template <typename... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;

template <typename T> MRT_FUNC void swap(T &a, T &b) {
  const T old = a;
  a = b;
  b = old;
}

} // namespace metal
#endif
