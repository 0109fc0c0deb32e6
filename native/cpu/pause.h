// What a thread does between two looks at what another one writes: the processor gives the core to others meanwhile.
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
