// NEON for C and C++ targets on x86-64, where the compiler's header of this name only reports an error. SIMDe computes
// the same functions with the instructions of x86-64.
#ifndef ORCHARD_ARM_NEON_H
#define ORCHARD_ARM_NEON_H

#if __has_include(<simde/arm/neon.h>)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
#else
#error "arm_neon.h: NEON on x86-64 needs SIMDe: install libsimde-dev"
#endif

#endif
