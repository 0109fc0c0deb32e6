// Prefetches the rows of a thread's next task while it computes a task. The rows of a head are far apart in a packed
// projection, so the hardware does not predict them: without this, sequences of 50 tokens take a third longer.
#pragma once

#include "attention.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

class RowsAhead {
public:
  // Fetches up to `most` rows of each added operand, in about `steps` equal steps.
  RowsAhead(int64_t most, int64_t steps) : most_(most), per_step_(divided_up(most, std::max<int64_t>(1, steps))) {}

  // Rows are `stride` bytes apart.
  void add(const char *first, int64_t stride, int64_t rows, int64_t bytes) {
    if (rows > 0 && bytes > 0) operands_[count_++] = {first, stride, rows, bytes};
  }

  [[gnu::always_inline]] void step() {
    for (int64_t end = std::min(at_ + per_step_, most_); at_ < end; at_++)
      for (int i = 0; i < count_; i++)
        if (at_ < operands_[i].rows) fetch(operands_[i].first + at_ * operands_[i].stride, operands_[i].bytes);
  }

private:
  static constexpr int64_t line = 64;
  struct Operand {
    const char *first;
    int64_t stride, rows, bytes;
  };

  // Into the L2 cache: the task at hand uses the whole L1 cache. Prefetching an address past the last row is harmless.
  static void fetch(const char *row, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += line) __builtin_prefetch(row + at, 0, 2);
  }

  int64_t most_, per_step_, at_ = 0;
  int count_ = 0;
  Operand operands_[4];
};

} // namespace orchard::ORCHARD_ISA
