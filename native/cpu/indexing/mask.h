// Elements that a mask selects, or that are not zero. A first pass counts them in each block. In the second pass, the
// position of each block in the result is therefore known, and threads share the blocks.
#pragma once

// `starts` gets, for each block of `block_size` elements in row-major order, the number of selected elements before it,
// and finally the total number.
#include "../../.build/generated/mask_starts_block.h"

// `selected` is the number of selected elements, which is the last element of `starts`. `starts` and the result are
// dense.
// - rank, sizes: the shape whose coordinates are written
#include "../../.build/generated/nonzero_block.h"

// The nest is over x and the mask.
#include "../../.build/generated/masked_select_block.h"

// The nest is over x, the mask and the result. The source is dense, with at least `selected` elements.
#include "../../.build/generated/masked_scatter_block.h"

#include "../nest.h"

namespace orchard {

// Writes whether each of `count` elements is not zero, as 0 or 1. Returns the number of ones. Elements are `stride`
// apart.
struct MaskKernels {
  int64_t (*flags[dtype_count])(const void *x, int64_t stride, int64_t count, uint8_t *flags);
};

} // namespace orchard

ORCHARD_ISA_TABLE(MaskKernels, mask_kernels)
