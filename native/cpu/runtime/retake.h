#pragma once

#include <cstddef>

namespace orchard {

// Takes a block again that was given back, if it is still free. Returns whether it was; `bytes` as for take_block.
bool retake_block(void *block, size_t bytes) noexcept;

} // namespace orchard
