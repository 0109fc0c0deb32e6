// Bounds checks: compares the elements that a call reads and writes with the size of each storage, before any is
// accessed.
//
// A function gets an operand's address only for an extent (`Operands` in functions.h): the elements that it visits,
// given by offset, sizes and strides. A block may hold any numbers; no computation here overflows.
#pragma once

#include "block.h"

#include <cstdint>

namespace orchard {

// The elements that a loop over axes visits, relative to the first: how many there are, and the lowest and highest
// index.
class Extent {
public:
  // One element.
  Extent() = default;
  // `count` adjacent elements.
  explicit Extent(int64_t count) { along(count, 1); }

  // Adds an axis: repeats the elements for each of its indices.
  Extent &along(int64_t size, int64_t stride) {
    if (size == 1) return *this;
    int64_t reach;
    is_possible_ &= size >= 0;
    is_possible_ &= !__builtin_mul_overflow(size - 1, stride, &reach);
    int64_t &end = reach < 0 ? low_ : high_;
    is_possible_ &= !__builtin_add_overflow(end, reach, &end);
    is_possible_ &= !__builtin_mul_overflow(count_, size, &count_) && count_ <= largest_whole;
    return *this;
  }

  bool is_possible() const { return is_possible_; }
  bool is_empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

private:
  int64_t count_ = 1, low_ = 0, high_ = 0;
  bool is_possible_ = true;
};

// Returns a valid address for an operand without visited elements.
inline char *no_elements() {
  alignas(64) static char nothing[64];
  return nothing;
}

[[noreturn]] void refuse_operand(int index, int64_t bytes, const void *address, int64_t size, int64_t offset,
                                 const Extent &extent);

// Returns the product of `factors`: the size of a call's scratch memory in elements or bytes. Throws Failure if it
// exceeds the address space.
int64_t scratch_product(std::initializer_list<int64_t> factors);

} // namespace orchard
