#pragma once

#include <cstddef>

namespace orchard {

// Takes back a released block, if it is still free. Returns whether it was free. `bytes` must be the size passed to
// take_block.
bool retake_block(void *block, size_t bytes) noexcept;

} // namespace orchard
