#include "../memory.h"

#include "../status.h"
#include "pages.h"
#include "retake.h"
#include "sanitizer.h"

#include <algorithm>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

namespace orchard {
namespace {

struct FreeBlock {
  void *memory;
  size_t bytes;
};

void unmap(void *memory, size_t bytes) noexcept {
  allow(memory, bytes); // for the next mapping at this address
  unmap_pages(memory, bytes);
}

// Free blocks, by size class and by age. A request reuses the youngest block of its class, whose pages are most likely
// in a cache. Blocks over the limit are unmapped, oldest first.
class FreeBlocks {
public:
  void *take(size_t bytes) {
    auto found = by_class_.find(bytes);
    if (found == by_class_.end() || found->second.empty()) return nullptr;
    auto place = found->second.back();
    found->second.pop_back();
    void *memory = place->memory;
    by_age_.erase(place);
    bytes_ -= bytes;
    return memory;
  }

  // Takes a particular block, if it is free. Only the youngest blocks of its class are searched: a longer search would
  // not pay off.
  bool take_this(void *memory, size_t bytes) {
    constexpr size_t most_looked_at = 16;
    const auto found = by_class_.find(bytes);
    if (found == by_class_.end()) return false;
    auto &same = found->second;
    for (size_t at = same.size(), left = most_looked_at; at > 0 && left > 0; left--) {
      const auto place = same[--at];
      if (place->memory != memory) continue;
      same.erase(same.begin() + static_cast<std::ptrdiff_t>(at));
      by_age_.erase(place);
      bytes_ -= bytes;
      return true;
    }
    return false;
  }

  void add(void *memory, size_t bytes) {
    auto &same = by_class_[bytes];
    same.push_back(by_age_.insert(by_age_.end(), {memory, bytes}));
    bytes_ += bytes;
  }

  void shrink_to(size_t limit) noexcept {
    while (bytes_ > limit) {
      FreeBlock oldest = by_age_.front();
      by_class_.find(oldest.bytes)->second.pop_front();
      by_age_.pop_front();
      bytes_ -= oldest.bytes;
      unmap(oldest.memory, oldest.bytes);
    }
  }

  size_t bytes() const { return bytes_; }
  size_t count() const { return by_age_.size(); }

private:
  std::list<FreeBlock> by_age_;
  std::unordered_map<size_t, std::deque<std::list<FreeBlock>::iterator>> by_class_;
  size_t bytes_ = 0;
};

class BlockPool {
public:
  void *take(size_t requested) {
    size_t bytes = size_class(requested);
    std::lock_guard lock(mutex_);
    refuse_where_due(requested, bytes);
    void *memory = free_.take(bytes);
    if (memory) figures_.cache_hits++;
    else memory = map_or_make_room(requested, bytes);
    count_taken(memory, requested, bytes);
    return memory;
  }

  bool retake(void *memory, size_t requested) noexcept {
    const size_t bytes = size_class(requested);
    std::lock_guard lock(mutex_);
    if (refusals_due_ > 0 || bytes > room() || !free_.take_this(memory, bytes)) return false;
    figures_.cache_hits++;
    count_taken(memory, requested, bytes);
    return true;
  }

  void give_back(void *memory, size_t requested) noexcept {
    size_t bytes = size_class(requested);
    std::lock_guard lock(mutex_);
    forbid(memory, bytes);
    figures_.live_blocks--;
    figures_.live_bytes -= bytes;
    try {
      free_.add(memory, bytes);
    } catch (const std::bad_alloc &) { // no memory for the list entry: the block is unmapped instead
      unmap(memory, bytes);
    }
    free_.shrink_to(figures_.cache_limit);
  }

  void shrink_to(size_t limit) noexcept {
    std::lock_guard lock(mutex_);
    free_.shrink_to(limit);
  }

  void set_memory_limit(size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    figures_.memory_limit = bytes;
  }

  void set_cache_limit(size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    figures_.cache_limit = bytes;
    free_.shrink_to(bytes);
  }

  void reset_peak() noexcept {
    std::lock_guard lock(mutex_);
    figures_.peak_bytes = figures_.live_bytes;
  }

  void refuse(int64_t count) noexcept {
    std::lock_guard lock(mutex_);
    refusals_due_ = count;
  }

  MemoryStatistics statistics() noexcept {
    std::lock_guard lock(mutex_);
    MemoryStatistics figures = figures_;
    figures.cached_bytes = free_.bytes();
    figures.cached_blocks = free_.count();
    return figures;
  }

private:
  void count_taken(void *memory, size_t requested, size_t bytes) {
    forbid(memory, bytes);
    allow(memory, requested);
    figures_.allocations++;
    figures_.live_blocks++;
    figures_.live_bytes += bytes;
    figures_.peak_bytes = std::max(figures_.peak_bytes, figures_.live_bytes);
  }

  void refuse_where_due(size_t requested, size_t bytes) {
    if (refusals_due_ > 0) {
      refusals_due_--;
      refuse_now(requested, "a refusal was asked for, to test what follows");
    }
    if (bytes > room())
      refuse_now(requested,
                 std::to_string(figures_.live_bytes) + " bytes are live and the memory limit is " +
                     std::to_string(figures_.memory_limit),
                 ORCHARD_CPU_MEMORY_LIMIT);
  }

  size_t room() const { return figures_.memory_limit - std::min(figures_.memory_limit, figures_.live_bytes); }

  // Frees cached blocks so that live and free blocks together stay within the memory limit.
  void *map_or_make_room(size_t requested, size_t bytes) {
    free_.shrink_to(room() - bytes);
    void *memory = map_pages(bytes);
    if (memory) return memory;
    free_.shrink_to(0);
    memory = map_pages(bytes);
    if (!memory) refuse_now(requested, "the system has no memory left");
    return memory;
  }

  [[noreturn]] void refuse_now(size_t requested, const std::string &reason,
                               orchard_cpu_status status = ORCHARD_CPU_OUT_OF_MEMORY) {
    figures_.refusals++;
    fail(status, std::to_string(requested) + " bytes are refused: " + reason);
  }

  std::mutex mutex_;
  FreeBlocks free_;
  int64_t refusals_due_ = 0;
  MemoryStatistics figures_{0, 0, 0, 0, 0, 0, 0, 0, machine_memory() / 4 * 3, machine_memory() / 8};
};

// Never destroyed: the garbage collector may free blocks while the process exits.
BlockPool &pool() {
  static BlockPool &instance = *new BlockPool;
  return instance;
}

} // namespace

size_t size_class(size_t bytes) {
  bytes += red_zone;
  size_t step = block_alignment;
  while (step * 16 < bytes) step *= 2;
  return std::max((bytes + step - 1) / step, size_t(1)) * step;
}

void *take_block(size_t bytes) { return pool().take(bytes); }
bool retake_block(void *block, size_t bytes) noexcept { return pool().retake(block, bytes); }
void give_block_back(void *block, size_t bytes) noexcept { pool().give_back(block, bytes); }
void trim_blocks() noexcept { pool().shrink_to(0); }
void set_memory_limit(size_t bytes) noexcept { pool().set_memory_limit(bytes); }
void set_cache_limit(size_t bytes) noexcept { pool().set_cache_limit(bytes); }
void reset_peak() noexcept { pool().reset_peak(); }
void refuse_allocations(int64_t count) noexcept { pool().refuse(count); }
MemoryStatistics memory_statistics() noexcept { return pool().statistics(); }

} // namespace orchard
