// Vectors (MSL 2.2): vec<T, N>, N = 2, 3, 4, with the sizes and alignments of Table 2.3 (a vector of 3 has the size of
// 4).
#ifndef MRT_VEC_H
#define MRT_VEC_H

#include "initializer_list.h"
#include "swizzle.h"
#include "traits.h"

namespace mrt {

// A scalar of type S may be combined with a vector of T in an operator or a function, except a floating-point scalar
// with integers.
template <typename S, typename T>
constexpr MRT_CONSTANT bool is_scalar_beside =
    __is_integral(S) || __is_enum(S) || ((__is_arithmetic(S) || MRT_IS_BFLOAT(S)) && !__is_integral(T));
template <typename S, typename T> using if_scalar_beside = metal::enable_if_t<is_scalar_beside<S, T>, int>;

// -fsanitize=alignment checks references and members, but not the copy of a trivial class, so `v = p[i]` would not be
// checked. A base class whose copy is not trivial makes the copy of a vector, and of classes that contain one, a
// function that takes a reference; the copied bytes and the calling convention stay the same. A union can't contain
// such a class: MRT_TRIVIAL_COPIES is for programs that have such unions.
#if defined(MRT_CHECKED) && !defined(MRT_TRIVIAL_COPIES)
#define MRT_COPIED_BY_REFERENCE __attribute__((__trivial_abi__))
#define MRT_VEC_BASE : mrt::CopiedByReference
// A defaulted copy constructor would report the line of the class, but a finding needs the line of the program.
#define MRT_VEC_COPIES(N)                                                                                              \
  constexpr MRT_METHOD vec(const vec &) = default;                                                                     \
  constexpr MRT_METHOD vec &operator=(const vec &) = default;
struct MRT_COPIED_BY_REFERENCE CopiedByReference {
  constexpr CopiedByReference() = default;
  constexpr MRT_METHOD CopiedByReference(const CopiedByReference &) {}
  constexpr MRT_METHOD CopiedByReference &operator=(const CopiedByReference &) { return *this; }
};
// On a GPU, LLVM copies a trivial class of 16 bytes as two words of 8. Single elements become one access of 16 bytes.
#elif defined(MRT_GPU) && !defined(MRT_TRIVIAL_COPIES)
#define MRT_COPIED_BY_REFERENCE __attribute__((__trivial_abi__))
#define MRT_VEC_BASE
#define MRT_VEC_COPIES(N)                                                                                              \
  constexpr MRT_METHOD vec(const vec &v) : MRT_COPY##N {}                                                              \
  constexpr MRT_METHOD vec &operator=(const vec &v) {                                                                  \
    MRT_ASSIGN##N;                                                                                                     \
    return *this;                                                                                                      \
  }
#define MRT_COPY2 x(v.x), y(v.y)
#define MRT_COPY3 MRT_COPY2, z(v.z)
#define MRT_COPY4 MRT_COPY3, w(v.w)
#define MRT_ASSIGN2 x = v.x, y = v.y
#define MRT_ASSIGN3 MRT_ASSIGN2, z = v.z
#define MRT_ASSIGN4 MRT_ASSIGN3, w = v.w
#else
#define MRT_COPIED_BY_REFERENCE
#define MRT_VEC_BASE
#define MRT_VEC_COPIES(N)
#endif

} // namespace mrt

namespace metal {

#define MRT_VEC2 vec<T, 2>
#define MRT_VEC3 vec<T, 3>
#define MRT_VEC4 vec<T, 4>

// A constructor for each address space that an object can be in. Conversions between vectors of different element types
// are explicit. In strict mode, an object in the constant address space is constructed, copied and indexed by separate
// members; those that copy are templates, so that the class stays trivial (usable in unions and threadgroup memory).
#ifdef MRT_STRICT
#define MRT_VEC_OF_CONSTANT(N)                                                                                         \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  MRT_METHOD vec &operator=(const MRT_CONSTANT vec<U, N> &v) {                                                         \
    return *this = vec(v);                                                                                             \
  }                                                                                                                    \
  MRT_METHOD T operator[](size_t i) const MRT_CONSTANT { return (&x)[i]; }
