// Unpacks 32 adjacent values of each format: the reference for all other readers of weights.
//
// A format has blocks of `values` values in `bytes` bytes. `unpack` writes values 32 · part to 32 · part + 31 of a
// block. Everything is computed in float32 and every operation is rounded, as in src/quant/ggml.
#pragma once

#include "../dtypes.h"

#include <cstdint>
#include <cstring>

namespace orchard::ORCHARD_ISA {

inline float half_at(const uint8_t *bytes) { return load(Float16{uint16_t(bytes[0] | bytes[1] << 8)}); }

// 2^(exponent - 128): half of the scale, since the table of mxfp4 has doubled values.
inline float half_power(uint8_t exponent) {
  return float_of(exponent < 2 ? 0x00200000u << exponent : uint32_t(exponent - 1) << 23);
}

// Loads 32 bits, one for each value.
inline uint32_t word_at(const uint8_t *bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

template <int size> struct Blocks {
  static constexpr int bytes = size;
  static constexpr int values = 32;
};

template <int size> struct SuperBlocks {
  static constexpr int bytes = size;
  static constexpr int values = 256;
};

// ---------------------------------------------------------------- blocks of 32

struct Q4_0 : Blocks<18> {
  static void unpack(const uint8_t *block, int, float *out) {
    const float scale = half_at(block);
    for (int i = 0; i < 16; i++) out[i] = scale * float(int(block[2 + i] & 15) - 8);
    for (int i = 0; i < 16; i++) out[16 + i] = scale * float(int(block[2 + i] >> 4) - 8);
  }
};

struct Q4_1 : Blocks<20> {
  static void unpack(const uint8_t *block, int, float *out) {
    const float scale = half_at(block), low = half_at(block + 2);
    for (int i = 0; i < 16; i++) out[i] = scale * float(int(block[4 + i] & 15)) + low;
    for (int i = 0; i < 16; i++) out[16 + i] = scale * float(int(block[4 + i] >> 4)) + low;
  }
};

struct Q5_0 : Blocks<22> {
  static void unpack(const uint8_t *block, int, float *out) {
    const float scale = half_at(block);
    const uint32_t high = word_at(block + 2);
    for (int i = 0; i < 16; i++) out[i] = scale * float(int((block[6 + i] & 15) | (high >> i & 1) << 4) - 16);
    for (int i = 0; i < 16; i++)
      out[16 + i] = scale * float(int((block[6 + i] >> 4) | (high >> (16 + i) & 1) << 4) - 16);
  }
};

struct Q5_1 : Blocks<24> {
  static void unpack(const uint8_t *block, int, float *out) {
    const float scale = half_at(block), low = half_at(block + 2);
    const uint32_t high = word_at(block + 4);
    for (int i = 0; i < 16; i++) out[i] = scale * float(int((block[8 + i] & 15) | (high >> i & 1) << 4)) + low;
    for (int i = 0; i < 16; i++)
      out[16 + i] = scale * float(int((block[8 + i] >> 4) | (high >> (16 + i) & 1) << 4)) + low;
  }
};

struct Q8_0 : Blocks<34> {
  static void unpack(const uint8_t *block, int, float *out) {
    const float scale = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = scale * float(int8_t(block[2 + i]));
  }
};

// Looks up each 4-bit level in a table of 16 values.
template <class Value> inline void look_up(const uint8_t *nibbles, float scale, const Value *table, float *out) {
  for (int i = 0; i < 16; i++) out[i] = scale * float(table[nibbles[i] & 15]);
  for (int i = 0; i < 16; i++) out[16 + i] = scale * float(table[nibbles[i] >> 4]);
}

struct Iq4Nl : Blocks<18> {
  static constexpr int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  static void unpack(const uint8_t *block, int, float *out) { look_up(block + 2, half_at(block), table, out); }
};

struct Mxfp4 : Blocks<17> {
  static constexpr int8_t table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  static void unpack(const uint8_t *block, int, float *out) { look_up(block + 1, half_power(block[0]), table, out); }
};

// ---------------------------------------------------------------- blocks of 256

// The 2-bit levels of a part of a block: 32 bytes contain 128 values, in four layers of 32.
inline const uint8_t *pairs_of(const uint8_t *pairs, int part) { return pairs + (part >> 2) * 32; }
inline int pair_shift(int part) { return (part & 3) * 2; }

struct Q2K : SuperBlocks<84> {
  static void unpack(const uint8_t *block, int part, float *out) {
    const float scale = half_at(block + 80), minimum = half_at(block + 82);
    const uint8_t *pairs = pairs_of(block + 16, part);
    const int shift = pair_shift(part);
    for (int half = 0; half < 2; half++) {
      const uint8_t packed = block[part * 2 + half];
      const float factor = scale * float(packed & 15), low = minimum * float(packed >> 4);
      for (int i = 16 * half; i < 16 * half + 16; i++) out[i] = factor * float(pairs[i] >> shift & 3) - low;
    }
  }
};

struct Q3K : SuperBlocks<110> {
  static void unpack(const uint8_t *block, int part, float *out) {
    const float scale = half_at(block + 108);
    const uint8_t *pairs = pairs_of(block + 32, part);
    const int shift = pair_shift(part);
    for (int half = 0; half < 2; half++) {
      const float factor = scale * float(six_bits(block + 96, part * 2 + half));
      for (int i = 16 * half; i < 16 * half + 16; i++)
        out[i] = factor * float(int(pairs[i] >> shift & 3) - (block[i] >> part & 1 ? 0 : 4));
    }
  }

  // The lower 4 bits of the scales are in 8 bytes, the upper 2 in the 4 bytes after them.
  static int six_bits(const uint8_t *scales, int sub) {
    const int low = scales[sub & 7] >> (sub >> 3) * 4 & 15, high = scales[8 + (sub & 3)] >> (sub >> 2) * 2 & 3;
    return (low | high << 4) - 32;
  }
};

// The scale and the minimum of a part of q4_K and q5_K: 6 bits each, in 12 bytes.
struct ScaleAndMinimum {
  float scale, minimum;

  ScaleAndMinimum(const uint8_t *block, int part) {
    const uint8_t *packed = block + 4;
    const int at = part & 3, scales = packed[at], minima = packed[4 + at], rest = packed[8 + at];
    const int multiplier = part < 4 ? scales & 63 : (rest & 15) | (scales >> 2 & 48);
    const int low = part < 4 ? minima & 63 : (rest >> 4) | (minima >> 2 & 48);
    scale = half_at(block) * float(multiplier);
    minimum = half_at(block + 2) * float(low);
  }
};

struct Q4K : SuperBlocks<144> {
  static void unpack(const uint8_t *block, int part, float *out) {
    const ScaleAndMinimum numbers(block, part);
    const uint8_t *nibbles = block + 16 + (part >> 1) * 32;
    const int shift = (part & 1) * 4;
    for (int i = 0; i < 32; i++) out[i] = numbers.scale * float(nibbles[i] >> shift & 15) - numbers.minimum;
  }
};

struct Q5K : SuperBlocks<176> {
  static void unpack(const uint8_t *block, int part, float *out) {
    const ScaleAndMinimum numbers(block, part);
    const uint8_t *nibbles = block + 48 + (part >> 1) * 32, *high = block + 16;
    const int shift = (part & 1) * 4;
    for (int i = 0; i < 32; i++)
      out[i] = numbers.scale * float((nibbles[i] >> shift & 15) | (high[i] >> part & 1) << 4) - numbers.minimum;
  }
};

struct Q6K : SuperBlocks<210> {
  static void unpack(const uint8_t *block, int part, float *out) {
    const float scale = half_at(block + 208);
    const uint8_t *nibbles = block + (part >> 2) * 64 + (part & 1) * 32, *pairs = pairs_of(block + 128, part);
    const int low_shift = (part >> 1 & 1) * 4, shift = pair_shift(part);
    for (int half = 0; half < 2; half++) {
      const float factor = scale * float(int8_t(block[192 + part * 2 + half]));
      for (int i = 16 * half; i < 16 * half + 16; i++)
        out[i] = factor * float(int((nibbles[i] >> low_shift & 15) | (pairs[i] >> shift & 3) << 4) - 32);
    }
  }
};

// ---------------------------------------------------------------- groups

// Unpacks 32 levels of `bits` bits each, from the lowest bit of the first word on.
template <int bits> inline void unpack_levels(const uint8_t *packed, float *out) {
  uint32_t words[bits + 1];
  std::memcpy(words, packed, bits * sizeof(uint32_t));
  words[bits] = 0;
  constexpr uint32_t mask = (1u << bits) - 1;
  for (int i = 0; i < 32; i++) {
    const int first = i * bits;
    const uint64_t both = uint64_t(words[first >> 5]) | uint64_t(words[(first >> 5) + 1]) << 32;
    out[i] = float(uint32_t(both >> (first & 31)) & mask);
  }
}

} // namespace orchard::ORCHARD_ISA
