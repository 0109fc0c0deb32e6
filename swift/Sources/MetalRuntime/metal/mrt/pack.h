// Packing and unpacking of normalized components (MSL 6.13). The first component is in the lowest bits.
#ifndef MRT_PACK_H
#define MRT_PACK_H

#include "matrix.h"

namespace mrt {

// Fields of a packed integer: the position and width of a component, and how a value in [0, 1] or [-1, 1] is mapped to
// it.
MRT_FUNC uint pack_unorm(float x, uint offset, uint bits) {
  const float top = float((1u << bits) - 1u);
  return uint(metal::rint(metal::precise::saturate(x) * top)) << offset;
}
MRT_FUNC uint pack_snorm(float x, uint offset, uint bits) {
  const float top = float((1u << (bits - 1)) - 1u);
  return (uint(int(metal::rint(metal::precise::clamp(x, -1.0f, 1.0f) * top))) & ((1u << bits) - 1u)) << offset;
}
MRT_FUNC float unpack_unorm(uint x, uint offset, uint bits) {
  const uint top = (1u << bits) - 1u;
  return float(x >> offset & top) / float(top);
}
MRT_FUNC float unpack_snorm(uint x, uint offset, uint bits) {
  const int value = int(x << (32 - bits - offset)) >> (32 - bits);
  return metal::precise::max(float(value) / float((1u << (bits - 1)) - 1u), -1.0f);
}

// The sRGB transfer function (IEC 61966-2-1).
MRT_FUNC float to_srgb(float x) {
  x = metal::precise::saturate(x);
  return x <= 0.0031308f ? 12.92f * x : 1.055f * metal::precise::pow(x, 1.0f / 2.4f) - 0.055f;
}
MRT_FUNC float from_srgb(float x) {
  return x <= 0.04045f ? x / 12.92f : metal::precise::pow((x + 0.055f) / 1.055f, 2.4f);
}

} // namespace mrt

namespace metal {

// SUFFIX: the layout; UINT: the packed type; KIND: unorm or snorm; the rest: the width of each component.
#define MRT_PACK2(SUFFIX, UINT, KIND, B)                                                                               \
  MRT_FUNC UINT pack_float_to_##SUFFIX(float2 v) {                                                                     \
    return UINT(mrt::pack_##KIND(v.x, 0, B) | mrt::pack_##KIND(v.y, B, B));                                            \
  }                                                                                                                    \
  MRT_FUNC UINT pack_half_to_##SUFFIX(half2 v) { return pack_float_to_##SUFFIX(float2(v)); }                           \
  MRT_FUNC float2 unpack_##SUFFIX##_to_float(UINT x) {                                                                 \
    return float2(mrt::unpack_##KIND(x, 0, B), mrt::unpack_##KIND(x, B, B));                                           \
  }                                                                                                                    \
  MRT_FUNC half2 unpack_##SUFFIX##_to_half(UINT x) { return half2(unpack_##SUFFIX##_to_float(x)); }
MRT_PACK2(snorm2x16, uint, snorm, 16)
MRT_PACK2(unorm2x16, uint, unorm, 16)

#define MRT_PACK4(SUFFIX, KIND, B, W)                                                                                  \
  MRT_FUNC uint pack_float_to_##SUFFIX(float4 v) {                                                                     \
    return mrt::pack_##KIND(v.x, 0, B) | mrt::pack_##KIND(v.y, B, B) | mrt::pack_##KIND(v.z, 2 * B, B) |               \
           mrt::pack_##KIND(v.w, 3 * B, W);                                                                            \
  }                                                                                                                    \
  MRT_FUNC uint pack_half_to_##SUFFIX(half4 v) { return pack_float_to_##SUFFIX(float4(v)); }                           \
  MRT_FUNC float4 unpack_##SUFFIX##_to_float(uint x) {                                                                 \
    return float4(mrt::unpack_##KIND(x, 0, B), mrt::unpack_##KIND(x, B, B), mrt::unpack_##KIND(x, 2 * B, B),           \
                  mrt::unpack_##KIND(x, 3 * B, W));                                                                    \
  }                                                                                                                    \
  MRT_FUNC half4 unpack_##SUFFIX##_to_half(uint x) { return half4(unpack_##SUFFIX##_to_float(x)); }
MRT_PACK4(snorm4x8, snorm, 8, 8)
MRT_PACK4(unorm4x8, unorm, 8, 8)
MRT_PACK4(unorm10a2, unorm, 10, 2)

// Red is in the highest bits.
MRT_FUNC ushort pack_float_to_unorm565(float3 v) {
  return ushort(mrt::pack_unorm(v.x, 11, 5) | mrt::pack_unorm(v.y, 5, 6) | mrt::pack_unorm(v.z, 0, 5));
}
MRT_FUNC ushort pack_half_to_unorm565(half3 v) { return pack_float_to_unorm565(float3(v)); }
MRT_FUNC float3 unpack_unorm565_to_float(ushort x) {
  return float3(mrt::unpack_unorm(x, 11, 5), mrt::unpack_unorm(x, 5, 6), mrt::unpack_unorm(x, 0, 5));
}
MRT_FUNC half3 unpack_unorm565_to_half(ushort x) { return half3(unpack_unorm565_to_float(x)); }

// The first three components are in sRGB, and the fourth (alpha) is linear.
MRT_FUNC uint pack_float_to_srgb_unorm4x8(float4 v) {
  return pack_float_to_unorm4x8(float4(mrt::to_srgb(v.x), mrt::to_srgb(v.y), mrt::to_srgb(v.z), v.w));
}
MRT_FUNC uint pack_half_to_srgb_unorm4x8(half4 v) { return pack_float_to_srgb_unorm4x8(float4(v)); }
MRT_FUNC float4 unpack_unorm4x8_srgb_to_float(uint x) {
  const float4 v = unpack_unorm4x8_to_float(x);
  return float4(mrt::from_srgb(v.x), mrt::from_srgb(v.y), mrt::from_srgb(v.z), v.w);
}
MRT_FUNC half4 unpack_unorm4x8_srgb_to_half(uint x) { return half4(unpack_unorm4x8_srgb_to_float(x)); }

} // namespace metal
#endif
