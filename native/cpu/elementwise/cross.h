// The block of the function "cross".
#pragma once

#include "../nest.h"

namespace orchard {

// The nest covers all axes except the vectors' axis. `strides` are the strides of a, b and the result along that axis.
struct CrossBlock {
  DTypeField dtype;
  Whole offsets[3], strides[3];
  NestBlock<3> nest;
};

} // namespace orchard
