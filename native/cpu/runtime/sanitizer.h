// Support for sanitizers. AddressSanitizer must be told about memory that does not come from malloc, and
// ThreadSanitizer sees a race only if two threads have worked. No effect in other builds.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ORCHARD_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define ORCHARD_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ORCHARD_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define ORCHARD_THREAD_SANITIZER
#endif

#if defined(ORCHARD_THREAD_SANITIZER)
#include <chrono>
#include <thread>
#endif

#if defined(ORCHARD_ADDRESS_SANITIZER)
extern "C" void __asan_poison_memory_region(const volatile void *address, size_t bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
#endif

namespace orchard {

#if defined(ORCHARD_ADDRESS_SANITIZER)
// The number of poisoned bytes at the end of every block; an overrun hits these first.
constexpr size_t red_zone = 64;
inline void forbid(void *memory, size_t bytes) noexcept { __asan_poison_memory_region(memory, bytes); }
inline void allow(void *memory, size_t bytes) noexcept { __asan_unpoison_memory_region(memory, bytes); }
#else
constexpr size_t red_zone = 0;
inline void forbid(void *, size_t) noexcept {}
inline void allow(void *, size_t) noexcept {}
#endif

#if defined(ORCHARD_THREAD_SANITIZER)
// Called after a block of work, so that other threads get the next blocks even if the work is small.
inline void let_others_work() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }
#else
inline void let_others_work() {}
#endif

} // namespace orchard
