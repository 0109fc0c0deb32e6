// Vandermonde matrices.
#pragma once

// `rows` dense numbers of a float dtype or int64; the result is [rows, columns].
#include "../../.build/generated/vander_block.h"

#include "../bounds.h"
