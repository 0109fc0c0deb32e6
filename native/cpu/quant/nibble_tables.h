// The values of 4-bit levels on AVX-512. The sixteen possible values level · scale + low are in one vector, and each
// 4-bit level is an index into it. They are computed once per part instead of once per value, with the same rounding.
#pragma once

#include "rows_avx.h"

#if defined(__AVX512F__)

namespace orchard::ORCHARD_ISA {

inline constexpr int8_t nibbles_from_0[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline constexpr int8_t nibbles_around_0[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

// The lowest four bits of each lane are the index; the other bits are ignored.
inline Floats looked_up(Floats table, __m512i nibbles) {
  return _mm512_maskz_permutexvar_ps(all_lanes, nibbles, table);
}
inline __m512i shifted(__m512i lanes, __m512i by) { return _mm512_maskz_srlv_epi32(all_lanes, lanes, by); }
inline Floats in_order(__m512i order, Floats x) { return _mm512_maskz_permutexvar_ps(all_lanes, order, x); }

template <class Row> struct Nibbles {
  static constexpr bool are_there = false;
};

// A block of 32: values 0 to 15 are in the lower halves of sixteen bytes, values 16 to 31 in the upper halves. Each
// lane contains a byte, so the lower half needs no shift.
template <class Format, int first, const int8_t (&all)[16]> struct BlockNibbles {
  static constexpr bool are_there = true;
  static constexpr const int8_t (&levels)[16] = all;
  static Floats in_lanes(Floats x) { return x; }
  static Floats out_of_lanes(Floats lanes) { return lanes; }
  static void look_up(const LevelRow<Format> &row, int64_t block, int part, Floats table, Floats (&out)[2]) {
    const __m512i bytes = lanes_of(bytes16(row.block_of(block, part) + first));
    out[0] = looked_up(table, bytes);
    out[1] = looked_up(table, _mm512_maskz_srli_epi32(all_lanes, bytes, 4));
  }
};
template <> struct Nibbles<LevelRow<Q4_0>> : BlockNibbles<Q4_0, 2, nibbles_around_0> {};
template <> struct Nibbles<LevelRow<Q4_1>> : BlockNibbles<Q4_1, 4, nibbles_from_0> {};
template <> struct Nibbles<LevelRow<Iq4Nl>> : BlockNibbles<Iq4Nl, 2, Iq4Nl::table> {};
template <> struct Nibbles<LevelRow<Mxfp4>> : BlockNibbles<Mxfp4, 1, Mxfp4::table> {};

// The lower halves of 32 bytes are a part, and the upper halves the next part. Lane 4 i + j gets byte 4 j + i: each
// four-byte word is broadcast to four lanes, and each lane shifts its copy.
template <> struct Nibbles<LevelRow<Q4K>> {
  static constexpr bool are_there = true;
  static constexpr const int8_t (&levels)[16] = nibbles_from_0;
  static Floats in_lanes(Floats x) {
    return in_order(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
  }
  static Floats out_of_lanes(Floats lanes) { return in_lanes(lanes); } // an involution
  static void look_up(const LevelRow<Q4K> &row, int64_t block, int part, Floats table, Floats (&out)[2]) {
    const uint8_t *from = row.block_of(block, part) + 16 + (part >> 1) * 32;
    const __m512i by = _mm512_add_epi32(_mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24),
                                        _mm512_set1_epi32((part & 1) * 4));
    out[0] = looked_up(table, shifted(words(from), by));
    out[1] = looked_up(table, shifted(words(from + 16), by));
  }

private:
  static __m512i words(const uint8_t *from) { return _mm512_maskz_broadcast_i32x4(all_lanes, bytes16(from)); }
};

// The two halves of a byte are adjacent values. Each of two words has eight values and is broadcast to eight lanes;
// lane 2 i + j gets value 8 j + i.
template <bool is_symmetric> struct Nibbles<GroupLevelRow<4, is_symmetric>> {
  static constexpr bool are_there = true;
  static constexpr const int8_t (&levels)[16] = is_symmetric ? nibbles_around_0 : nibbles_from_0;
  static Floats in_lanes(Floats x) {
    return in_order(_mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), x);
  }
  static Floats out_of_lanes(Floats lanes) {
    return in_order(_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), lanes);
  }
  static __m512i sixteen(const uint8_t *from) {
    int64_t words;
    std::memcpy(&words, from, sizeof words);
    return shifted(_mm512_set1_epi64(words),
                   _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28));
  }
  static void look_up(const GroupLevelRow<4, is_symmetric> &row, int64_t block, int part, Floats table,
                      Floats (&out)[2]) {
    const uint8_t *from = row.row + (block * 8 + part) * 16;
    out[0] = looked_up(table, sixteen(from));
    out[1] = looked_up(table, sixteen(from + 8));
  }
};

} // namespace orchard::ORCHARD_ISA

#endif
