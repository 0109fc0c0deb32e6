// Work that the threads of one parallel_for complete together before any of them continues: one fork-join instead of
// two.
#pragma once

#include "../pause.h"
#include "tuning.h"

#include <atomic>
#include <cstdint>
#include <thread>

namespace orchard {

// Some parts of work, each done once by the first thread that claims it. A thread waits only for parts that another
// thread is working on, so bodies that run sequentially never wait.
class Together {
public:
  explicit Together(int64_t parts) : parts_(parts) {}

  // Claims and does parts until none is left. Returns when all parts are done and the other threads' writes are
  // visible.
  template <class Do> void run(Do &&part) {
    int64_t completed = 0;
    for (int64_t next; (next = next_.fetch_add(1, std::memory_order_relaxed)) < parts_; completed++) part(next);
    if (completed > 0) done_.fetch_add(completed, std::memory_order_release);
    for (int polls = 0; done_.load(std::memory_order_acquire) < parts_; polls++) {
      pause_briefly();
      if (polls >= tuning::matmul::polls_between_yields) std::this_thread::yield(), polls = 0;
    }
  }

private:
  const int64_t parts_;
  std::atomic<int64_t> next_{0}, done_{0};
};

} // namespace orchard