#define MRT_VEC_COPY(N, SPACE, ...)                                                                                    \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  constexpr MRT_METHOD vec(const MRT_CONSTANT vec<U, N> &v) SPACE : __VA_ARGS__ {}
#else
#define MRT_VEC_OF_CONSTANT(N)
#define MRT_VEC_COPY(N, SPACE, ...)
#endif

// V is a vector of N elements of T, packed or not, but not a scalar.
template <typename V, typename T, int N>
using if_vector = enable_if_t<__is_same(V, vec<T, N>) || __is_same(V, packed_vec<T, N>), int>;

// Copies from and to volatile memory. These are templates, so that the class stays trivial.
#define MRT_VEC_OF_VOLATILE(N, ...)                                                                                    \
  template <typename U, enable_if_t<__is_same(U, T), int> = 0>                                                         \
  MRT_METHOD vec(const volatile vec<U, N> &v) : vec(__VA_ARGS__) {}                                                    \
  template <typename U, enable_if_t<__is_same(U, vec), int> = 0> MRT_METHOD void operator=(U v) volatile {             \
    for (int i = 0; i < N; ++i) (&x)[i] = (&v.x)[i];                                                                   \
  }
#define MRT_VEC2_OF_VOLATILE MRT_VEC_OF_VOLATILE(2, v.x, v.y)
#define MRT_VEC3_OF_VOLATILE MRT_VEC_OF_VOLATILE(3, v.x, v.y, v.z)
#define MRT_VEC4_OF_VOLATILE MRT_VEC_OF_VOLATILE(4, v.x, v.y, v.z, v.w)

#define MRT_VEC_MEMBERS(N)                                                                                             \
  static_assert(__is_arithmetic(T) || MRT_IS_BFLOAT(T), "invalid vector element type");                                \
  typedef T value_type;                                                                                                \
  constexpr vec() = default;                                                                                           \
  MRT_VEC_COPIES(N)                                                                                                    \
  MRT_VEC##N##_OF_VOLATILE MRT_IN_EACH_SPACE(MRT_VEC##N##_CONSTRUCTORS) MRT_METHOD T &operator[](size_t i) {           \
    return (&x)[i];                                                                                                    \
  }                                                                                                                    \
  MRT_METHOD const T &operator[](size_t i) const { return (&x)[i]; }                                                   \
  MRT_VEC_OF_CONSTANT(N)                                                                                               \
  MRT_RGBA_OF_##N MRT_SWIZZLES_OF_##N MRT_PUTS_OF_##N

// From a list in braces, whose missing elements are zero. In strict mode, lists are not constant expressions, so there
// are constructors with fewer scalars instead; flat mode rejects these outside braces.
#ifdef MRT_STRICT
#define MRT_VEC_LIST2(SPACE)
#define MRT_VEC_LIST3(SPACE)                                                                                           \
  constexpr MRT_METHOD vec(T x, T y) SPACE : x(x), y(y), z(T(0)) {}
#define MRT_VEC_LIST4(SPACE)                                                                                           \
  constexpr MRT_METHOD vec(T x, T y) SPACE : x(x), y(y), z(T(0)), w(T(0)) {}                                           \
  constexpr MRT_METHOD vec(T x, T y, T z) SPACE : x(x), y(y), z(z), w(T(0)) {}
#else
#define MRT_VEC_LIST2(SPACE)                                                                                           \
  constexpr MRT_METHOD vec(std::initializer_list<T> e) : x(e.at(0)), y(e.at(1)) {}
#define MRT_VEC_LIST3(SPACE)                                                                                           \
  constexpr MRT_METHOD vec(std::initializer_list<T> e) : x(e.at(0)), y(e.at(1)), z(e.at(2)) {}
#define MRT_VEC_LIST4(SPACE)                                                                                           \
  constexpr MRT_METHOD vec(std::initializer_list<T> e) : x(e.at(0)), y(e.at(1)), z(e.at(2)), w(e.at(3)) {}
#endif

