// Running logarithms of sums of exponentials.
#pragma once

#include "../slices.h"

namespace orchard {

struct LogcumsumexpBlock {
  DTypeField dtype; // of x and the result, a float
  SlicesBlock<2> slices;
};

} // namespace orchard
