// Indices of int64 or int32.
#pragma once

#include "../block.h"

namespace orchard {

// Calls use(pointer to the first index) with its type.
template <class Use> void with_indices(DType dtype, const void *base, int64_t offset, Use &&use) {
  const char *first = element(base, dtype, offset);
  if (dtype == DType::int64) use(reinterpret_cast<const int64_t *>(first));
  else if (dtype == DType::int32) use(reinterpret_cast<const int32_t *>(first));
  else
    fail(ORCHARD_CPU_INVALID_ARGUMENT,
         std::string("expected indices of int64 or int32, got ") + dtype_names[static_cast<int>(dtype)]);
}

} // namespace orchard
