// The pause instruction for spin-wait loops: lets the core's other hardware thread run between two polls.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orchard {

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace orchard
