// Shares tasks of different lengths among threads.
#pragma once

#include "../isa.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>
#include <atomic>

namespace orchard::ORCHARD_ISA {

inline int64_t workers_for(double operations, int64_t tasks) {
  return std::min<int64_t>(operations < tuning::convolution::least_shared_operations ? 1 : thread_count(), tasks);
}

// Calls body(task, worker) for every task. Each worker number belongs to one thread, and so can select its scratch
// memory.
template <class Body> void share_tasks(int64_t tasks, int64_t workers, Body &&body) {
  std::atomic<int64_t> next{0};
  parallel_for(workers, 1, [&](int64_t worker, int64_t) {
    for (int64_t task; (task = next.fetch_add(1)) < tasks;) body(task, worker);
  });
}

} // namespace orchard::ORCHARD_ISA
