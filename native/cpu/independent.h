// ORCHARD_INDEPENDENT before a loop: what one turn reads no other writes, so that it becomes vectors without a test of
// addresses.
#pragma once

#if defined(__clang__)
#define ORCHARD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ORCHARD_INDEPENDENT _Pragma("GCC ivdep")
#endif
