// Integer functions (MSL 6.4, Table 6.4) for every integer type and its vectors. They are overloads for each type
// instead of templates, so that mixed types are as ambiguous as in Metal.
#ifndef MRT_INTEGER_H
#define MRT_INTEGER_H

#include "math.h"

#ifndef MRT_STRICT
namespace mrt {
namespace integer {

template <typename T> using Unsigned = metal::make_unsigned_t<T>;
template <typename T> constexpr uint width = 8 * sizeof(T);
template <typename T> constexpr T largest = metal::numeric_limits<T>::max();
template <typename T> constexpr T smallest = metal::numeric_limits<T>::min();
// A type that is wide enough for sums and products of two T.
template <typename T>
using Wide =
    metal::conditional_t<sizeof(T) == 8, metal::conditional_t<metal::is_signed_v<T>, __int128, unsigned __int128>,
                         metal::conditional_t<metal::is_signed_v<T>, long, ulong>>;
template <typename T> MRT_FUNC T saturated(Wide<T> x) {
  return x < Wide<T>(smallest<T>) ? smallest<T> : x > Wide<T>(largest<T>) ? largest<T> : T(x);
}

template <typename T> MRT_FUNC T abs(T x) { return x < T(0) ? T(-x) : x; }
template <typename T> MRT_FUNC T min(T x, T y) { return y < x ? y : x; }
template <typename T> MRT_FUNC T max(T x, T y) { return x < y ? y : x; }
template <typename T> MRT_FUNC T min3(T x, T y, T z) { return min(x, min(y, z)); }
template <typename T> MRT_FUNC T max3(T x, T y, T z) { return max(x, max(y, z)); }
template <typename T> MRT_FUNC T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }
template <typename T> MRT_FUNC T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <typename T> MRT_FUNC Unsigned<T> absdiff(T x, T y) {
  return Unsigned<T>(x > y ? Unsigned<T>(x) - Unsigned<T>(y) : Unsigned<T>(y) - Unsigned<T>(x));
}
// For unsigned types, compares instead of subtracting: a negative difference would wrap around.
template <typename T> MRT_FUNC T subsat(T x, T y) {
  if constexpr (!metal::is_signed_v<T>) return x < y ? T(0) : T(x - y);
  else return saturated<T>(Wide<T>(x) - Wide<T>(y));
}
template <typename T> MRT_FUNC T addsat(T x, T y) { return saturated<T>(Wide<T>(x) + Wide<T>(y)); }
template <typename T> MRT_FUNC T hadd(T x, T y) { return T((Wide<T>(x) + Wide<T>(y)) >> 1); }
template <typename T> MRT_FUNC T rhadd(T x, T y) { return T((Wide<T>(x) + Wide<T>(y) + 1) >> 1); }
template <typename T> MRT_FUNC T mulhi(T x, T y) { return T((Wide<T>(x) * Wide<T>(y)) >> width<T>); }
template <typename T> MRT_FUNC T madhi(T x, T y, T z) { return T(Unsigned<T>(mulhi(x, y)) + Unsigned<T>(z)); }
template <typename T> MRT_FUNC T madsat(T x, T y, T z) { return saturated<T>(Wide<T>(x) * Wide<T>(y) + Wide<T>(z)); }
// The operands' low 24 bits, sign-extended if T is signed.
template <typename T> MRT_FUNC T low24(T x) { return T(Unsigned<T>(x) << 8) >> 8; }
template <typename T> MRT_FUNC T mul24(T x, T y) { return T(Unsigned<T>(low24(x)) * Unsigned<T>(low24(y))); }
template <typename T> MRT_FUNC T mad24(T x, T y, T z) { return T(Unsigned<T>(mul24(x, y)) + Unsigned<T>(z)); }
template <typename T> MRT_FUNC T popcount(T x) { return T(__builtin_popcountl(ulong(Unsigned<T>(x)))); }
template <typename T> MRT_FUNC T clz(T x) {
  return x == T(0) ? T(width<T>) : T(__builtin_clzl(ulong(Unsigned<T>(x))) - int(64 - width<T>));
}
template <typename T> MRT_FUNC T ctz(T x) { return x == T(0) ? T(width<T>) : T(__builtin_ctzl(ulong(Unsigned<T>(x)))); }
template <typename T> MRT_FUNC T reverse_bits(T x) {
  return T(__builtin_bitreverse64(ulong(Unsigned<T>(x))) >> (64 - width<T>));
}
template <typename T> MRT_FUNC T rotate(T x, T count) {
  const uint left = uint(count) & (width<T> - 1), right = (width<T> - left) & (width<T> - 1);
  return T(Unsigned<T>(Unsigned<T>(x) << left) | Unsigned<T>(Unsigned<T>(x) >> right));
}
template <typename T> MRT_FUNC Unsigned<T> ones(uint bits) {
  return Unsigned<T>(bits >= 64 ? ~0ul : (1ul << bits) - 1);
}
template <typename T> MRT_FUNC T extract_bits(T x, uint offset, uint bits) {
  if (bits == 0) return T(0);
  const uint above = width<T> - offset - bits, shift = width<T> - bits;
  return T(T(Unsigned<T>(x) << (above & (width<T> - 1))) >> (shift & (width<T> - 1)));
}
template <typename T> MRT_FUNC T insert_bits(T base, T insert, uint offset, uint bits) {
  const Unsigned<T> mask = Unsigned<T>(ulong(ones<T>(bits)) << (offset & 63));
  return T((Unsigned<T>(base) & ~mask) | (Unsigned<T>(ulong(Unsigned<T>(insert)) << (offset & 63)) & mask));
}

} // namespace integer
} // namespace mrt
#endif