// From another element type, packed or not.
#define MRT_VEC_CONVERSIONS(N, SPACE, ...)                                                                             \
  template <typename S, enable_if_t<MRT_IS_BFLOAT(T) && __is_floating_point(S), int> = 0>                              \
  constexpr MRT_METHOD explicit vec(S s) SPACE : vec(T(s)) {}                                                          \
  template <typename U, enable_if_t<!__is_same(U, T), int> = 0>                                                        \
  constexpr MRT_METHOD explicit vec(vec<U, N> v) SPACE : __VA_ARGS__ {}                                                \
  template <typename U, enable_if_t<!__is_same(U, T), int> = 0>                                                        \
  constexpr MRT_METHOD explicit vec(packed_vec<U, N> v) SPACE : vec(vec<U, N>(v)) {}

#define MRT_VEC2_CONSTRUCTORS(SPACE)                                                                                   \
  MRT_VEC_COPY(2, SPACE, x(v.x), y(v.y))                                                                               \
  MRT_VEC_CONVERSIONS(2, SPACE, x(MRT_CAST(T, v.x)), y(MRT_CAST(T, v.y)))                                              \
  MRT_VEC_LIST2(SPACE)                                                                                                 \
  constexpr MRT_METHOD vec(T v) SPACE : x(v), y(v) {}                                                                  \
  constexpr MRT_METHOD vec(T x, T y) SPACE : x(x), y(y) {}

#define MRT_VEC3_CONSTRUCTORS(SPACE)                                                                                   \
  MRT_VEC_COPY(3, SPACE, x(v.x), y(v.y), z(v.z))                                                                       \
  MRT_VEC_CONVERSIONS(3, SPACE, x(MRT_CAST(T, v.x)), y(MRT_CAST(T, v.y)), z(MRT_CAST(T, v.z)))                         \
  MRT_VEC_LIST3(SPACE)                                                                                                 \
  constexpr MRT_METHOD vec(T v) SPACE : x(v), y(v), z(v) {}                                                            \
  constexpr MRT_METHOD vec(T x, T y, T z) SPACE : x(x), y(y), z(z) {}                                                  \
  template <typename V, if_vector<V, T, 2> = 0> constexpr MRT_METHOD vec(T x, V v) SPACE : x(x), y(v.x), z(v.y) {}     \
  template <typename V, if_vector<V, T, 2> = 0> constexpr MRT_METHOD vec(V v, T z) SPACE : x(v.x), y(v.y), z(z) {}

// `float4(v2, s)` is `float4(v2, float2(s))`: a scalar converts to a vector, as in other projects' programs.
#define MRT_VEC4_CONSTRUCTORS(SPACE)                                                                                   \
  MRT_VEC_COPY(4, SPACE, x(v.x), y(v.y), z(v.z), w(v.w))                                                               \
  MRT_VEC_CONVERSIONS(4, SPACE, x(MRT_CAST(T, v.x)), y(MRT_CAST(T, v.y)), z(MRT_CAST(T, v.z)), w(MRT_CAST(T, v.w)))    \
  MRT_VEC_LIST4(SPACE)                                                                                                 \
  constexpr MRT_METHOD vec(T v) SPACE : x(v), y(v), z(v), w(v) {}                                                      \
  constexpr MRT_METHOD vec(T x, T y, T z, T w) SPACE : x(x), y(y), z(z), w(w) {}                                       \
  template <typename V, if_vector<V, T, 2> = 0>                                                                        \
  constexpr MRT_METHOD vec(V v, T z, T w) SPACE : x(v.x), y(v.y), z(z), w(w) {}                                        \
  template <typename V, if_vector<V, T, 2> = 0>                                                                        \
  constexpr MRT_METHOD vec(T x, V v, T w) SPACE : x(x), y(v.x), z(v.y), w(w) {}                                        \
  template <typename V, if_vector<V, T, 2> = 0>                                                                        \
  constexpr MRT_METHOD vec(T x, T y, V v) SPACE : x(x), y(y), z(v.x), w(v.y) {}                                        \
  template <typename V, typename W, if_vector<V, T, 2> = 0, if_vector<W, T, 2> = 0>                                    \
  constexpr MRT_METHOD vec(V a, W b) SPACE : x(a.x), y(a.y), z(b.x), w(b.y) {}                                         \
  template <typename V, typename S, if_vector<V, T, 2> = 0, mrt::if_scalar_beside<S, T> = 0>                           \
  constexpr MRT_METHOD vec(V v, S s) SPACE : x(v.x), y(v.y), z(T(s)), w(T(s)) {}                                       \
  template <typename V, if_vector<V, T, 3> = 0>                                                                        \
  constexpr MRT_METHOD vec(V v, T w) SPACE : x(v.x), y(v.y), z(v.z), w(w) {}                                           \
  template <typename V, if_vector<V, T, 3> = 0>                                                                        \
  constexpr MRT_METHOD vec(T x, V v) SPACE : x(x), y(v.x), z(v.y), w(v.z) {}

