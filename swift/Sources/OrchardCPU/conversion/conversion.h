// Dense conversion between dtypes.
#pragma once

#include "../dtypes.h"

namespace orchard {

using ConvertRow = void (*)(const void *in, void *out, int64_t count);

// By source and result: rows of adjacent elements.
struct Conversions {
  ConvertRow rows[dtype_count][dtype_count];
};

} // namespace orchard

ORCHARD_ISA_TABLE(Conversions, conversions)