namespace metal {

#define MRT_FOR_INTEGERS(M, NAME)                                                                                      \
  M(char, NAME) M(uchar, NAME) M(short, NAME) M(ushort, NAME) M(int, NAME) M(uint, NAME) M(long, NAME) M(ulong, NAME)
#define MRT_INTEGER_OF1(T, NAME) MRT_DEFINE(T NAME(T x), return mrt::integer::NAME(x);)
#define MRT_INTEGER_OF2(T, NAME) MRT_DEFINE(T NAME(T x, T y), return mrt::integer::NAME(x, y);)
#define MRT_INTEGER_OF3(T, NAME) MRT_DEFINE(T NAME(T x, T y, T z), return mrt::integer::NAME(x, y, z);)
#define MRT_INTEGER1(NAME) MRT_FOR_INTEGERS(MRT_INTEGER_OF1, NAME) MRT_VECTOR1(NAME, integer, mrt::same)
#define MRT_INTEGER2(NAME) MRT_FOR_INTEGERS(MRT_INTEGER_OF2, NAME) MRT_VECTOR2(NAME, integer, mrt::same)
#define MRT_INTEGER3(NAME) MRT_FOR_INTEGERS(MRT_INTEGER_OF3, NAME) MRT_VECTOR3(NAME, integer, mrt::same)

MRT_INTEGER1(abs)
MRT_INTEGER1(clz)
MRT_INTEGER1(ctz)
MRT_INTEGER1(popcount)
MRT_INTEGER1(reverse_bits)
MRT_INTEGER2(addsat)
MRT_INTEGER2(hadd)
MRT_INTEGER2(max)
MRT_INTEGER2(min)
MRT_INTEGER2(mulhi)
MRT_INTEGER2(rhadd)
MRT_INTEGER2(rotate)
MRT_INTEGER2(subsat)
MRT_INTEGER3(clamp)
MRT_INTEGER3(madhi)
MRT_INTEGER3(madsat)
MRT_INTEGER3(max3)
MRT_INTEGER3(median3)
MRT_INTEGER3(min3)

#define MRT_ABSDIFF(T, NAME) MRT_DEFINE(make_unsigned_t<T> NAME(T x, T y), return mrt::integer::NAME(x, y);)
MRT_FOR_INTEGERS(MRT_ABSDIFF, absdiff)
MRT_VECTOR2(absdiff, integer, make_unsigned_t)

MRT_INTEGER_OF2(int, mul24)
MRT_INTEGER_OF2(uint, mul24)
MRT_INTEGER_OF3(int, mad24)
MRT_INTEGER_OF3(uint, mad24)
MRT_VECTOR2(mul24, integer, mrt::same)
MRT_VECTOR3(mad24, integer, mrt::same)

#define MRT_BIT_FIELDS(T, NAME)                                                                                        \
  MRT_DEFINE(T extract_bits(T x, uint offset, uint bits), return mrt::integer::extract_bits(x, offset, bits);)         \
  MRT_DEFINE(T insert_bits(T base, T insert, uint offset, uint bits),                                                  \
             return mrt::integer::insert_bits(base, insert, offset, bits);)
MRT_FOR_INTEGERS(MRT_BIT_FIELDS, )
template <typename T, int N> MRT_FUNC vec<T, N> extract_bits(vec<T, N> x, uint offset, uint bits) {
  for (int i = 0; i < N; ++i) x[i] = extract_bits(x[i], offset, bits);
  return x;
}
template <typename T, int N> MRT_FUNC vec<T, N> insert_bits(vec<T, N> base, vec<T, N> insert, uint offset, uint bits) {
  for (int i = 0; i < N; ++i) base[i] = insert_bits(base[i], insert[i], offset, bits);
  return base;
}

#ifdef MRT_SCALAR_BFLOAT
// A bfloat converts to integers as well as to float, and these functions convert it to float. They are templates, so
// that a program's functions of these names for bfloat are preferred.
#define MRT_OF_BFLOAT template <typename B, MRT_IF(__is_same(B, bfloat))>
MRT_OF_BFLOAT MRT_FUNC float abs(B x) { return abs(float(x)); }
#define MRT_BFLOAT2(NAME)                                                                                              \
  MRT_OF_BFLOAT MRT_FUNC float NAME(B x, B y) { return NAME(float(x), float(y)); }                                     \
  template <typename I, MRT_IF(__is_integral(I))> MRT_FUNC float NAME(bfloat x, I y) {                                 \
    return NAME(float(x), float(y));                                                                                   \
  }                                                                                                                    \
  template <typename I, MRT_IF(__is_integral(I))> MRT_FUNC float NAME(I x, bfloat y) {                                 \
    return NAME(float(x), float(y));                                                                                   \
  }
#define MRT_BFLOAT3(NAME)                                                                                              \
  MRT_OF_BFLOAT MRT_FUNC float NAME(B x, B y, B z) { return NAME(float(x), float(y), float(z)); }
MRT_BFLOAT2(min)
MRT_BFLOAT2(max)
MRT_BFLOAT3(min3)
MRT_BFLOAT3(max3)
MRT_BFLOAT3(median3)
#endif

} // namespace metal
#endif
