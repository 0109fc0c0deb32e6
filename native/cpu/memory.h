// An allocator that caches free blocks, keeps statistics and enforces a limit.
#pragma once

#include "bounds.h"

#include <cstddef>
#include <cstdint>

namespace orchard {

constexpr size_t block_alignment = 64;

// The values that orchard_cpu_statistics writes, in this order.
struct MemoryStatistics {
  size_t live_bytes, live_blocks, cached_bytes, cached_blocks, peak_bytes, allocations, cache_hits, refusals,
      memory_limit, cache_limit;
};

// Returns the size of the block that serves a request: a multiple of an eighth of the next lower power of two, so at
// most 12.5% larger.
size_t size_class(size_t bytes);

// Returns a block of size_class(bytes) bytes. Throws Failure with ORCHARD_CPU_OUT_OF_MEMORY or
// ORCHARD_CPU_MEMORY_LIMIT.
void *take_block(size_t bytes);
// Returns a block to the cache. `bytes` is the size that was requested.
void give_block_back(void *block, size_t bytes) noexcept;

void trim_blocks() noexcept;
void set_memory_limit(size_t bytes) noexcept;
void set_cache_limit(size_t bytes) noexcept;
void reset_peak() noexcept;
void refuse_allocations(int64_t count) noexcept;
MemoryStatistics memory_statistics() noexcept;

// Scratch memory for an operation: `count` uninitialized elements. Throws Failure as take_block does, and also if the
// count is negative or exceeds the address space.
template <class T> class Scratch {
public:
  explicit Scratch(int64_t count) : bytes_(static_cast<size_t>(scratch_product({count, int64_t(sizeof(T))}))) {
    if (bytes_ > 0) data_ = static_cast<T *>(take_block(bytes_));
  }
  ~Scratch() {
    if (data_) give_block_back(data_, bytes_);
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  T *data() { return data_; }

private:
  size_t bytes_;
  T *data_ = nullptr;
};

} // namespace orchard
