// Bounds checks: which elements a call reads and writes, compared with the size of each storage before anything is
// touched.
//
// An operand's address is given only for an extent (`Operands` in functions.h): the elements that the call visits, from
// its offset, sizes and strides. A block may hold any numbers; nothing here overflows.
#pragma once

#include "block.h"

#include <cstdint>

namespace orchard {

// The elements that a walk along axes visits, relative to its first one: how many steps it has, and its lowest and
// highest element.
class Extent {
public:
  // One element.
  Extent() = default;
  // `count` adjacent elements.
  explicit Extent(int64_t count) { along(count, 1); }

  // Repeats the elements for each index of a further axis.
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

// Returns an address for an operand of which no element is visited.
inline char *no_elements() {
  alignas(64) static char nothing[64];
  return nothing;
}

[[noreturn]] void refuse_operand(int index, int64_t bytes, const void *address, int64_t size, int64_t offset,
                                 const Extent &extent);

// Returns the product of numbers of elements, or bytes, of a call's scratch memory. Throws Failure if it exceeds any
// memory.
int64_t scratch_product(std::initializer_list<int64_t> factors);

} // namespace orchard
