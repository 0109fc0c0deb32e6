// Pixel data types (MSL 2.7): a pixel as a texture stores it, in device or threadgroup memory or a struct. A pixel
// converts to and from its ALU type, `rgba8unorm<half4>` to and from half4, and is only assigned and compared.
#ifndef MRT_PIXEL_H
#define MRT_PIXEL_H

#include "pack.h"

namespace mrt {

template <typename U> MRT_FUNC U store_unorm(float x) { return U(pack_unorm(x, 0, 8 * sizeof(U))); }
template <typename U> MRT_FUNC U store_snorm(float x) { return U(pack_snorm(x, 0, 8 * sizeof(U))); }
template <typename U> MRT_FUNC float load_unorm(U x) { return unpack_unorm(uint(x), 0, 8 * sizeof(U)); }
template <typename U> MRT_FUNC float load_snorm(U x) { return unpack_snorm(uint(x), 0, 8 * sizeof(U)); }

// A float without a sign: 5 bits of exponent, and the rest mantissa. Negative numbers become 0.
MRT_FUNC uint store_small_float(float x, uint mantissa) {
  const uint infinity = 31u << mantissa, bits = __builtin_bit_cast(uint, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return infinity + 1; // NaN
  if (bits >> 31 || bits == 0) return 0;
  if (bits == 0x7f800000u) return infinity;
  int exponent;
  metal::precise::frexp(x, exponent); // x is in [2^(exponent - 1), 2^exponent)
  exponent = metal::max(exponent - 1, -14);
  const float digits = metal::rint(metal::precise::ldexp(x, int(mantissa) - exponent));
  return metal::min((uint(exponent + 14) << mantissa) + uint(digits), infinity);
}
MRT_FUNC float load_small_float(uint bits, uint mantissa) {
  const uint half_bits = (bits & ((32u << mantissa) - 1u)) << (10 - mantissa);
  return float(__builtin_bit_cast(half, ushort(half_bits)));
}
MRT_FUNC uint store_rg11b10f(float3 v) {
  return store_small_float(v.x, 6) | store_small_float(v.y, 6) << 11 | store_small_float(v.z, 5) << 22;
}
MRT_FUNC float3 load_rg11b10f(uint bits) {
  return float3(load_small_float(bits, 6), load_small_float(bits >> 11, 6), load_small_float(bits >> 22, 5));
}

// The formulas of the specification of EXT_texture_shared_exponent: 9 bits per component, with one exponent.
MRT_FUNC uint store_rgb9e5(float3 v) {
  const float3 c = metal::precise::clamp(v, 0.0f, 65408.0f);
  const float largest = metal::precise::max(c.x, metal::precise::max(c.y, c.z));
  int exponent;
  metal::precise::frexp(largest, exponent);
  exponent = largest > 0 ? metal::max(exponent, -15) : -15;
  if (metal::floor(metal::precise::ldexp(largest, 9 - exponent) + 0.5f) == 512) exponent++;
  const float scale = metal::precise::ldexp(1.0f, 9 - exponent);
  const uint3 digits = uint3(metal::floor(c * scale + 0.5f));
  return digits.x | digits.y << 9 | digits.z << 18 | uint(exponent + 15) << 27;
}
MRT_FUNC float3 load_rgb9e5(uint bits) {
  const float scale = metal::precise::ldexp(1.0f, int(bits >> 27) - 24);
  return float3(float(bits & 511u), float(bits >> 9 & 511u), float(bits >> 18 & 511u)) * scale;
}

MRT_FUNC uint store_rgb10a2(float4 v) { return metal::pack_float_to_unorm10a2(v); }
MRT_FUNC float4 load_rgb10a2(uint bits) { return metal::unpack_unorm10a2_to_float(bits); }

} // namespace mrt

namespace metal {

#ifdef MRT_STRICT
#define MRT_PIXEL_OF_CONSTANT MRT_METHOD operator T() const MRT_CONSTANT;
#else
#define MRT_PIXEL_OF_CONSTANT
#endif

// WIDE: the ALU type in float. NARROW: the ALU type in half, or WIDE where MSL allows only float.
#define MRT_PIXEL_TYPE(NAME, WIDE, NARROW, FIELDS, SET, GET)                                                           \
  template <typename T> struct NAME {                                                                                  \
    static_assert(__is_same(T, WIDE) || __is_same(T, NARROW), #NAME ": " #WIDE " or " #NAME "'s type in half");        \
    FIELDS                                                                                                             \
    constexpr NAME() = default;                                                                                        \
    MRT_METHOD NAME(T value) {                                                                                         \
      const WIDE v = WIDE(value);                                                                                      \
      SET                                                                                                              \
    }                                                                                                                  \
    MRT_METHOD operator T() const { return T(GET); }                                                                   \
    MRT_PIXEL_OF_CONSTANT                                                                                              \
  };                                                                                                                   \
  MRT_PIXEL_COMPARISON(NAME, ==)                                                                                       \
  MRT_PIXEL_COMPARISON(NAME, !=)
#define MRT_PIXEL_COMPARISON(NAME, OP)                                                                                 \
  template <typename T> MRT_FUNC auto operator OP(NAME<T> a, NAME<T> b) { return T(a) OP T(b); }                       \
  template <typename T> MRT_FUNC auto operator OP(NAME<T> a, T b) { return T(a) OP b; }                                \
  template <typename T> MRT_FUNC auto operator OP(T a, NAME<T> b) { return a OP T(b); }

// LAYOUT: unorm or snorm; U: the unsigned integer of a component.
#define MRT_PIXEL1(NAME, NARROW, LAYOUT, U)                                                                            \
  MRT_PIXEL_TYPE(NAME, float, NARROW, U x;, x = mrt::store_##LAYOUT<U>(v);, mrt::load_##LAYOUT(x))
#define MRT_PIXEL2(NAME, NARROW, LAYOUT, U)                                                                            \
  MRT_PIXEL_TYPE(NAME, float2, NARROW, U x; U y;, x = mrt::store_##LAYOUT<U>(v.x); y = mrt::store_##LAYOUT<U>(v.y);    \
                 , float2(mrt::load_##LAYOUT(x), mrt::load_##LAYOUT(y)))
#define MRT_PIXEL4(NAME, NARROW, LAYOUT, U)                                                                            \
  MRT_PIXEL_TYPE(NAME, float4, NARROW, U x; U y; U z; U w;, x = mrt::store_##LAYOUT<U>(v.x);                           \
                 y = mrt::store_##LAYOUT<U>(v.y); z = mrt::store_##LAYOUT<U>(v.z); w = mrt::store_##LAYOUT<U>(v.w);    \
                 , float4(mrt::load_##LAYOUT(x), mrt::load_##LAYOUT(y), mrt::load_##LAYOUT(z), mrt::load_##LAYOUT(w)))
// All components in one integer.
#define MRT_PIXEL_WORD(NAME, WIDE, NARROW)                                                                             \
  MRT_PIXEL_TYPE(NAME, WIDE, NARROW, uint bits;, bits = mrt::store_##NAME(v);, mrt::load_##NAME(bits))

MRT_PIXEL1(r8unorm, half, unorm, uchar)
MRT_PIXEL1(r8snorm, half, snorm, uchar)
MRT_PIXEL1(r16unorm, float, unorm, ushort)
MRT_PIXEL1(r16snorm, float, snorm, ushort)
MRT_PIXEL2(rg8unorm, half2, unorm, uchar)
MRT_PIXEL2(rg8snorm, half2, snorm, uchar)
MRT_PIXEL2(rg16unorm, float2, unorm, ushort)
MRT_PIXEL2(rg16snorm, float2, snorm, ushort)
MRT_PIXEL4(rgba8unorm, half4, unorm, uchar)
MRT_PIXEL4(rgba8snorm, half4, snorm, uchar)
MRT_PIXEL4(rgba16unorm, float4, unorm, ushort)
MRT_PIXEL4(rgba16snorm, float4, snorm, ushort)
MRT_PIXEL_TYPE(srgba8unorm, float4, half4, uchar x; uchar y; uchar z; uchar w;
               , x = mrt::store_unorm<uchar>(mrt::to_srgb(v.x)); y = mrt::store_unorm<uchar>(mrt::to_srgb(v.y));
               z = mrt::store_unorm<uchar>(mrt::to_srgb(v.z)); w = mrt::store_unorm<uchar>(v.w);
               , float4(mrt::from_srgb(mrt::load_unorm(x)), mrt::from_srgb(mrt::load_unorm(y)),
                        mrt::from_srgb(mrt::load_unorm(z)), mrt::load_unorm(w)))
MRT_PIXEL_WORD(rgb10a2, float4, half4)
MRT_PIXEL_WORD(rg11b10f, float3, half3)
MRT_PIXEL_WORD(rgb9e5, float3, half3)

} // namespace metal
#endif
