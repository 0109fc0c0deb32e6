#pragma once

// - dtype: of the result
#include "../../.build/generated/dequantize_block.h"

#include "weights.h"
