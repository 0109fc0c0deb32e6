// Reads the block of doubles of an operation, one number after the other.
#pragma once

#include "dtypes.h"
#include "status.h"

#include <cstdint>
#include <string>

namespace orchard {

class BlockReader {
public:
  explicit BlockReader(const double *block) : next_(block) {}

  double real() { return *next_++; }
  int64_t whole() { return static_cast<int64_t>(real()); }

  DType dtype() {
    int64_t code = whole();
    if (code < 0 || code >= dtype_count)
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no dtype with the code " + std::to_string(code));
    return static_cast<DType>(code);
  }

private:
  const double *next_;
};

// The address of an element.
inline const char *element(const void *base, DType dtype, int64_t offset) {
  return static_cast<const char *>(base) + offset * dtype_sizes[static_cast<int>(dtype)];
}
inline char *element(void *base, DType dtype, int64_t offset) {
  return static_cast<char *>(base) + offset * dtype_sizes[static_cast<int>(dtype)];
}

} // namespace orchard
