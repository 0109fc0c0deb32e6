// Vandermonde matrices.
#pragma once

#include "../bounds.h"

namespace orchard {

// `rows` dense numbers of a float dtype or int64; the result is [rows, columns].
struct VanderBlock {
  DTypeField dtype;
  Whole rows, columns, offset;
};

} // namespace orchard
