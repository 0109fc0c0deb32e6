// Atomic access to the completion counter, which other languages read while the device's threads write it. It is not
// part of the dylib's interface; Swift on macOS 14 has no atomics.
#ifndef ORCHARD_ATOMIC_H
#define ORCHARD_ATOMIC_H

#include <stdint.h>

static inline uint64_t orchard_atomic_load(const uint64_t *address) {
  return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
static inline void orchard_atomic_store(uint64_t *address, uint64_t value) {
  __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

#endif
