// Borders whose elements are copies of a tensor's elements, and the gradient of such a tensor.
#pragma once

#include "../nest.h"

namespace orchard {

// The source of the elements beyond both ends of an axis: a constant, the nearest element, the mirror image without the
// element at the end, or the other end.
ORCHARD_NAMES(PadMode, constant, replicate, reflect, circular)

// The axes of the tensor without its border (`sizes`, with its strides), and the number of elements before and after
// each. The result is dense and row-major.
struct PadBlock {
  DTypeField dtype;
  Name<PadMode> mode;
  Whole rank, offset, value_offset;
  Whole sizes[max_rank], strides[max_rank], before[max_rank], after[max_rank];
};

// `strides` and `offset` describe the gradient of the result with its border.
struct PadGradientBlock {
  DTypeField dtype;
  Name<PadMode> mode;
  Whole rank, offset;
  Whole sizes[max_rank], strides[max_rank], before[max_rank], after[max_rank];
};

} // namespace orchard