template <typename T> struct alignas(2 * sizeof(T)) MRT_COPIED_BY_REFERENCE vec<T, 2> MRT_VEC_BASE {
  T x, y;
  MRT_VEC_MEMBERS(2)
};
template <typename T> struct alignas(4 * sizeof(T)) MRT_COPIED_BY_REFERENCE vec<T, 3> MRT_VEC_BASE {
  T x, y, z;
  MRT_VEC_MEMBERS(3)
};
template <typename T> struct alignas(4 * sizeof(T)) MRT_COPIED_BY_REFERENCE vec<T, 4> MRT_VEC_BASE {
  T x, y, z, w;
  MRT_VEC_MEMBERS(4)
};

} // namespace metal

namespace mrt {

// Types that a kernel may use for positions and sizes in the grid, and for indices and counts (MSL 5.2.3.6).
template <typename T> constexpr MRT_CONSTANT bool is_index = __is_same(T, uint) || __is_same(T, ushort);
template <typename T> constexpr MRT_CONSTANT bool is_position = is_index<T>;
template <typename T> constexpr MRT_CONSTANT bool is_position<metal::vec<T, 2>> = is_index<T>;
template <typename T> constexpr MRT_CONSTANT bool is_position<metal::vec<T, 3>> = is_index<T>;
template <typename T> constexpr MRT_CONSTANT bool is_index<const T> = is_index<T>;
template <typename T> constexpr MRT_CONSTANT bool is_position<const T> = is_position<T>;

// Called by the strict text beside `&object.x` and beside an element that a reference binds to: an element of a vector
// has no address (MSL 2.2.1).
#ifdef MRT_STRICT
template <typename> constexpr MRT_CONSTANT bool has_elements = false;
template <typename T, int N> constexpr MRT_CONSTANT bool has_elements<metal::vec<T, N>> = true;
#define MRT_ELEMENT_TEST(name, message)                                                                                \
  template <typename T>                                                                                                \
  constexpr void name(const T &)                                                                                       \
      __attribute__((diagnose_if(has_elements<metal::remove_cv_t<metal::remove_addrspace_t<T>>>, message, "error"))) { \
  }                                                                                                                    \
  template <typename T>                                                                                                \
  constexpr void name(const MRT_CONSTANT T &)                                                                          \
      __attribute__((diagnose_if(has_elements<metal::remove_cv_t<T>>, message, "error"))) {}
MRT_ELEMENT_TEST(address_of_member, "address of vector element requested")
MRT_ELEMENT_TEST(reference_to_member, "non-const reference cannot bind to vector element")
#endif

} // namespace mrt

