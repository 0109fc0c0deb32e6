// Packed vectors (MSL 2.2.3): the components without padding, with the alignment of a component. In expressions they
// convert to vectors.
#ifndef MRT_PACKED_H
#define MRT_PACKED_H

#include "vec.h"

namespace metal {

#ifdef MRT_STRICT
#define MRT_PACKED_OF_CONSTANT(N, ...)                                                                                 \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  MRT_METHOD packed_vec &operator=(const MRT_CONSTANT packed_vec<U, N> &v) {                                           \
    return *this = packed_vec(v);                                                                                      \
  }                                                                                                                    \
  constexpr MRT_METHOD operator vec<T, N>() const MRT_CONSTANT { return vec<T, N>(__VA_ARGS__); }                      \
  MRT_METHOD T operator[](size_t i) const MRT_CONSTANT { return (&x)[i]; }
#define MRT_PACKED_COPY(N, SPACE)                                                                                      \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  constexpr MRT_METHOD packed_vec(const MRT_CONSTANT packed_vec<U, N> &v) SPACE : packed_vec(vec<T, N>(v)) {}
#else
#define MRT_PACKED_OF_CONSTANT(N, ...)
#define MRT_PACKED_COPY(N, SPACE)
#endif

#define MRT_PACKED_MEMBERS(N, ...)                                                                                     \
  typedef T value_type;                                                                                                \
  constexpr packed_vec() = default;                                                                                    \
  MRT_IN_EACH_SPACE(MRT_PACKED##N##_CONSTRUCTORS)                                                                      \
  MRT_METHOD T &operator[](size_t i) { return (&x)[i]; }                                                               \
  MRT_METHOD const T &operator[](size_t i) const { return (&x)[i]; }                                                   \
  constexpr MRT_METHOD operator vec<T, N>() const { return vec<T, N>(__VA_ARGS__); }                                   \
  MRT_PACKED_OF_CONSTANT(N, __VA_ARGS__)                                                                               \
  MRT_RGBA_OF_##N MRT_SWIZZLES_OF_##N MRT_PUTS_OF_##N

// Conversions from everything from which a vector can be constructed.
#define MRT_PACKED_CONVERSIONS(N, SPACE)                                                                               \
  MRT_PACKED_COPY(N, SPACE)                                                                                            \
  constexpr MRT_METHOD packed_vec(T v) SPACE : packed_vec(vec<T, N>(v)) {}                                             \
  template <typename U>                                                                                                \
  constexpr MRT_METHOD explicit packed_vec(packed_vec<U, N> v) SPACE : packed_vec(vec<T, N>(vec<U, N>(v))) {}
#define MRT_PACKED2_CONSTRUCTORS(SPACE)                                                                                \
  MRT_PACKED_CONVERSIONS(2, SPACE)                                                                                     \
  constexpr MRT_METHOD packed_vec(vec<T, 2> v) SPACE : x(v.x), y(v.y) {}                                               \
  constexpr MRT_METHOD packed_vec(T x, T y) SPACE : x(x), y(y) {}
#define MRT_PACKED3_CONSTRUCTORS(SPACE)                                                                                \
  MRT_PACKED_CONVERSIONS(3, SPACE)                                                                                     \
  constexpr MRT_METHOD packed_vec(vec<T, 3> v) SPACE : x(v.x), y(v.y), z(v.z) {}                                       \
  template <typename A, typename B> constexpr MRT_METHOD packed_vec(A a, B b) SPACE : packed_vec(vec<T, 3>(a, b)) {}   \
  constexpr MRT_METHOD packed_vec(T x, T y, T z) SPACE : x(x), y(y), z(z) {}
#define MRT_PACKED4_CONSTRUCTORS(SPACE)                                                                                \
  MRT_PACKED_CONVERSIONS(4, SPACE)                                                                                     \
  constexpr MRT_METHOD packed_vec(vec<T, 4> v) SPACE : x(v.x), y(v.y), z(v.z), w(v.w) {}                               \
  template <typename A, typename B> constexpr MRT_METHOD packed_vec(A a, B b) SPACE : packed_vec(vec<T, 4>(a, b)) {}   \
  template <typename A, typename B, typename C>                                                                        \
  constexpr MRT_METHOD packed_vec(A a, B b, C c) SPACE : packed_vec(vec<T, 4>(a, b, c)) {}                             \
  constexpr MRT_METHOD packed_vec(T x, T y, T z, T w) SPACE : x(x), y(y), z(z), w(w) {}

template <typename T> struct packed_vec<T, 2> {
  T x, y;
  MRT_PACKED_MEMBERS(2, x, y)
};
template <typename T> struct packed_vec<T, 3> {
  T x, y, z;
  MRT_PACKED_MEMBERS(3, x, y, z)
};
template <typename T> struct packed_vec<T, 4> {
  T x, y, z, w;
  MRT_PACKED_MEMBERS(4, x, y, z, w)
};

// ---------------------------------------------------------------- the operators of vec, for at least one packed
// operand
template <typename T, int N> constexpr MRT_FUNC vec<T, N> mrt_unpacked(packed_vec<T, N> v) { return v; }

#define MRT_PACKED_BINARY(OP)                                                                                          \
  template <typename T, int N> constexpr MRT_FUNC auto operator OP(packed_vec<T, N> a, packed_vec<T, N> b) {           \
    return mrt_unpacked(a) OP mrt_unpacked(b);                                                                         \
  }                                                                                                                    \
  template <typename T, int N> constexpr MRT_FUNC auto operator OP(packed_vec<T, N> a, vec<T, N> b) {                  \
    return mrt_unpacked(a) OP b;                                                                                       \
  }                                                                                                                    \
  template <typename T, int N> constexpr MRT_FUNC auto operator OP(vec<T, N> a, packed_vec<T, N> b) {                  \
    return a OP mrt_unpacked(b);                                                                                       \
  }                                                                                                                    \
  template <typename T, int N, typename S, mrt::if_scalar_beside<S, T> = 0>                                            \
  constexpr MRT_FUNC auto operator OP(packed_vec<T, N> a, S b) {                                                       \
    return mrt_unpacked(a) OP b;                                                                                       \
  }                                                                                                                    \
  template <typename T, int N, typename S, mrt::if_scalar_beside<S, T> = 0>                                            \
  constexpr MRT_FUNC auto operator OP(S a, packed_vec<T, N> b) {                                                       \
    return a OP mrt_unpacked(b);                                                                                       \
  }
MRT_FOR_VEC_BINARY(MRT_PACKED_BINARY)
MRT_FOR_VEC_COMPARISON(MRT_PACKED_BINARY)

// clang-format off: it would split `##=`
#define MRT_PACKED_ASSIGN(OP)                                                                                          \
  template <typename T, int N, typename B>                                                                             \
  constexpr MRT_FUNC packed_vec<T, N> &operator OP##=(packed_vec<T, N> &a, B b) {                                      \
    return a = mrt_unpacked(a) OP b;                                                                                   \
  }                                                                                                                    \
  template <typename T, int N> constexpr MRT_FUNC vec<T, N> &operator OP##=(vec<T, N> &a, packed_vec<T, N> b) {        \
    return a = a OP b;                                                                                                 \
  }
