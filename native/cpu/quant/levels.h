// The levels of 32 adjacent values as bytes, and their scales, for instruction sets with AVX2. The formats are the same
// as in formats.h, but many values are unpacked at a time.
//
// `Head` of heads.h has the scales of a block. `raw` returns the unsigned bytes of a part; a level is raw − `offset`.
#pragma once

#include "heads.h"

#if defined(__AVX2__)

namespace orchard::ORCHARD_ISA {

inline __m128i bytes16(const uint8_t *from) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)); }
inline __m256i bytes32(const uint8_t *from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)); }

// Unpacks 16 bytes: the lower four bits of each, then the upper four bits of each.
inline __m256i nibbles16(const uint8_t *from) {
  const __m128i bytes = bytes16(from);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}

// Returns four bits of each of 32 bytes, from bit `shift` on.
inline __m256i nibbles32(const uint8_t *from, int shift) {
  return _mm256_and_si256(_mm256_srli_epi16(bytes32(from), shift), _mm256_set1_epi8(15));
}

inline __m256i pairs32(const uint8_t *pairs, int part) {
  const __m256i bytes = bytes32(pairs_of(pairs, part));
  return _mm256_and_si256(_mm256_srli_epi16(bytes, pair_shift(part)), _mm256_set1_epi8(3));
}

// Returns `value` in each byte whose bit in `word` is set, else 0.
inline __m256i where_set(uint32_t word, int8_t value) {
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(int(word)), _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i bits = _mm256_set1_epi64x(int64_t(0x8040201008040201));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits), _mm256_set1_epi8(value));
}

// Returns `value` in each of 32 bytes whose bit `bit` is set, else 0.
inline __m256i where_set(const uint8_t *bytes, int bit, int8_t value) {
  const __m256i mask = _mm256_set1_epi8(int8_t(1 << bit));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes32(bytes), mask), mask), _mm256_set1_epi8(value));
}

template <bool has, bool by_halves, int raw_offset> struct Levels {
  static constexpr bool has_low = has, has_halves = by_halves;
  static constexpr int offset = raw_offset;
};

template <class Format> struct LevelsOf;

// Returns the level of each raw byte.
template <class Format> inline __m256i signed_levels(const uint8_t *block, int part) {
  using Source = LevelsOf<Format>;
  const __m256i raw = Source::raw(block, part);
  if constexpr (Source::offset == 0) return raw;
  const __m256i offset = _mm256_set1_epi8(int8_t(Source::offset));
  return Source::offset == 128 ? _mm256_xor_si256(raw, offset) : _mm256_sub_epi8(raw, offset);
}

// Looks up 4-bit levels in the table of a format, and adds the format's offset.
template <int offset> inline __m256i looked_up(const int8_t (&table)[16], __m256i nibbles) {
  const __m128i raised = _mm_add_epi8(bytes16(reinterpret_cast<const uint8_t *>(table)), _mm_set1_epi8(int8_t(offset)));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(raised), nibbles);
}

template <> struct LevelsOf<Q4_0> : Levels<false, false, 8> {
  using Head = PlainHead;
  static __m256i raw(const uint8_t *block, int) { return nibbles16(block + 2); }
};

template <> struct LevelsOf<Q4_1> : Levels<true, false, 0> {
  using Head = RaisedHead;
  static __m256i raw(const uint8_t *block, int) { return nibbles16(block + 4); }
};

template <> struct LevelsOf<Q5_0> : Levels<false, false, 16> {
  using Head = PlainHead;
  static __m256i raw(const uint8_t *block, int) {
    return _mm256_or_si256(nibbles16(block + 6), where_set(word_at(block + 2), 16));
  }
};

template <> struct LevelsOf<Q5_1> : Levels<true, false, 0> {
  using Head = RaisedHead;
  static __m256i raw(const uint8_t *block, int) {
    return _mm256_or_si256(nibbles16(block + 8), where_set(word_at(block + 4), 16));
  }
};

template <> struct LevelsOf<Q8_0> : Levels<false, false, 128> {
  using Head = PlainHead;
  static __m256i raw(const uint8_t *block, int) {
    return _mm256_xor_si256(bytes32(block + 2), _mm256_set1_epi8(int8_t(0x80)));
  }
};

template <> struct LevelsOf<Iq4Nl> : Levels<false, false, 127> {
  using Head = PlainHead;
  static __m256i raw(const uint8_t *block, int) { return looked_up<offset>(Iq4Nl::table, nibbles16(block + 2)); }
};

template <> struct LevelsOf<Mxfp4> : Levels<false, false, 12> {
  using Head = PowerHead;
  static __m256i raw(const uint8_t *block, int) { return looked_up<offset>(Mxfp4::table, nibbles16(block + 1)); }
};

template <> struct LevelsOf<Q2K> : Levels<true, true, 0> {
  using Head = Q2KHead;
  static __m256i raw(const uint8_t *block, int part) { return pairs32(block + 16, part); }
};

template <> struct LevelsOf<Q3K> : Levels<false, true, 4> {
  using Head = Q3KHead;
  static __m256i raw(const uint8_t *block, int part) {
    return _mm256_or_si256(pairs32(block + 32, part), where_set(block, part, 4));
  }
};

template <> struct LevelsOf<Q4K> : Levels<true, false, 0> {
  using Head = SixBitHead;
  static __m256i raw(const uint8_t *block, int part) {
    return nibbles32(block + 16 + (part >> 1) * 32, (part & 1) * 4);
  }
};

template <> struct LevelsOf<Q5K> : Levels<true, false, 0> {
  using Head = SixBitHead;
  static __m256i raw(const uint8_t *block, int part) {
    const __m256i low = nibbles32(block + 48 + (part >> 1) * 32, (part & 1) * 4);
    return _mm256_or_si256(low, where_set(block + 16, part, 16));
  }
};

template <> struct LevelsOf<Q6K> : Levels<false, true, 32> {
  using Head = Q6KHead;
  static __m256i raw(const uint8_t *block, int part) {
    const __m256i low = nibbles32(block + (part >> 2) * 64 + (part & 1) * 32, (part >> 1 & 1) * 4);
    const __m256i high = _mm256_slli_epi16(pairs32(block + 128, part), 4);
    return _mm256_or_si256(low, high);
  }
};

// Unpacks 32 levels of `bits` bits each, from the lowest bit on.
template <int bits> inline __m256i group_levels(const uint8_t *packed) {
  if constexpr (bits == 8) {
    return bytes32(packed);
  } else if constexpr (bits == 4) {
    const __m128i bytes = bytes16(packed), mask = _mm_set1_epi8(15);
    const __m128i even = _mm_and_si128(bytes, mask), odd = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
    return _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
  } else {
    constexpr uint64_t mask = 0x0101010101010101u * ((1u << bits) - 1);
    uint64_t eights[4];
    for (int i = 0; i < 4; i++) {
      uint64_t word = 0;
      std::memcpy(&word, packed + i * bits, bits);
      eights[i] = _pdep_u64(word, mask);
    }
    return _mm256_setr_epi64x(int64_t(eights[0]), int64_t(eights[1]), int64_t(eights[2]), int64_t(eights[3]));
  }
}

} // namespace orchard::ORCHARD_ISA

#endif