namespace metal {

// ---------------------------------------------------------------- operators, component by component (MSL 3.1)
#define MRT_COMPONENTS(R, E)                                                                                           \
  if constexpr (N == 2) return R(E(x), E(y));                                                                          \
  else if constexpr (N == 3) return R(E(x), E(y), E(z));                                                               \
  else return R(E(x), E(y), E(z), E(w));

// a OP b for two vectors, and for a vector and a scalar.
#define MRT_VEC_FIRST(OP, R, E)                                                                                        \
  template <typename T, int N> constexpr MRT_FUNC vec<R, N> operator OP(vec<T, N> a, vec<T, N> b) {                    \
    typedef vec<R, N> result;                                                                                          \
    MRT_COMPONENTS(result, E)                                                                                          \
  }                                                                                                                    \
  template <typename T, int N, typename S, mrt::if_scalar_beside<S, T> = 0>                                            \
  constexpr MRT_FUNC vec<R, N> operator OP(vec<T, N> a, S b) {                                                         \
    return a OP vec<T, N>(T(b));                                                                                       \
  }
// Also for a scalar and a vector.
#define MRT_VEC_BINARY(OP, R, E)                                                                                       \
  MRT_VEC_FIRST(OP, R, E)                                                                                              \
  template <typename T, int N, typename S, mrt::if_scalar_beside<S, T> = 0>                                            \
  constexpr MRT_FUNC vec<R, N> operator OP(S a, vec<T, N> b) {                                                         \
    return vec<T, N>(T(a)) OP b;                                                                                       \
  }

#define MRT_ADD(c) T(a.c + b.c)
#define MRT_SUBTRACT(c) T(a.c - b.c)
#define MRT_MULTIPLY(c) T(a.c *b.c)
#define MRT_DIVIDE(c) T(a.c / b.c)
#define MRT_REMAINDER(c) T(a.c % b.c)
#define MRT_AND(c) T(a.c & b.c)
#define MRT_OR(c) T(a.c | b.c)
#define MRT_XOR(c) T(a.c ^ b.c)
// A shift uses the low bits of its amount (MSL 3.1).
#define MRT_LEFT(c) T(a.c << (b.c & T(8 * sizeof(T) - 1)))
#define MRT_RIGHT(c) T(a.c >> (b.c & T(8 * sizeof(T) - 1)))
#define MRT_LESS(c) (a.c < b.c)
#define MRT_GREATER(c) (a.c > b.c)
#define MRT_AT_MOST(c) (a.c <= b.c)
#define MRT_AT_LEAST(c) (a.c >= b.c)
#define MRT_EQUAL(c) (a.c == b.c)
#define MRT_UNEQUAL(c) (a.c != b.c)
#define MRT_BOTH(c) (a.c && b.c)
#define MRT_EITHER(c) (a.c || b.c)

MRT_VEC_BINARY(+, T, MRT_ADD)
MRT_VEC_BINARY(-, T, MRT_SUBTRACT)
MRT_VEC_BINARY(*, T, MRT_MULTIPLY)
MRT_VEC_BINARY(/, T, MRT_DIVIDE)
MRT_VEC_BINARY(%, T, MRT_REMAINDER)
MRT_VEC_BINARY(&, T, MRT_AND)
MRT_VEC_BINARY(|, T, MRT_OR)
MRT_VEC_BINARY(^, T, MRT_XOR)
MRT_VEC_FIRST(<<, T, MRT_LEFT) // a scalar can't be shifted by a vector
MRT_VEC_FIRST(>>, T, MRT_RIGHT)
// The amount may have another integer type (`int4 << uint4`).
#define MRT_LEFT_OF(c) T(a.c << (b.c & U(8 * sizeof(T) - 1)))
#define MRT_RIGHT_OF(c) T(a.c >> (b.c & U(8 * sizeof(T) - 1)))
#define MRT_VEC_SHIFT(OP, E)                                                                                           \
  template <typename T, typename U, int N,                                                                             \
            enable_if_t<!__is_same(T, U) && __is_integral(T) && __is_integral(U), int> = 0>                            \
  constexpr MRT_FUNC vec<T, N> operator OP(vec<T, N> a, vec<U, N> b) {                                                 \
    typedef vec<T, N> result;                                                                                          \
    MRT_COMPONENTS(result, E)                                                                                          \
  }
MRT_VEC_SHIFT(<<, MRT_LEFT_OF)
MRT_VEC_SHIFT(>>, MRT_RIGHT_OF)
MRT_VEC_BINARY(<, bool, MRT_LESS)
MRT_VEC_BINARY(>, bool, MRT_GREATER)
MRT_VEC_BINARY(<=, bool, MRT_AT_MOST)
MRT_VEC_BINARY(>=, bool, MRT_AT_LEAST)
MRT_VEC_BINARY(==, bool, MRT_EQUAL)
MRT_VEC_BINARY(!=, bool, MRT_UNEQUAL)
MRT_VEC_BINARY(&&, bool, MRT_BOTH)
MRT_VEC_BINARY(||, bool, MRT_EITHER)

#define MRT_FOR_VEC_BINARY(M) M(+) M(-) M(*) M(/) M(%) M(&) M(|) M(^) M(<<) M(>>)
#define MRT_FOR_VEC_COMPARISON(M) M(<) M(>) M(<=) M(>=) M(==) M(!=) M(&&) M(||)

// clang-format off: it would split `##=`
#define MRT_VEC_ASSIGN(OP)                                                                                             \
  template <typename T, int N> constexpr MRT_FUNC vec<T, N> &operator OP##=(vec<T, N> &a, vec<T, N> b) {               \
    return a = a OP b;                                                                                                 \
  }                                                                                                                    \
  template <typename T, int N, typename S, mrt::if_scalar_beside<S, T> = 0>                                            \
  constexpr MRT_FUNC vec<T, N> &operator OP##=(vec<T, N> &a, S b) {                                                    \
    return a = a OP b;                                                                                                 \
  }
