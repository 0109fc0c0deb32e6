// What the threads of one parallel_for do together before any of them goes on: one fork where there would be two.
#pragma once

#include "../pause.h"

#include <atomic>
#include <cstdint>
#include <thread>

namespace orchard {

// Parts of a work, each done once by whichever thread comes first. A thread waits for parts alone that another one is
// at, so that bodies which run one after the other do not wait at all.
class Together {
public:
  explicit Together(int64_t parts) : parts_(parts) {}

  // Does parts while there are any; returns when all are done, with all that the other threads wrote for theirs.
  template <class Do> void run(Do &&part) {
    int64_t own = 0;
    for (int64_t next; (next = next_.fetch_add(1, std::memory_order_relaxed)) < parts_; own++) part(next);
    if (own > 0) done_.fetch_add(own, std::memory_order_release);
    for (int polls = 0; done_.load(std::memory_order_acquire) < parts_; polls++) {
      pause_briefly();
      if (polls >= polls_between_yields) std::this_thread::yield(), polls = 0;
    }
  }

private:
  static constexpr int polls_between_yields = 1000;

  const int64_t parts_;
  std::atomic<int64_t> next_{0}, done_{0};
};

} // namespace orchard
