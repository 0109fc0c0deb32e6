// The scales of a block of weights: value = scale · level + low, with one scale and low for each part of 32 values, or
// for each half of a part.
#pragma once

#include "formats.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX2__) || defined(__aarch64__)

namespace orchard::ORCHARD_ISA {

inline float converted_half(const uint8_t *bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
#if defined(__AVX2__)
  return _cvtsh_ss(bits);
#else
  __fp16 half;
  std::memcpy(&half, &bits, sizeof half);
  return half;
#endif
}

// A block of 32 with one scale.
struct PlainHead {
  float factor;
  explicit PlainHead(const uint8_t *block) : factor(converted_half(block)) {}
  float scale(int, int) const { return factor; }
  float low(int, int) const { return 0; }
};

struct RaisedHead {
  float factor, lowest;
  explicit RaisedHead(const uint8_t *block) : factor(converted_half(block)), lowest(converted_half(block + 2)) {}
  float scale(int, int) const { return factor; }
  float low(int, int) const { return lowest; }
};

struct PowerHead : PlainHead {
  explicit PowerHead(const uint8_t *block) : PlainHead(block) { factor = half_power(block[0]); }
};

// The scales and lows of each part, or half of a part, of a block of 256.
template <int count> struct ManyHead {
  float scales[count], lows[count];
  float scale(int part, int half) const { return scales[count == 8 ? part : part * 2 + half]; }
  float low(int part, int half) const { return lows[count == 8 ? part : part * 2 + half]; }
};

// Stores eight bytes, lowest first, each times a factor.
template <bool is_signed> inline void store_scaled(uint64_t bytes, float factor, float *out) {
#if defined(__AVX2__)
  const __m128i packed = _mm_cvtsi64_si128(int64_t(bytes));
  const __m256i wide = is_signed ? _mm256_cvtepi8_epi32(packed) : _mm256_cvtepu8_epi32(packed);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), _mm256_set1_ps(factor)));
#else
  const uint8x8_t packed = vcreate_u8(bytes);
  const int16x8_t wide = is_signed ? vmovl_s8(vreinterpret_s8_u8(packed)) : vreinterpretq_s16_u16(vmovl_u8(packed));
  vst1q_f32(out, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), factor));
  vst1q_f32(out + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(wide)), factor));
#endif
}

inline uint64_t eight_bytes(const uint8_t *from) {
  uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

struct Q2KHead : ManyHead<16> {
  explicit Q2KHead(const uint8_t *block) {
    const float scale = converted_half(block + 80), minimum = converted_half(block + 82);
    constexpr uint64_t mask = 0x0f0f0f0f0f0f0f0f;
    for (int i = 0; i < 16; i += 8) {
      const uint64_t packed = eight_bytes(block + i);
      store_scaled<false>(packed & mask, scale, scales + i);
      store_scaled<false>(packed >> 4 & mask, -minimum, lows + i);
    }
  }
};

struct Q3KHead : ManyHead<16> {
  explicit Q3KHead(const uint8_t *block) {
    const float scale = converted_half(block + 108);
    for (int i = 0; i < 16; i++) scales[i] = scale * float(Q3K::six_bits(block + 96, i));
  }
};

// The scales and minima of q4_K and q5_K, unpacked as in ScaleAndMinimum, four at a time.
struct SixBitHead : ManyHead<8> {
  explicit SixBitHead(const uint8_t *block) {
    const uint32_t first = word_at(block + 4), second = word_at(block + 8), rest = word_at(block + 12);
    const uint64_t multipliers = joined(first & 0x3f3f3f3f, (rest & 0x0f0f0f0f) | (first >> 2 & 0x30303030));
    const uint64_t low = joined(second & 0x3f3f3f3f, (rest >> 4 & 0x0f0f0f0f) | (second >> 2 & 0x30303030));
    store_scaled<false>(multipliers, converted_half(block), scales);
    store_scaled<false>(low, -converted_half(block + 2), lows);
  }

private:
  static uint64_t joined(uint32_t low, uint32_t high) { return low | uint64_t(high) << 32; }
};

struct Q6KHead : ManyHead<16> {
  explicit Q6KHead(const uint8_t *block) {
    const float scale = converted_half(block + 208);
    for (int i = 0; i < 16; i += 8) store_scaled<true>(eight_bytes(block + 192 + i), scale, scales + i);
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
