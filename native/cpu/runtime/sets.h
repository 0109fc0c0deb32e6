// The instruction sets for which this build of the dylib has kernels. Their `*.isa.cpp` were compiled; for the others,
// each table is a placeholder. The build generates the definitions (scripts/cpu/sets.ts).
#pragma once

#include "../isa.h"

namespace orchard {

#if defined(__aarch64__)
extern const bool has_neon;
#else
extern const bool has_baseline, has_avx2, has_avx512;
#endif

// Returns whether the build has kernels for a set; the sets above avx512 use its kernels.
bool is_built(Isa isa);

} // namespace orchard