// clang-format on
MRT_FOR_VEC_BINARY(MRT_PACKED_ASSIGN)

#define MRT_PACKED_UNARY(OP)                                                                                           \
  template <typename T, int N> constexpr MRT_FUNC auto operator OP(packed_vec<T, N> a) { return OP mrt_unpacked(a); }
MRT_PACKED_UNARY(+)
MRT_PACKED_UNARY(-)
MRT_PACKED_UNARY(~)
MRT_PACKED_UNARY(!)

#define MRT_PACKED_NAMES(T)                                                                                            \
  typedef packed_vec<T, 2> packed_##T##2;                                                                              \
  typedef packed_vec<T, 3> packed_##T##3;                                                                              \
  typedef packed_vec<T, 4> packed_##T##4;                                                                              \
  static_assert(sizeof(packed_##T##2) == 2 * sizeof(T) && sizeof(packed_##T##3) == 3 * sizeof(T) &&                    \
                    sizeof(packed_##T##4) == 4 * sizeof(T) && alignof(packed_##T##3) == alignof(T),                    \
                "MSL Table 2.5");
MRT_FOR_VECTOR_ELEMENTS(MRT_PACKED_NAMES)

} // namespace metal

#define MRT_PACKED_GLOBAL_NAMES(T) using metal::packed_##T##2, metal::packed_##T##3, metal::packed_##T##4;
MRT_FOR_VECTOR_ELEMENTS(MRT_PACKED_GLOBAL_NAMES)

#endif
