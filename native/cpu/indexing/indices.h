// Operands with indices of type int64 or int32.
#pragma once

#include "../functions.h"

#include <atomic>

namespace orchard {

[[noreturn]] void refuse_index(int64_t index, int64_t size);

// Calls use(pointer to the first index) with its type, after checking that the extent is in bounds.
template <class Use>
void with_indices(const Operands &operands, int operand, DType dtype, int64_t offset, const Extent &extent, Use &&use) {
  if (dtype == DType::int64) use(operands.inputs<int64_t>(operand, offset, extent));
  else if (dtype == DType::int32) use(operands.inputs<int32_t>(operand, offset, extent));
  else
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         std::string("expected indices of int64 or int32, got ") + dtype_names[static_cast<int>(dtype)]);
}

// Returns whether 0 ≤ index < size. Another thread may change the memory during a call, so each index is read once into
// a variable, and the checked value is used.
inline bool is_in_range(int64_t index, int64_t size) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
}

// Keeps an index out of range that the threads of a call found. Threads must not throw, so `check` throws after they
// have finished.
class BadIndex {
public:
  void set(int64_t index) {
    index_.store(index, std::memory_order_relaxed);
    is_found_.store(true, std::memory_order_release);
  }
  void check(int64_t size) const {
    if (is_found_.load(std::memory_order_acquire)) refuse_index(index_.load(std::memory_order_relaxed), size);
  }

private:
  std::atomic<int64_t> index_{0};
  std::atomic<bool> is_found_{false};
};

} // namespace orchard
