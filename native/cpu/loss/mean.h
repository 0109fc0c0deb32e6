// The mean of losses.
#pragma once

#include "../bounds.h"

namespace orchard {

// Dense losses and the weights of their targets, both of float32 or float64.
struct MeanLossBlock {
  DTypeField dtype;
  Whole count;
};

} // namespace orchard
