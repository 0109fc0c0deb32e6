// The block of the function "cross".
#pragma once

#include "../nest.h"

namespace orchard {

// The nest is over all axes but that of the vectors, along which the operands have `strides`: a, b and the result.
struct CrossBlock {
  DTypeField dtype;
  Whole offsets[3], strides[3];
  NestBlock<3> nest;
};

} // namespace orchard
