// Element types: how each is stored, its compute type, and conversions.
//
// float16 and bfloat16 are storage types: they are widened to float32 for computation, and the result is rounded once,
// to nearest even. A float64 or an integer is first converted to float32, as in PyTorch. All conversions give the same
// bits on every instruction set, NaN included: a NaN keeps its sign and the upper bits of its payload, and becomes
// quiet. The functions are in the namespace of an instruction set, since each set compiles them to different machine
// code.
#pragma once

#include "isa.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace orchard {

enum class DType : int { float64, float32, float16, bfloat16, int64, int32, uint32, int8, uint8, boolean };
inline constexpr int dtype_count = 10;
inline constexpr const char *dtype_names[dtype_count] = {"float64", "float32", "float16", "bfloat16", "int64",
                                                         "int32",   "uint32",  "int8",    "uint8",    "bool"};
inline constexpr int64_t dtype_sizes[dtype_count] = {8, 4, 2, 2, 8, 4, 4, 1, 1, 1};

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

// The storage type of a dtype, and the type in which it is computed.
template <DType> struct StorageOf;
template <> struct StorageOf<DType::float64> {
  using type = double;
};
template <> struct StorageOf<DType::float32> {
  using type = float;
};
template <> struct StorageOf<DType::float16> {
  using type = Float16;
};
template <> struct StorageOf<DType::bfloat16> {
  using type = BFloat16;
};
template <> struct StorageOf<DType::int64> {
  using type = int64_t;
};
template <> struct StorageOf<DType::int32> {
  using type = int32_t;
};
template <> struct StorageOf<DType::uint32> {
  using type = uint32_t;
};
template <> struct StorageOf<DType::int8> {
  using type = int8_t;
};
template <> struct StorageOf<DType::uint8> {
  using type = uint8_t;
};
template <> struct StorageOf<DType::boolean> {
  using type = Bool;
};
template <DType dtype> using Storage = typename StorageOf<dtype>::type;

template <class T> struct ComputeOf {
  using type = T;
};
template <> struct ComputeOf<Float16> {
  using type = float;
};
template <> struct ComputeOf<BFloat16> {
  using type = float;
};
template <> struct ComputeOf<Bool> {
  using type = bool;
};
template <class T> using Compute = typename ComputeOf<T>::type;

// A type as a value, for generic lambdas.
template <class T> struct Type {
  using type = T;
};

// Calls use(Type<storage>{}) for the storage type of a dtype.
template <class Use> inline __attribute__((always_inline)) decltype(auto) with_storage(DType dtype, Use &&use) {
  switch (dtype) {
  case DType::float64: return use(Type<double>{});
  case DType::float32: return use(Type<float>{});
  case DType::float16: return use(Type<Float16>{});
  case DType::bfloat16: return use(Type<BFloat16>{});
  case DType::int64: return use(Type<int64_t>{});
  case DType::int32: return use(Type<int32_t>{});
  case DType::uint32: return use(Type<uint32_t>{});
  case DType::int8: return use(Type<int8_t>{});
  case DType::uint8: return use(Type<uint8_t>{});
  case DType::boolean: break;
  }
  return use(Type<Bool>{});
}

