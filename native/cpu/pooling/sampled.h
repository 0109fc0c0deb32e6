// Images sampled at positions that are computed or given: fractional max pooling, and sampling by a grid.
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

// The values outside the border: zeros, the nearest element, or mirror images.
ORCHARD_NAMES(GridBorder, zeros, border, reflection)

// x is [batch, channels, height, width], the grid [batch, places, 2] and the result [batch, channels, places], all
// contiguous.
struct GridSampleBlock {
  DTypeField dtype; // float32 or float64
  Name<GridBorder> border;
  Flag is_nearest, aligns_corners;
  Whole batch, channels, height, width, places;
  Whole offsets[3]; // x, grid, result
};

} // namespace orchard
