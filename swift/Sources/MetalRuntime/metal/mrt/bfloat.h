// bfloat (MSL 2.1): the upper half of a float. An integer converts to it implicitly, and it to a float; a float or a half
// becomes a bfloat only by a cast.
//
// Flat: clang's __bf16, which has the arithmetic and converts more freely. Strict: a class with MSL's conversions.
#ifndef MRT_BFLOAT_H
#define MRT_BFLOAT_H

namespace mrt {
// The bits of a float as a bfloat: round to nearest, ties to even; a NaN stays one.
__attribute__((__always_inline__, __nodebug__)) constexpr inline ushort bfloat_bits(float value) {
  const uint bits = __builtin_bit_cast(uint, value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return ushort((is_nan ? bits | 0x00400000u : bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
} // namespace mrt

#ifndef MRT_STRICT

typedef __bf16 bfloat;

// x86 has no instruction that rounds a float to a bfloat: the compiler calls this.
extern "C" __attribute__((__used__, __weak__, __visibility__("hidden"), __nodebug__, disable_sanitizer_instrumentation))
inline bfloat __truncsfbf2(float value) {
  return __builtin_bit_cast(bfloat, mrt::bfloat_bits(value));
}

#else

namespace mrt {
template <bool B> struct if_true {};
template <> struct if_true<true> { typedef int type; };
} // namespace mrt
#define MRT_IF(...) typename mrt::if_true<(__VA_ARGS__)>::type = 0

// The constructors of an object in the given space. The last one copies from the constant space; they are templates, so that the
// class stays trivial.
#define MRT_BFLOAT_CONSTRUCTORS(SPACE)                                                                                 \
  template <typename I, MRT_IF(__is_integral(I) || __is_enum(I))>                                                      \
  constexpr bfloat(I value) SPACE : bits(rounded(float(value))) {}                                                     \
  template <typename F, MRT_IF(__is_floating_point(F))>                                                                \
  constexpr explicit bfloat(F value) SPACE : bits(rounded(float(value))) {}                                            \
  template <typename B, MRT_IF(__is_same(B, bfloat))> constexpr bfloat(const __constant B &other) SPACE : bits(other.bits) {}

struct bfloat {
  ushort bits;

  bfloat() = default;
  MRT_BFLOAT_CONSTRUCTORS()
  MRT_BFLOAT_CONSTRUCTORS(__constant)
  template <typename B, MRT_IF(__is_same(B, bfloat))> bfloat &operator=(const __constant B &other) {
    bits = other.bits;
    return *this;
  }

  template <typename F, MRT_IF(__is_same(F, float))> constexpr operator F() const { return value(bits); }
  template <typename F, MRT_IF(__is_same(F, float))> constexpr operator F() const __constant { return value(bits); }
  template <typename A, MRT_IF(__is_arithmetic(A) && !__is_same(A, float))> constexpr explicit operator A() const {
    return A(value(bits));
  }
  template <typename A, MRT_IF(__is_arithmetic(A) && !__is_same(A, float))> constexpr explicit operator A() const __constant {
    return A(value(bits));
  }

  static constexpr ushort rounded(float value) { return mrt::bfloat_bits(value); }
  static constexpr float value(ushort bits) { return __builtin_bit_cast(float, uint(bits) << 16); }
};

#define MRT_BFLOAT_ARITHMETIC(OP)                                                                                      \
  constexpr inline bfloat operator OP(bfloat a, bfloat b) { return bfloat(float(a) OP float(b)); }                     \
  template <typename I, MRT_IF(__is_integral(I))> constexpr bfloat operator OP(bfloat a, I b) { return a OP bfloat(b); } \
  template <typename I, MRT_IF(__is_integral(I))> constexpr bfloat operator OP(I a, bfloat b) { return bfloat(a) OP b; } \
  constexpr inline bfloat &operator OP##=(bfloat &a, bfloat b) { return a = a OP b; }
MRT_BFLOAT_ARITHMETIC(+)
MRT_BFLOAT_ARITHMETIC(-)
MRT_BFLOAT_ARITHMETIC(*)
MRT_BFLOAT_ARITHMETIC(/)

#define MRT_BFLOAT_COMPARISON(OP)                                                                                      \
  constexpr inline bool operator OP(bfloat a, bfloat b) { return float(a) OP float(b); }                               \
  template <typename I, MRT_IF(__is_integral(I))> constexpr bool operator OP(bfloat a, I b) { return a OP bfloat(b); } \
  template <typename I, MRT_IF(__is_integral(I))> constexpr bool operator OP(I a, bfloat b) { return bfloat(a) OP b; }
MRT_BFLOAT_COMPARISON(<)
MRT_BFLOAT_COMPARISON(>)
MRT_BFLOAT_COMPARISON(<=)
MRT_BFLOAT_COMPARISON(>=)
MRT_BFLOAT_COMPARISON(==)
MRT_BFLOAT_COMPARISON(!=)

constexpr inline bfloat operator+(bfloat a) { return a; }
constexpr inline bfloat operator-(bfloat a) { return bfloat(-float(a)); }
constexpr inline bool operator!(bfloat a) { return float(a) == 0; }
constexpr inline bfloat &operator++(bfloat &a) { return a += 1; }
constexpr inline bfloat &operator--(bfloat &a) { return a -= 1; }

#endif
#endif
