// The block of the function "median".
#pragma once

// One element of each slice by its position in ascending order, and its index. NaN is larger than all numbers; the
// first of equal elements has the lowest position. The position is `kth`, from 1 on. If that is 0, it is the lower
// middle: with `skips_nan` of the numbers, otherwise of all elements, or the first NaN if there is one. The results are
// contiguous in the order of slices.
// - offsets: of values and indices
#include "../../.build/generated/median_block.h"

#include "../slices.h"
