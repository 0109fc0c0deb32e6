// Work that follows a matrix product on each part of its result, while the part is in a cache.
#pragma once

#include <cstdint>

namespace orchard {

// Rows and columns of a result.
struct ResultPart {
  int64_t row, end_row, column, end_column;
};

// A product's method may call `run` for parts that together cover the result, each once, on any thread, as soon as a
// part is complete. If it does, it sets `is_taken` first; otherwise the caller does the work after the product. `run`
// must not throw.
struct Epilogue {
  void (*run)(void *context, const ResultPart &part);
  void *context;
  bool is_taken = false;
};

} // namespace orchard
