// Type traits, as in C++'s <type_traits> (MSL 6.4), and what the library itself asks about types.
#ifndef MRT_TRAITS_H
#define MRT_TRAITS_H

#include "types.h"

namespace metal {

template <typename T, T v> struct integral_constant {
  static constexpr MRT_CONSTANT T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <bool B, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { typedef T type; };
template <bool B, typename T = void> using enable_if_t = typename enable_if<B, T>::type;

template <bool B, typename T, typename F> struct conditional { typedef T type; };
template <typename T, typename F> struct conditional<false, T, F> { typedef F type; };
template <bool B, typename T, typename F> using conditional_t = typename conditional<B, T, F>::type;

template <typename T, int N> struct vec;
template <typename T, int N> struct packed_vec;
template <typename T, int Columns, int Rows> struct matrix;

} // namespace metal
#endif