namespace ORCHARD_ISA {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// ---------------------------------------------------------------- one element: storage to compute type

template <class T> inline T load(T value) { return value; }
inline bool load(Bool value) { return value.byte != 0; }
inline float load(BFloat16 value) { return float_of(uint32_t(value.bits) << 16); }

// Branch-free: changes the exponent's bias from 15 to 127. Infinity and NaN need another adjustment; a subtraction
// normalizes subnormals.
inline float load(Float16 value) {
  uint32_t magnitude = uint32_t(value.bits & 0x7fff) << 13;
  uint32_t exponent = magnitude & 0x0f800000;
  uint32_t normal = magnitude + ((127 - 15) << 23);
  uint32_t special = (normal + ((128 - 16) << 23)) | (magnitude > 0x0f800000 ? 0x00400000 : 0);
  uint32_t subnormal = bits_of(float_of(normal + (1 << 23)) - float_of(uint32_t(113) << 23));
  uint32_t chosen = exponent == 0x0f800000 ? special : exponent == 0 ? subnormal : normal;
  return float_of(chosen | uint32_t(value.bits & 0x8000) << 16);
}

// ---------------------------------------------------------------- one element: compute type to storage

template <class T> inline T store(Compute<T> value) { return value; }
template <> inline Bool store<Bool>(bool value) { return {uint8_t(value)}; }

// Rounds to nearest even by adding 0x7fff plus the lowest remaining bit. That could turn a NaN into infinity, so NaN is
// truncated instead.
template <> inline BFloat16 store<BFloat16>(float value) {
  uint32_t bits = bits_of(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t quiet = bits >> 16 | 0x40;
  return {uint16_t((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded)};
}

// Rounds as for bfloat16, and changes the exponent's bias from 127 to 15. For subnormals, adding a power of two makes
// the floating-point addition round.
template <> inline Float16 store<Float16>(float value) {
  constexpr uint32_t infinity = 0x7f800000, overflow = (127 + 16) << 23, smallest_normal = 113 << 23;
  constexpr uint32_t magic = ((127 - 15) + (23 - 10) + 1) << 23;
  uint32_t bits = bits_of(value);
  uint32_t magnitude = bits & 0x7fffffff;
  uint32_t normal = (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t subnormal = bits_of(float_of(magnitude) + float_of(magic)) - magic;
  uint32_t special = magnitude > infinity ? 0x7e00 | (magnitude >> 13 & 0x3ff) : 0x7c00;
  uint32_t chosen = magnitude >= overflow ? special : magnitude < smallest_normal ? subnormal : normal;
  return {uint16_t(chosen | (bits >> 16 & 0x8000))};
}

// ---------------------------------------------------------------- one compute type to another

// Truncates. Values out of range become the nearer limit, and NaN becomes 0, as in Metal.
template <class To, class From> inline To saturated(From value) {
  constexpr To least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
  constexpr From beyond = From(2) * From(uint64_t(1) << (std::numeric_limits<To>::digits - 1)); // most + 1, exact
  bool is_high = value >= beyond, is_low = value <= From(least);
  bool fits = !is_high & !is_low & (value == value);
  To inside = To(fits ? value : From(0));
  return is_high ? most : is_low ? least : inside;
}

template <class To, class From> inline To converted(From value) {
  if constexpr (std::is_same_v<To, From>) return value;
  else if constexpr (std::is_same_v<To, bool>) return value != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturated<To>(value);
  else return To(value);
}

// ---------------------------------------------------------------- rows

// out[i] = load(in[i])
template <class T> inline void widen(const T *in, Compute<T> *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = load(in[i]);
}

// out[i] = store<T>(in[i])
template <class T> inline void narrow(const Compute<T> *in, T *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = store<T>(in[i]);
}

#if defined(__AVX512F__)
template <> inline void widen<Float16>(const Float16 *in, float *out, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(in + i))));
  for (; i < count; i++) out[i] = load(in[i]);
}
template <> inline void narrow<Float16>(const float *in, Float16 *out, int64_t count) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), nearest));
  for (; i < count; i++) out[i] = store<Float16>(in[i]);
}
#elif defined(__F16C__)
template <> inline void widen<Float16>(const Float16 *in, float *out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i))));
  for (; i < count; i++) out[i] = load(in[i]);
}
template <> inline void narrow<Float16>(const float *in, Float16 *out, int64_t count) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), nearest));
  for (; i < count; i++) out[i] = store<Float16>(in[i]);
}
#elif defined(__aarch64__)
template <> inline void widen<Float16>(const Float16 *in, float *out, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t *>(in + i)))));
  for (; i < count; i++) out[i] = load(in[i]);
}
template <> inline void narrow<Float16>(const float *in, Float16 *out, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    vst1_u16(reinterpret_cast<uint16_t *>(out + i), vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
  for (; i < count; i++) out[i] = store<Float16>(in[i]);
}
#endif

} // namespace ORCHARD_ISA
} // namespace orchard
