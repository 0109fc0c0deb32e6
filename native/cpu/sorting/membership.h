// Tests whether elements are among others.
#pragma once

#include "../bounds.h"

namespace orchard {

// Dense tensors of one dtype. The result is bool; `invert` negates it.
struct IsinBlock {
  DTypeField dtype;
  Whole count, others;
  Flag invert;
  Whole offsets[3];
};

} // namespace orchard
