// Instructions that sum four products of bytes. The left bytes are unsigned, and at most 128 unless `takes_wide`.
#pragma once

#if defined(__AVX2__)

#include <immintrin.h>

namespace orchard::ORCHARD_ISA {

// Sums pairs of products in 16 bits, which suffice for 2 · 128 · 127. Larger bytes would saturate, so callers center
// them at 0, make them positive, and move their signs to the other operand.
struct PlainDots {
  static constexpr bool takes_wide = false;
  static __m256i add(__m256i sums, __m256i bytes, __m256i signs) {
    const __m256i pairs = _mm256_maddubs_epi16(bytes, signs);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

#if defined(__AVX512F__)
// AVX512_VNNI, which this file's instruction set does not include: callers check that the processor has it.
struct VnniDots {
  static constexpr bool takes_wide = true;
  static __m256i add(__m256i sums, __m256i bytes, __m256i signs) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(bytes), "v"(signs));
    return sums;
  }
};
#endif

} // namespace orchard::ORCHARD_ISA

#endif
