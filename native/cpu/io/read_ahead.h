// Reads pages of mapped files into memory before they are used.
#pragma once

#include "../block.h"

namespace orchard {

struct ReadAheadBlock {
  Whole offset, bytes;
};

} // namespace orchard
