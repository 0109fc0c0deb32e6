// Images sampled at positions that are computed: fractional max pooling. Positions of an affine map.
#pragma once

#include "../block.h"
#include "../dtypes.h"

namespace orchard {

// x is [planes, height, width], contiguous. The samples [planes, 2], float32, are the offsets of the windows in [0, 1),
// for width and height. The results [planes, …output] are the largest element of each window, the first NaN before all
// others, and its row-major index in the plane.
struct FractionalMaxPoolBlock {
  DTypeField dtype; // a float
  Whole planes, input[2], output[2], kernel[2];
  Whole offsets[4]; // x, samples, values, indices
};

// The matrices are [batch, axes, axes + 1] and the result [batch, …size, axes], both contiguous: the positions of the
// centers of all elements, x first, multiplied by the matrix. With two axes, the first size is 1.
struct AffineGridBlock {
  DTypeField dtype; // float32 or float64
  Flag aligns_corners;
  Whole axes, batch, size[3];
  Whole offsets[2];
};

} // namespace orchard
