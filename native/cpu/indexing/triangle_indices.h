// The block of the function "triangleIndices".
#pragma once

// The triangle of a matrix of `rows` by `columns`, with `count` elements.
#include "../../.build/generated/triangle_indices_block.h"

#include "../block.h"
