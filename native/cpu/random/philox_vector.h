// Philox4x32-10 (philox.h) for several blocks at once, with the words in the order of their elements.
//
// Each word is in the lower half of a 64-bit lane. The upper half is ignored, since multiplication uses the lower
// halves; the upper half of a product is the input of the next round. So a round is two products, two moves and two
// exclusive ors.
#pragma once

#include "philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace orchard::ORCHARD_ISA {

// One word of as many blocks as a vector has 64-bit lanes. `exclusive` returns the exclusive or of three vectors.
// `paired` moves the words of its second argument to the upper halves, next to those of the first.
#if defined(__AVX512F__)
using Wide = __m512i;
inline Wide wide_of(uint64_t word) { return _mm512_set1_epi64(int64_t(word)); }
inline Wide wide_at(const uint64_t *words) { return _mm512_loadu_si512(words); }
inline Wide sum(Wide a, Wide b) { return _mm512_add_epi64(a, b); }
inline Wide product(Wide a, Wide b) { return _mm512_mul_epu32(a, b); }
inline Wide upper(Wide a) { return _mm512_shuffle_epi32(a, _MM_PERM_DDBB); }
inline Wide exclusive(Wide a, Wide b, Wide c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
inline Wide paired(Wide low, Wide high) { return _mm512_mask_shuffle_epi32(low, 0xaaaa, high, _MM_PERM_CCAA); }
inline Wide even_pairs(Wide a, Wide b) { return _mm512_unpacklo_epi64(a, b); }
inline Wide odd_pairs(Wide a, Wide b) { return _mm512_unpackhi_epi64(a, b); }
inline void store(uint32_t *out, Wide a) { _mm512_storeu_si512(out, a); }
#elif defined(__AVX2__)
using Wide = __m256i;
inline Wide wide_of(uint64_t word) { return _mm256_set1_epi64x(int64_t(word)); }
inline Wide wide_at(const uint64_t *words) { return _mm256_loadu_si256(reinterpret_cast<const Wide *>(words)); }
inline Wide sum(Wide a, Wide b) { return _mm256_add_epi64(a, b); }
inline Wide product(Wide a, Wide b) { return _mm256_mul_epu32(a, b); }
inline Wide upper(Wide a) { return _mm256_shuffle_epi32(a, 0xf5); }
inline Wide exclusive(Wide a, Wide b, Wide c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
inline Wide paired(Wide low, Wide high) { return _mm256_blend_epi32(low, _mm256_shuffle_epi32(high, 0xa0), 0xaa); }
inline Wide even_pairs(Wide a, Wide b) { return _mm256_unpacklo_epi64(a, b); }
inline Wide odd_pairs(Wide a, Wide b) { return _mm256_unpackhi_epi64(a, b); }
inline void store(uint32_t *out, Wide a) { _mm256_storeu_si256(reinterpret_cast<Wide *>(out), a); }
#elif defined(__x86_64__)
using Wide = __m128i;
inline Wide wide_of(uint64_t word) { return _mm_set1_epi64x(int64_t(word)); }
inline Wide wide_at(const uint64_t *words) { return _mm_loadu_si128(reinterpret_cast<const Wide *>(words)); }
inline Wide sum(Wide a, Wide b) { return _mm_add_epi64(a, b); }
inline Wide product(Wide a, Wide b) { return _mm_mul_epu32(a, b); }
inline Wide upper(Wide a) { return _mm_srli_epi64(a, 32); }
inline Wide exclusive(Wide a, Wide b, Wide c) { return _mm_xor_si128(_mm_xor_si128(a, b), c); }
inline Wide paired(Wide low, Wide high) {
  return _mm_or_si128(_mm_srli_epi64(_mm_slli_epi64(low, 32), 32), _mm_slli_epi64(high, 32));
}
inline Wide even_pairs(Wide a, Wide b) { return _mm_unpacklo_epi64(a, b); }
inline Wide odd_pairs(Wide a, Wide b) { return _mm_unpackhi_epi64(a, b); }
inline void store(uint32_t *out, Wide a) { _mm_storeu_si128(reinterpret_cast<Wide *>(out), a); }
#elif defined(__aarch64__)
using Wide = uint64x2_t;
inline Wide wide_of(uint64_t word) { return vdupq_n_u64(word); }
inline Wide wide_at(const uint64_t *words) { return vld1q_u64(words); }
inline Wide sum(Wide a, Wide b) { return vaddq_u64(a, b); }
inline Wide product(Wide a, Wide b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }
inline Wide upper(Wide a) { return vshrq_n_u64(a, 32); }
inline Wide exclusive(Wide a, Wide b, Wide c) { return veorq_u64(veorq_u64(a, b), c); }
inline Wide paired(Wide low, Wide high) { return vsliq_n_u64(low, high, 32); }
inline Wide even_pairs(Wide a, Wide b) { return vtrn1q_u64(a, b); }
inline Wide odd_pairs(Wide a, Wide b) { return vtrn2q_u64(a, b); }
inline void store(uint32_t *out, Wide a) { vst1q_u32(out, vreinterpretq_u32_u64(a)); }
#endif

constexpr int wide_blocks = sizeof(Wide) / sizeof(uint64_t);

struct WideBlock {
  Wide word[4];
};

inline WideBlock philox(Wide c0, Wide c1, Wide c2, Wide c3, uint32_t k0, uint32_t k1) {
  const Wide first_multiplier = wide_of(philox_multipliers[0]), second_multiplier = wide_of(philox_multipliers[1]);
#pragma GCC unroll 10
  for (int round = 0; round < philox_rounds; round++) {
    Wide first = product(c0, first_multiplier), second = product(c2, second_multiplier);
    c0 = exclusive(upper(second), c1, wide_of(k0));
    c1 = second;
    c2 = exclusive(upper(first), c3, wide_of(k1));
    c3 = first;
    k0 += philox_weyl[0];
    k1 += philox_weyl[1];
  }
  return {{c0, c1, c2, c3}};
}

// Even lanes contain the first half of the blocks and odd lanes the second half, which gives adjacent blocks in order
// in the output.
struct LaneBlocks {
  uint64_t block[wide_blocks];
};
constexpr LaneBlocks ordered_lanes() {
  LaneBlocks lanes{};
  for (int lane = 0; lane < wide_blocks; lane++) lanes.block[lane] = uint64_t(lane / 2 + lane % 2 * (wide_blocks / 2));
  return lanes;
}

// The words of a tile, block by block.
struct OrderedWords {
  alignas(64) uint32_t word[4 * tile_blocks];
};

// Computes `count` blocks from `first` on, at most tile_blocks, rounded up to whole vectors.
inline void philox_tile(const PhiloxStart &start, int64_t first, int64_t count, OrderedWords &words) {
  static constexpr LaneBlocks lanes = ordered_lanes();
  const uint64_t base = (uint64_t(start.counter[1]) << 32 | start.counter[0]) + uint64_t(first);
  const Wide c2 = wide_of(start.counter[2]), c3 = wide_of(start.counter[3]), from_first = wide_at(lanes.block);
  for (int64_t j = 0; j < count; j += wide_blocks) {
    Wide c0 = sum(wide_of(base + uint64_t(j)), from_first);
    WideBlock drawn = philox(c0, upper(c0), c2, c3, start.key[0], start.key[1]);
    Wide front = paired(drawn.word[0], drawn.word[1]), back = paired(drawn.word[2], drawn.word[3]);
    store(words.word + 4 * j, even_pairs(front, back));
    store(words.word + 4 * j + 2 * wide_blocks, odd_pairs(front, back));
  }
}

} // namespace orchard::ORCHARD_ISA
