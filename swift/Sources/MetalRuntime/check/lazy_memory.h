// Tables over a huge address range: reserved address space that uses memory only where it is accessed, and reads as
// zero.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <sys/mman.h>

namespace mrt::checker {

template <typename T> T *reserve_lazily(size_t count) {
  void *memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort(); // the address space is exhausted
  return static_cast<T *>(memory);
}

template <typename T> void release_lazily(T *memory, size_t count) { munmap(memory, count * sizeof(T)); }

} // namespace mrt::checker
