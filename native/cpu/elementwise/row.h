// The function that a loop calls for a row of elements.
#pragma once

#include <cstdint>

namespace orchard {

// Computes `count` adjacent elements of the result from `count` elements of each input.
using ElementwiseRow = void (*)(const void *const *inputs, void *out, int64_t count);

} // namespace orchard
