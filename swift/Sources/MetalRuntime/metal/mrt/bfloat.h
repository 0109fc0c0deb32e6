// bfloat (MSL 2.1): the upper half of a float. An integer converts to it implicitly, and it converts to a float; a
// float or a half becomes a bfloat only by a cast. It is a class, since clang's __bf16 converts implicitly in every
// direction, and not to or from half even by a cast. Each operation computes in float and rounds.
//
// Some uses need __bf16, which is a scalar type of the compiler (`uint u = b`, or an object that converts to bool
// through a bfloat). So a program that the flat compilation rejects is tried once more with MRT_SCALAR_BFLOAT.
#ifndef MRT_BFLOAT_H
#define MRT_BFLOAT_H

namespace mrt {

template <bool B> struct if_true {};
template <> struct if_true<true> {
  typedef int type;
};
#define MRT_IF(...) typename mrt::if_true<(__VA_ARGS__)>::type = 0

#ifdef MRT_GPU
// One instruction, which is faster than the one for a single number.
MRT_FUNC uint rounded_pair(float first, float second) {
  uint word;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
#endif

// The bits of a float rounded to a bfloat: to nearest, ties to even; NaN stays NaN.
constexpr MRT_FUNC ushort bfloat_bits(float value) {
#ifdef MRT_GPU
  if (!__builtin_is_constant_evaluated()) return ushort(rounded_pair(value, 0));
#endif
  const uint bits = __builtin_bit_cast(uint, value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return ushort((is_nan ? bits | 0x00400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
constexpr MRT_FUNC float bfloat_value(ushort bits) { return __builtin_bit_cast(float, uint(bits) << 16); }

} // namespace mrt

#ifdef MRT_SCALAR_BFLOAT

typedef __bf16 bfloat;

// The function that the compiler calls to round a float to a bfloat.
extern "C" __attribute__((__visibility__("hidden"), __used__, __noinline__, __nodebug__)) inline bfloat
__truncsfbf2(float value) {
  return __builtin_bit_cast(bfloat, mrt::bfloat_bits(value));
}

// Conversions between half and bfloat through float, for the library and for the program's static_cast.
namespace mrt {
template <typename A, typename B>
constexpr bool is_narrow_pair =
    (__is_same(A, _Float16) && __is_same(B, bfloat)) || (__is_same(A, bfloat) && __is_same(B, _Float16));
template <typename To, typename From> constexpr MRT_FUNC To cast(From &&value) {
  if constexpr (is_narrow_pair<__remove_cv(To), __remove_cv(__remove_reference_t(From))>) return To(float(value));
  else return (To)(static_cast<From &&>(value));
}
// Constructs `T()` and `T(a, b)`; in a template, T may be a bfloat.
template <typename To> constexpr MRT_FUNC To cast() { return To(); }
template <typename To, typename A, typename B, typename... C> constexpr MRT_FUNC To cast(A &&a, B &&b, C &&...c) {
  return To(static_cast<A &&>(a), static_cast<B &&>(b), static_cast<C &&>(c)...);
}
// `(T)x` is CastTo<T>()->*x, and `(T)(U)x` is CastTo<T>()->*CastTo<U>()->*x: operator->* has the precedence that a cast
// needs.
template <typename To, typename... First> struct CastTo {
  template <typename From> constexpr MRT_METHOD To operator->*(From &&value) const {
    if constexpr (sizeof...(First)) return cast<To>(CastTo<First...>()->*static_cast<From &&>(value));
    else return cast<To>(static_cast<From &&>(value));
  }
  template <typename From> constexpr MRT_METHOD auto operator->*(CastTo<From>) const {
    return CastTo<To, First..., From>();
  }
};
} // namespace mrt
#define MRT_CAST(T, x) mrt::cast<T>(x)

#else

#define MRT_CAST(T, x) T(x)

#define MRT_BFLOAT_CONSTRUCTORS(SPACE)                                                                                 \
  template <typename I, MRT_IF(__is_integral(I) || __is_enum(I))>                                                      \
  constexpr MRT_METHOD bfloat(I value) SPACE : mrt_bits(mrt::bfloat_bits(float(value))) {}                             \
  template <typename F, MRT_IF(__is_floating_point(F))>                                                                \
  constexpr MRT_METHOD explicit bfloat(F value) SPACE : mrt_bits(mrt::bfloat_bits(float(value))) {}                    \
  MRT_BFLOAT_COPY(SPACE)
#define MRT_BFLOAT_CONVERSIONS(SPACE)                                                                                  \
  template <typename F, MRT_IF(__is_same(F, float))> constexpr MRT_METHOD operator F() const SPACE {                   \
    return mrt::bfloat_value(mrt_bits);                                                                                \
  }                                                                                                                    \
  template <typename A, MRT_IF(__is_arithmetic(A) && !__is_same(A, float))>                                            \
  constexpr MRT_METHOD explicit operator A() const SPACE {                                                             \
    return A(mrt::bfloat_value(mrt_bits));                                                                             \
  }
// From the constant address space. These are templates, so that the class stays trivial.
#ifdef MRT_STRICT
#define MRT_BFLOAT_COPY(SPACE)                                                                                         \
  template <typename B, MRT_IF(__is_same(B, bfloat))>                                                                  \
  constexpr bfloat(const MRT_CONSTANT B &other) SPACE : mrt_bits(other.mrt_bits) {}
#else
#define MRT_BFLOAT_COPY(SPACE)
#endif

struct bfloat {
  ushort mrt_bits;

  bfloat() = default;
  MRT_IN_EACH_SPACE(MRT_BFLOAT_CONSTRUCTORS)
  MRT_IN_EACH_SPACE(MRT_BFLOAT_CONVERSIONS)
#ifdef MRT_STRICT
  template <typename B, MRT_IF(__is_same(B, bfloat))> bfloat &operator=(const MRT_CONSTANT B &other) {
    return *this = bfloat(other);
  }
#endif
};

// clang-format off: it would split `##=`
#define MRT_BFLOAT_ARITHMETIC(OP)                                                                                      \
  constexpr MRT_FUNC bfloat operator OP(bfloat a, bfloat b) { return bfloat(float(a) OP float(b)); }                   \
  template <typename I, MRT_IF(__is_integral(I))> constexpr MRT_FUNC bfloat operator OP(bfloat a, I b) {               \
    return a OP bfloat(b);                                                                                             \
  }                                                                                                                    \
  template <typename I, MRT_IF(__is_integral(I))> constexpr MRT_FUNC bfloat operator OP(I a, bfloat b) {               \
    return bfloat(a) OP b;                                                                                             \
  }                                                                                                                    \
  constexpr MRT_FUNC bfloat &operator OP##=(bfloat &a, bfloat b) { return a = a OP b; }
// clang-format on
MRT_BFLOAT_ARITHMETIC(+)
MRT_BFLOAT_ARITHMETIC(-)
MRT_BFLOAT_ARITHMETIC(*)
MRT_BFLOAT_ARITHMETIC(/)

#define MRT_BFLOAT_COMPARISON(OP)                                                                                      \
  constexpr MRT_FUNC bool operator OP(bfloat a, bfloat b) { return float(a) OP float(b); }                             \
  template <typename I, MRT_IF(__is_integral(I))> constexpr MRT_FUNC bool operator OP(bfloat a, I b) {                 \
    return a OP bfloat(b);                                                                                             \
  }                                                                                                                    \
  template <typename I, MRT_IF(__is_integral(I))> constexpr MRT_FUNC bool operator OP(I a, bfloat b) {                 \
    return bfloat(a) OP b;                                                                                             \
  }
MRT_BFLOAT_COMPARISON(<)
MRT_BFLOAT_COMPARISON(>)
MRT_BFLOAT_COMPARISON(<=)
MRT_BFLOAT_COMPARISON(>=)
MRT_BFLOAT_COMPARISON(==)
MRT_BFLOAT_COMPARISON(!=)

constexpr MRT_FUNC bfloat operator+(bfloat a) { return a; }
constexpr MRT_FUNC bfloat operator-(bfloat a) { return bfloat(-float(a)); }
constexpr MRT_FUNC bool operator!(bfloat a) { return float(a) == 0; }
constexpr MRT_FUNC bfloat &operator++(bfloat &a) { return a += 1; }
constexpr MRT_FUNC bfloat &operator--(bfloat &a) { return a -= 1; }
constexpr MRT_FUNC bfloat operator++(bfloat &a, int) {
  const bfloat old = a;
  a += 1;
  return old;
}
constexpr MRT_FUNC bfloat operator--(bfloat &a, int) {
  const bfloat old = a;
  a -= 1;
  return old;
}

#endif
#endif
