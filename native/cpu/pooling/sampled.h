// Images sampled at positions that are computed: fractional max pooling. Positions of an affine map.
#pragma once

// x is [planes, height, width], contiguous. The samples [planes, 2], float32, are the offsets of the windows in [0, 1),
// for width and height. The results [planes, …output] are the largest element of each window, the first NaN before all
// others, and its row-major index in the plane.
// - dtype: a float
// - offsets: x, samples, values, indices
#include "../../.build/generated/fractional_max_pool_block.h"

// The matrices are [batch, axes, axes + 1] and the result [batch, …size, axes], both contiguous: the positions of the
// centers of all elements, x first, multiplied by the matrix. With two axes, the first size is 1.
// - dtype: float32 or float64
#include "../../.build/generated/affine_grid_block.h"

#include "../block.h"
#include "../dtypes.h"
