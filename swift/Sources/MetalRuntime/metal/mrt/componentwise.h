// Extends functions of scalars to vectors, component by component. In functions with several arguments, a scalar may be
// used together with a vector (MSL 2.2: a scalar converts to a vector), and a packed vector as a vector.
//
// A program's overloads for vec<T, N> are more specialized than these templates, so they are preferred.
#ifndef MRT_COMPONENTWISE_H
#define MRT_COMPONENTWISE_H

#include "packed.h"

namespace mrt {

using metal::enable_if_t, metal::packed_vec, metal::vec;

// The first vector type among the types A.
template <typename... A> struct first_vector {};
template <typename T, int N, typename... A> struct first_vector<vec<T, N>, A...> {
  typedef vec<T, N> type;
};
template <typename T, int N, typename... A> struct first_vector<packed_vec<T, N>, A...> {
  typedef vec<T, N> type;
};
template <typename S, typename... A> struct first_vector<S, A...> : first_vector<A...> {};

// Whether an argument of type A converts to the vector V.
template <typename A, typename V> constexpr MRT_CONSTANT bool fits = is_scalar_beside<A, typename V::value_type>;
template <typename T, int N> constexpr MRT_CONSTANT bool fits<vec<T, N>, vec<T, N>> = true;
template <typename T, int N> constexpr MRT_CONSTANT bool fits<packed_vec<T, N>, vec<T, N>> = true;

template <typename T> constexpr MRT_CONSTANT bool is_half_or_float = __is_same(T, half) || __is_same(T, float);
template <typename T> constexpr MRT_CONSTANT bool is_integer = __is_integral(T) && !__is_same(T, bool);

// The common vector type V of arguments with types A; no type if there is none, or if the function does not accept V's
// elements.
template <bool Ok, typename V> struct vector_if {};
template <typename V> struct vector_if<true, V> {
  typedef V type;
};
template <typename V, typename... A> constexpr MRT_CONSTANT bool all_fit = (fits<A, V> && ...);
template <typename... A>
using any_vector =
    typename vector_if<all_fit<typename first_vector<A...>::type, A...>, typename first_vector<A...>::type>::type;
template <typename V> using if_floats = typename vector_if<is_half_or_float<typename V::value_type>, V>::type;
template <typename V> using if_integers = typename vector_if<is_integer<typename V::value_type>, V>::type;
template <typename... A> using float_vector = if_floats<any_vector<A...>>;
template <typename... A> using integer_vector = if_integers<any_vector<A...>>;

template <typename V> struct shape {};
template <typename T, int N> struct shape<vec<T, N>> {
  static constexpr MRT_CONSTANT int count = N;
  typedef vec<bool, N> booleans;
  typedef vec<int, N> integers;
};
template <typename V> using booleans = typename shape<V>::booleans;
template <typename V> using integers = typename shape<V>::integers;
template <typename V> using same = V;
// Two templates with one name that differ only in KIND (min of integers, min of floats) need distinct signatures.
enum any_kind {};
enum float_kind {};
enum integer_kind {};

} // namespace mrt

// NAME applied to component i of up to three vectors.
#define MRT_CALL1(NAME, i) NAME(a.i)
#define MRT_CALL2(NAME, i) NAME(a.i, b.i)
#define MRT_CALL3(NAME, i) NAME(a.i, b.i, c.i)

#define MRT_PER_COMPONENT(NAME, CALL, R)                                                                               \
  if constexpr (mrt::shape<V>::count == 2) return R(CALL(NAME, x), CALL(NAME, y));                                     \
  else if constexpr (mrt::shape<V>::count == 3) return R(CALL(NAME, x), CALL(NAME, y), CALL(NAME, z));                 \
  else return R(CALL(NAME, x), CALL(NAME, y), CALL(NAME, z), CALL(NAME, w));

// Defines NAME for one, two or three vectors, based on NAME for scalars. KIND of the elements: float, integer or any.
// RESULT: mrt::same, mrt::booleans, mrt::integers.
#define MRT_VECTOR1(NAME, KIND, RESULT)                                                                                \
  template <typename A, typename V = mrt::KIND##_vector<A>, mrt::KIND##_kind = mrt::KIND##_kind()>                     \
  MRT_FUNC RESULT<V> NAME(A first) {                                                                                   \
    const V a(first);                                                                                                  \
    MRT_PER_COMPONENT(NAME, MRT_CALL1, RESULT<V>)                                                                      \
  }
#define MRT_VECTOR2(NAME, KIND, RESULT)                                                                                \
  template <typename A, typename B, typename V = mrt::KIND##_vector<A, B>, mrt::KIND##_kind = mrt::KIND##_kind()>      \
  MRT_FUNC RESULT<V> NAME(A first, B second) {                                                                         \
    const V a(first), b(second);                                                                                       \
    MRT_PER_COMPONENT(NAME, MRT_CALL2, RESULT<V>)                                                                      \
  }
#define MRT_VECTOR3(NAME, KIND, RESULT)                                                                                \
  template <typename A, typename B, typename C, typename V = mrt::KIND##_vector<A, B, C>,                              \
            mrt::KIND##_kind = mrt::KIND##_kind()>                                                                     \
  MRT_FUNC RESULT<V> NAME(A first, B second, C third) {                                                                \
    const V a(first), b(second), c(third);                                                                             \
    MRT_PER_COMPONENT(NAME, MRT_CALL3, RESULT<V>)                                                                      \
  }

#endif
