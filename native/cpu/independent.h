// ORCHARD_INDEPENDENT before a loop asserts that no iteration reads what another writes, so that the loop is vectorized
// without an aliasing check.
#pragma once

#if defined(__clang__)
#define ORCHARD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ORCHARD_INDEPENDENT _Pragma("GCC ivdep")
#endif
