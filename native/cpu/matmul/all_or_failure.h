// parallel_for with bodies that may throw Failure.
#pragma once

#include "../parallel.h"
#include "../status.h"

#include <mutex>
#include <optional>

namespace orchard {

// Like parallel_for. The first failure is stored, and thrown after all blocks are done.
template <class Body> void parallel_for_failing(int64_t count, int64_t grain, Body &&body) {
  std::mutex mutex;
  std::optional<Failure> failure;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    try {
      body(begin, end);
    } catch (const Failure &problem) {
      std::lock_guard lock(mutex);
      failure = problem;
    }
  });
  if (failure) throw *failure;
}

} // namespace orchard
