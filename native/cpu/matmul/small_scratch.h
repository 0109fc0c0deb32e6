// Scratch memory of small products.
#pragma once

#include "../memory.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {

// Scratch memory that is on the stack if it is small, since an allocation takes as long as a small product.
template <class T> class SmallScratch {
public:
  explicit SmallScratch(int64_t count) : allocated_(count > tuning::matmul::stack_numbers ? count : 0) {
    data_ = count > tuning::matmul::stack_numbers ? allocated_.data() : own_;
  }
  SmallScratch(const SmallScratch &) = delete;
  SmallScratch &operator=(const SmallScratch &) = delete;
  T *data() { return data_; }

private:
  T own_[tuning::matmul::stack_numbers], *data_;
  Scratch<T> allocated_;
};

} // namespace orchard::ORCHARD_ISA
