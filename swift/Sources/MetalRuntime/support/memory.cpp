// Device memory: one reserved region of addresses, the arena, in which every allocation has separate slots.
//
//   | guard | allocation A, mapped pages … | unmapped to the slot's end | guard | allocation B …
//
// A slot is 64 KiB. A table with one entry per slot gives the allocation of every address, guard slots included. Freed
// ranges return their pages immediately, but their addresses stay in quarantine, so that an access through a stale
// pointer faults and its allocation is known.
#include "support/memory.h"

#include "check/checker.h"
#include "include/metal_runtime.h"
#include "support/settings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace mrt {
namespace {

constexpr size_t slot_bytes = size_t(64) << 10;
constexpr size_t largest_arena = size_t(1) << 40;
constexpr size_t smallest_arena = size_t(1) << 30;
// The number of frees before an address is reused. It is limited, since a used address permanently takes page tables
// and a table entry.
constexpr size_t quarantine_limit = 4096;

void *reserve(size_t bytes, int protection) {
  void *address = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

size_t page_bytes() {
  static const size_t bytes = size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

size_t memory_limit() {
  if (int64_t limit = setting_number(Setting::memory_limit); limit > 0) return size_t(limit);
  static const size_t physical = size_t(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  return physical / 4 * 3;
}

class Memory {
public:
  Memory() {
    for (size_ = largest_arena; size_ >= smallest_arena && !base_; size_ /= 2)
      base_ = uintptr_t(reserve(size_, PROT_NONE));
    if (!base_) {
      size_ = 0;
      return;
    }
    size_ *= 2; // the loop halved it once more after the successful attempt
    size_t slots = size_ / slot_bytes;
    table_ = static_cast<std::atomic<Allocation *> *>(reserve(slots * sizeof *table_, PROT_READ | PROT_WRITE));
    if (table_) free_[1] = slots - 1; // slot 0 remains the guard before the first allocation
  }

  ArenaBounds bounds() const { return {base_, size_}; }
  size_t live_bytes() const { return live_.load(std::memory_order_relaxed); }

  void *allocate(size_t length, const char *label) {
    if (length == 0 || length > size_) return nullptr;
    std::unique_lock lock(mutex_);
    if (length > memory_limit() || live_bytes() > memory_limit() - length) return nullptr;
    size_t slots = round_up(length, slot_bytes) / slot_bytes + 1; // plus a guard slot
    size_t first = take_slots(slots);
    if (first == 0) return nullptr;
    void *address = reinterpret_cast<void *>(base_ + first * slot_bytes);
    if (mprotect(address, round_up(length, page_bytes()), PROT_READ | PROT_WRITE) != 0) {
      give_slots(first, slots);
      return nullptr;
    }
    Allocation *allocation = add_record(uintptr_t(address), length, label);
    for (size_t slot = first; slot < first + slots; slot++) table_[slot].store(allocation, std::memory_order_release);
    live_ += length;
    lock.unlock();
    if (poisons_device_memory()) poison(address, round_up(length, page_bytes()));
    checker::memory_allocated(address, length);
    return address;
  }

  void *wrap(void *pointer, size_t length, const char *label) {
    std::unique_lock lock(mutex_);
    add_record(uintptr_t(pointer), length, label)->wrapped = true;
    lock.unlock();
    checker::memory_allocated(pointer, length);
    checker::memory_written(pointer, length); // the caller is responsible for the contents of its memory
    return pointer;
  }

  void free(void *pointer) {
    // Called without the lock, since the checker may look up addresses.
    if (size_t capacity = capacity_at(pointer)) checker::memory_freed(pointer, capacity);
    std::unique_lock lock(mutex_);
    Allocation *allocation = record_at(pointer);
    if (!allocation) return;
    if (allocation->wrapped) return drop_record(allocation);
    live_ -= allocation->capacity;
    allocation->freed = true;
    // A new mapping over the old one removes the pages and makes the range inaccessible in one step.
    mmap(pointer, round_up(allocation->capacity, page_bytes()), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    quarantine_.push_back(allocation);
    if (quarantine_.size() > quarantine_limit) release_oldest();
  }

  void set_label(void *pointer, const char *label) {
    std::unique_lock lock(mutex_);
    if (Allocation *allocation = record_at(pointer)) allocation->label = label ? label : "";
  }

  void reuse(void *pointer, size_t length) {
    std::unique_lock lock(mutex_);
    Allocation *allocation = record_at(pointer);
    if (!allocation) return;
    allocation->length = std::min(length, allocation->capacity);
    const size_t capacity = allocation->capacity;
    lock.unlock();
    if (!setting_flag(Setting::check)) return;
    if (poisons_device_memory()) poison(pointer, capacity);
    checker::memory_fresh(pointer, capacity);
  }

  std::string label(const Allocation *allocation) {
    std::shared_lock lock(mutex_);
    return allocation->label;
  }

  const Allocation *find(uintptr_t address) {
    if (address - base_ < size_)
      return table_ ? table_[(address - base_) / slot_bytes].load(std::memory_order_acquire) : nullptr;
    std::shared_lock lock(mutex_);
    for (auto it = records_.upper_bound(address); it != records_.begin();) {
      Allocation *allocation = (--it)->second;
      if (allocation->contains(address, 1)) return allocation;
      if (!allocation->wrapped) break; // allocations of the arena never overlap
    }
    return nullptr;
  }

  const Allocation *nearest(uintptr_t address, size_t *distance) {
    std::shared_lock lock(mutex_);
    const Allocation *best = nullptr;
    auto consider = [&](const Allocation *allocation) {
      uintptr_t last = allocation->address + allocation->length - 1;
      size_t away = address < allocation->address ? allocation->address - address : address > last ? address - last : 0;
      if (!best || away < *distance) {
        best = allocation;
        *distance = away;
      }
    };
    auto above = records_.upper_bound(address);
    if (above != records_.end()) consider(above->second);
    if (above != records_.begin()) consider(std::prev(above)->second);
    return best;
  }

private:
  // Takes the lowest free range that is large enough; if there is none, addresses leave the quarantine, oldest first.
  size_t take_slots(size_t count) {
    for (;;) {
      for (auto it = free_.begin(); it != free_.end(); ++it) {
        auto [first, available] = *it;
        if (available < count) continue;
        free_.erase(it);
        if (available > count) free_[first + count] = available - count;
        return first;
      }
      if (quarantine_.empty()) return 0;
      release_oldest();
    }
  }

  void give_slots(size_t first, size_t count) {
    auto after = free_.lower_bound(first);
    if (after != free_.end() && after->first == first + count) {
      count += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == first) {
        before->second += count;
        return;
      }
    }
    free_[first] = count;
  }

  void release_oldest() {
    Allocation *allocation = quarantine_.front();
    quarantine_.pop_front();
    size_t first = (allocation->address - base_) / slot_bytes;
    size_t slots = round_up(allocation->capacity, slot_bytes) / slot_bytes + 1;
    for (size_t slot = first; slot < first + slots; slot++) table_[slot].store(nullptr, std::memory_order_release);
    give_slots(first, slots);
    drop_record(allocation);
  }

  Allocation *add_record(uintptr_t address, size_t length, const char *label) {
    if (spare_.empty()) spare_.push_back(&storage_.emplace_back());
    Allocation *allocation = spare_.back();
    spare_.pop_back();
    *allocation = {address, length, length, ++serial_, false, false, label ? label : ""};
    records_.emplace(address, allocation);
    return allocation;
  }

  void drop_record(Allocation *allocation) {
    auto [first, last] = records_.equal_range(allocation->address);
    records_.erase(std::find_if(first, last, [&](auto &entry) { return entry.second == allocation; }));
    spare_.push_back(allocation);
  }

  size_t capacity_at(void *pointer) {
    std::shared_lock lock(mutex_);
    Allocation *allocation = record_at(pointer);
    return allocation ? allocation->capacity : 0;
  }

  Allocation *record_at(void *pointer) {
    auto [first, last] = records_.equal_range(uintptr_t(pointer));
    for (; first != last; ++first)
      if (!first->second->freed) return first->second;
    return nullptr;
  }

  uintptr_t base_ = 0;
  size_t size_ = 0;
  std::atomic<Allocation *> *table_ = nullptr; // indexed by slot
  std::atomic<size_t> live_{0};
  std::shared_mutex mutex_;             // guards the following fields
  std::map<size_t, size_t> free_;       // first slot → number of slots
  std::deque<Allocation *> quarantine_; // freed, oldest first
  std::multimap<uintptr_t, Allocation *> records_;
  std::deque<Allocation> storage_; // never shrinks, since a reader without the lock may use a record
  std::vector<Allocation *> spare_;
  uint64_t serial_ = 0;
};

// Never destroyed: kernels may still run while the process exits.
Memory &memory() {
  static Memory &instance = *new Memory;
  return instance;
}

} // namespace

namespace {

uint8_t poison_at(uintptr_t address) { return uint8_t(address & 1 ? poison_word >> 8 : poison_word); }

} // namespace

void poison(void *memory, size_t size) {
  auto *bytes = static_cast<uint8_t *>(memory);
  const size_t head = std::min<size_t>(size, uintptr_t(memory) & 1);
  if (head) bytes[0] = poison_at(uintptr_t(bytes));
  for (size_t i = head; i + 1 < size; i += 2) memcpy(bytes + i, &poison_word, sizeof poison_word);
  if ((size - head) % 2) bytes[size - 1] = poison_at(uintptr_t(bytes + size - 1));
}

bool is_poison(const void *memory, size_t size) {
  const auto *bytes = static_cast<const uint8_t *>(memory);
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != poison_at(uintptr_t(bytes + i))) return false;
  return true;
}

void *absent_argument() {
  static void *const memory = [] {
    void *fresh = reserve(slot_bytes, PROT_READ | PROT_WRITE);
    if (!fresh) return fresh;
    poison(fresh, slot_bytes);
    mprotect(fresh, slot_bytes, PROT_READ);
    return fresh;
  }();
  return memory;
}

bool is_absent_argument(uintptr_t address) { return address - uintptr_t(absent_argument()) < slot_bytes; }

ArenaBounds arena_bounds() { return memory().bounds(); }
const Allocation *find_allocation(const void *address) { return memory().find(uintptr_t(address)); }
std::string allocation_label(const Allocation *allocation) { return memory().label(allocation); }

const Allocation *nearest_allocation(const void *address, size_t *distance) {
  return memory().nearest(uintptr_t(address), distance);
}

bool is_label_of_inline_bytes(const std::string &label) {
  constexpr const char start[] = "setBytes at index";
  return label.compare(0, sizeof start - 1, start) == 0;
}

std::string describe_address(const void *address, const Allocation *allocation) {
  const uintptr_t at = uintptr_t(address), end = allocation->address + allocation->length;
  const std::string name = "buffer '" + allocation_label(allocation) + "' (" + std::to_string(allocation->length) +
                           " bytes" + (allocation->freed ? ", freed)" : ")");
  if (at < allocation->address) return std::to_string(allocation->address - at) + " bytes before " + name;
  if (at >= end) return std::to_string(at - end) + " bytes past the end of " + name;
  return "byte " + std::to_string(at - allocation->address) + " of " + name;
}

} // namespace mrt

void *mrt_memory_allocate(size_t length, const char *label) { return mrt::memory().allocate(length, label); }
void *mrt_memory_wrap(void *pointer, size_t length, const char *label) {
  return mrt::memory().wrap(pointer, length, label);
}
void mrt_memory_free(void *pointer) { mrt::memory().free(pointer); }
void mrt_memory_set_label(void *pointer, const char *label) { mrt::memory().set_label(pointer, label); }
void mrt_memory_mark_written(void *pointer, size_t length) { mrt::checker::memory_written(pointer, length); }

void mrt_memory_mark_copied(void *destination, const void *source, size_t length) {
  mrt::checker::memory_copied(destination, source, length);
}

void mrt_memory_mark_fresh(void *pointer, size_t length) {
  if (mrt::poisons_device_memory()) mrt::poison(pointer, length);
  mrt::checker::memory_fresh(pointer, length);
}

void mrt_memory_reuse(void *pointer, size_t length) { mrt::memory().reuse(pointer, length); }

size_t mrt_memory_live_bytes(void) { return mrt::memory().live_bytes(); }
