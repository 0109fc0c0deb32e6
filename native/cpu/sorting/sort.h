// The block of the function "sort".
#pragma once

// - slices: x, values, indices
// - count: elements of each sorted slice to return
#include "../../.build/generated/sort_block.h"

#include "../slices.h"
