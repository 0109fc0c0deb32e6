// Pages of mapped files, brought into memory before they are used.
#pragma once

#include "../block.h"

namespace orchard {

struct ReadAheadBlock {
  Whole offset, bytes;
};

} // namespace orchard
