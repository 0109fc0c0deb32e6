#pragma once

#include "weights.h"

namespace orchard {

struct DequantizeBlock : WeightHead {
  DTypeField dtype; // of the result
};

} // namespace orchard
