// Max unpooling: the inverse of max pooling.
#pragma once

// x and the indices are [planes, elements], the result is [planes, pixels], all contiguous. Each element is written to
// the position that its index names, the last of several; all other pixels are 0.
// - offsets: x, indices, result
#include "../../.build/generated/max_unpool_block.h"

#include "../block.h"
#include "../dtypes.h"
