// Running logarithms of sums of exponentials.
#pragma once

// - dtype: of x and the result, a float
#include "../../.build/generated/logcumsumexp_block.h"

#include "../slices.h"
