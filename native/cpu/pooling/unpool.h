// Max unpooling: the inverse of max pooling.
#pragma once

#include "../block.h"
#include "../dtypes.h"

namespace orchard {

// x and the indices are [planes, elements], the result is [planes, pixels], all contiguous. Each element is written to
// the position that its index names, the last of several; all other pixels are 0.
struct MaxUnpoolBlock {
  DTypeField dtype, index_dtype;
  Whole planes, elements, pixels;
  Whole offsets[3]; // x, indices, result
};

} // namespace orchard
