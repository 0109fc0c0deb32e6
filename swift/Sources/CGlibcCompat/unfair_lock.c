// The operations of os_unfair_lock. Swift 6.0 on Linux has no atomic operations on a variable of the caller.
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

bool orchard_unfair_try(uint32_t *lock);
void orchard_unfair_lock(uint32_t *lock);
void orchard_unfair_unlock(uint32_t *lock);

bool orchard_unfair_try(uint32_t *lock) {
  uint32_t open = 0;
  return __atomic_compare_exchange_n(lock, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void orchard_unfair_lock(uint32_t *lock) {
  while (!orchard_unfair_try(lock)) sched_yield();
}

void orchard_unfair_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
