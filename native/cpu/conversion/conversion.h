// Dense conversion between dtypes.
#pragma once

#include "../../.build/generated/convert_block.h"

#include "../block.h"

namespace orchard {

// inputs[0] is the source.
using ConvertRow = void (*)(const void *const *inputs, void *out, int64_t count);

// Indexed by the dtypes of source and result. A row consists of adjacent elements.
struct Conversions {
  ConvertRow rows[dtype_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Conversions, conversions)