// clang-format on
MRT_FOR_VEC_BINARY(MRT_VEC_ASSIGN)
template <typename T, typename U, int N, enable_if_t<!__is_same(T, U) && __is_integral(U), int> = 0>
constexpr MRT_FUNC vec<T, N> &operator<<=(vec<T, N> &a, vec<U, N> b) {
  return a = a << b;
}
template <typename T, typename U, int N, enable_if_t<!__is_same(T, U) && __is_integral(U), int> = 0>
constexpr MRT_FUNC vec<T, N> &operator>>=(vec<T, N> &a, vec<U, N> b) {
  return a = a >> b;
}

#define MRT_VEC_UNARY(OP, R, E)                                                                                        \
  template <typename T, int N> constexpr MRT_FUNC vec<R, N> operator OP(vec<T, N> a) {                                 \
    typedef vec<R, N> result;                                                                                          \
    MRT_COMPONENTS(result, E)                                                                                          \
  }
#define MRT_PLUS(c) T(+a.c)
#define MRT_MINUS(c) T(-a.c)
#define MRT_COMPLEMENT(c) T(~a.c)
#define MRT_NOT(c) (!a.c)
MRT_VEC_UNARY(+, T, MRT_PLUS)
MRT_VEC_UNARY(-, T, MRT_MINUS)
MRT_VEC_UNARY(~, T, MRT_COMPLEMENT)
MRT_VEC_UNARY(!, bool, MRT_NOT)

template <typename T, int N> constexpr MRT_FUNC vec<T, N> &operator++(vec<T, N> &a) { return a += T(1); }
template <typename T, int N> constexpr MRT_FUNC vec<T, N> &operator--(vec<T, N> &a) { return a -= T(1); }
template <typename T, int N> constexpr MRT_FUNC vec<T, N> operator++(vec<T, N> &a, int) {
  vec<T, N> old = a;
  a += T(1);
  return old;
}
template <typename T, int N> constexpr MRT_FUNC vec<T, N> operator--(vec<T, N> &a, int) {
  vec<T, N> old = a;
  a -= T(1);
  return old;
}

// ---------------------------------------------------------------- names: float2, uint4, …
#define MRT_VEC_NAMES(T)                                                                                               \
  typedef vec<T, 2> T##2;                                                                                              \
  typedef vec<T, 3> T##3;                                                                                              \
  typedef vec<T, 4> T##4;                                                                                              \
  static_assert(sizeof(T##2) == 2 * sizeof(T) && sizeof(T##3) == 4 * sizeof(T) && sizeof(T##4) == 4 * sizeof(T), "");
#define MRT_FOR_VECTOR_ELEMENTS(M)                                                                                     \
  M(bool) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong) M(half) M(float) M(bfloat)
MRT_FOR_VECTOR_ELEMENTS(MRT_VEC_NAMES)

} // namespace metal

#define MRT_VEC_GLOBAL_NAMES(T) using metal::T##2, metal::T##3, metal::T##4;
MRT_FOR_VECTOR_ELEMENTS(MRT_VEC_GLOBAL_NAMES)

#endif
