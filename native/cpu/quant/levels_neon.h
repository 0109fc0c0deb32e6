// The levels of 32 adjacent values as signed bytes, on NEON. The formats are the same as in formats.h, but many values
// are unpacked at a time. The levels of 8-bit groups are unsigned, 0 to 255.
#pragma once

#include "heads.h"

#if defined(__aarch64__)

namespace orchard::ORCHARD_ISA {

// The levels of the first 16 and of the next 16 values.
struct PartLevels {
  int8x16_t first, second;
};

inline PartLevels levels_from(uint8x16_t first, uint8x16_t second) {
  return {vreinterpretq_s8_u8(first), vreinterpretq_s8_u8(second)};
}

inline PartLevels lowered(PartLevels levels, int8_t by) {
  return {vsubq_s8(levels.first, vdupq_n_s8(by)), vsubq_s8(levels.second, vdupq_n_s8(by))};
}

// Unpacks 16 bytes: the lower four bits of each, then the upper four bits of each.
inline PartLevels nibbles16(const uint8_t *from) {
  const uint8x16_t bytes = vld1q_u8(from);
  return levels_from(vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8(bytes, 4));
}

// Returns the bits of 16 bytes from bit `shift` on, masked by `mask`.
inline uint8x16_t bits16(const uint8_t *from, int shift, uint8_t mask) {
  return vandq_u8(vshlq_u8(vld1q_u8(from), vdupq_n_s8(int8_t(-shift))), vdupq_n_u8(mask));
}
inline PartLevels bits32(const uint8_t *from, int shift, uint8_t mask) {
  return levels_from(bits16(from, shift, mask), bits16(from + 16, shift, mask));
}

inline PartLevels pairs32(const uint8_t *pairs, int part) { return bits32(pairs_of(pairs, part), pair_shift(part), 3); }

// Returns `value` in each of 16 bytes whose bit in the two bytes is set, else 0.
inline uint8x16_t where_set(const uint8_t *two, uint8_t value) {
  const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  const uint8x16_t spread = vcombine_u8(vdup_n_u8(two[0]), vdup_n_u8(two[1]));
  return vandq_u8(vtstq_u8(spread, bits), vdupq_n_u8(value));
}
// Returns `value` where bit `bit` of the 16 bytes is set, else 0.
inline uint8x16_t where_set(const uint8_t *bytes, int bit, uint8_t value) {
  return vandq_u8(vtstq_u8(vld1q_u8(bytes), vdupq_n_u8(uint8_t(1 << bit))), vdupq_n_u8(value));
}

inline PartLevels raised_by(PartLevels levels, uint8x16_t first, uint8x16_t second) {
  return {vorrq_s8(levels.first, vreinterpretq_s8_u8(first)), vorrq_s8(levels.second, vreinterpretq_s8_u8(second))};
}

inline PartLevels looked_up(const int8_t (&values)[16], const uint8_t *nibbles) {
  const PartLevels at = nibbles16(nibbles);
  const int8x16_t table = vld1q_s8(values);
  return {vqtbl1q_s8(table, vreinterpretq_u8_s8(at.first)), vqtbl1q_s8(table, vreinterpretq_u8_s8(at.second))};
}

template <bool has, bool by_halves> struct Levels {
  static constexpr bool has_low = has, has_halves = by_halves;
};

// The head and the levels of a part of a block.
template <class Format> struct LevelsOf;

template <> struct LevelsOf<Q4_0> : Levels<false, false> {
  using Head = PlainHead;
  static PartLevels of(const uint8_t *block, int) { return lowered(nibbles16(block + 2), 8); }
};

template <> struct LevelsOf<Q4_1> : Levels<true, false> {
  using Head = RaisedHead;
  static PartLevels of(const uint8_t *block, int) { return nibbles16(block + 4); }
};

template <> struct LevelsOf<Q5_0> : Levels<false, false> {
  using Head = PlainHead;
  static PartLevels of(const uint8_t *block, int) {
    return lowered(raised_by(nibbles16(block + 6), where_set(block + 2, 16), where_set(block + 4, 16)), 16);
  }
};

template <> struct LevelsOf<Q5_1> : Levels<true, false> {
  using Head = RaisedHead;
  static PartLevels of(const uint8_t *block, int) {
    return raised_by(nibbles16(block + 8), where_set(block + 4, 16), where_set(block + 6, 16));
  }
};

template <> struct LevelsOf<Q8_0> : Levels<false, false> {
  using Head = PlainHead;
  static PartLevels of(const uint8_t *block, int) { return levels_from(vld1q_u8(block + 2), vld1q_u8(block + 18)); }
};

template <> struct LevelsOf<Iq4Nl> : Levels<false, false> {
  using Head = PlainHead;
  static PartLevels of(const uint8_t *block, int) { return looked_up(Iq4Nl::table, block + 2); }
};

template <> struct LevelsOf<Mxfp4> : Levels<false, false> {
  using Head = PowerHead;
  static PartLevels of(const uint8_t *block, int) { return looked_up(Mxfp4::table, block + 1); }
};

template <> struct LevelsOf<Q2K> : Levels<true, true> {
  using Head = Q2KHead;
  static PartLevels of(const uint8_t *block, int part) { return pairs32(block + 16, part); }
};

template <> struct LevelsOf<Q3K> : Levels<false, true> {
  using Head = Q3KHead;
  static PartLevels of(const uint8_t *block, int part) {
    return lowered(raised_by(pairs32(block + 32, part), where_set(block, part, 4), where_set(block + 16, part, 4)), 4);
  }
};

template <> struct LevelsOf<Q4K> : Levels<true, false> {
  using Head = SixBitHead;
  static PartLevels of(const uint8_t *block, int part) {
    return bits32(block + 16 + (part >> 1) * 32, (part & 1) * 4, 15);
  }
};

template <> struct LevelsOf<Q5K> : Levels<true, false> {
  using Head = SixBitHead;
  static PartLevels of(const uint8_t *block, int part) {
    const PartLevels low = bits32(block + 48 + (part >> 1) * 32, (part & 1) * 4, 15);
    return raised_by(low, where_set(block + 16, part, 16), where_set(block + 32, part, 16));
  }
};

template <> struct LevelsOf<Q6K> : Levels<false, true> {
  using Head = Q6KHead;
  static PartLevels of(const uint8_t *block, int part) {
    const PartLevels low = bits32(block + (part >> 2) * 64 + (part & 1) * 32, (part >> 1 & 1) * 4, 15);
    const PartLevels high = pairs32(block + 128, part);
    return lowered({vorrq_s8(low.first, vshlq_n_s8(high.first, 4)), vorrq_s8(low.second, vshlq_n_s8(high.second, 4))},
                   32);
  }
};

// Unpacks eight levels of `bits` bits each: shifts the two bytes that hold a level.
template <int bits> inline uint8x8_t eight_levels(const uint8_t *packed) {
  uint8_t places[16];
  int16_t shifts[8];
  for (int i = 0; i < 8; i++) {
    places[2 * i] = uint8_t(i * bits / 8), places[2 * i + 1] = uint8_t(i * bits / 8 + 1);
    shifts[i] = int16_t(-(i * bits % 8));
  }
  uint64_t word = 0;
  std::memcpy(&word, packed, bits);
  const uint8x16_t bytes = vcombine_u8(vcreate_u8(word), vdup_n_u8(0));
  const uint16x8_t wide = vreinterpretq_u16_u8(vqtbl1q_u8(bytes, vld1q_u8(places)));
  return vand_u8(vmovn_u16(vshlq_u16(wide, vld1q_s16(shifts))), vdup_n_u8((1 << bits) - 1));
}

// Unpacks 32 levels of `bits` bits each, from the lowest bit on.
template <int bits> inline PartLevels group_levels(const uint8_t *packed) {
  if constexpr (bits == 8) {
    return levels_from(vld1q_u8(packed), vld1q_u8(packed + 16));
  } else if constexpr (bits == 4) { // a byte has two adjacent values
    const uint8x16_t bytes = vld1q_u8(packed), even = vandq_u8(bytes, vdupq_n_u8(15)), odd = vshrq_n_u8(bytes, 4);
    return levels_from(vzip1q_u8(even, odd), vzip2q_u8(even, odd));
  } else {
    const auto eights = [&](int at) { return eight_levels<bits>(packed + at * bits); };
    return levels_from(vcombine_u8(eights(0), eights(1)), vcombine_u8(eights(2), eights(3)));
  }
}

} // namespace orchard::ORCHARD_ISA

#endif
