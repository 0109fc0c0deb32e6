// The block of the function "triangleIndices".
#pragma once

#include "../block.h"

namespace orchard {

// The triangle of a matrix of `rows` by `columns`, with `count` elements.
struct TriangleIndicesBlock {
  Flag lower;
  Whole rows, columns, diagonal, count;
};

} // namespace orchard
