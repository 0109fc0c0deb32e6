// Scratch memory for the bodies of a parallel_for, which must not allocate. There is one slot per thread; each is used
// by one body at a time.
#pragma once

#include "../memory.h"
#include "../parallel.h"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace orchard {

template <class T> class ScratchSlots {
public:
  // `bodies` is the number of bodies. Throws Failure if memory can't be allocated, as Scratch does.
  ScratchSlots(int64_t bodies, int64_t elements)
      : count_(std::max<int64_t>(1, std::min<int64_t>(bodies, thread_count()))),
        memory_(scratch_product({count_, elements})) {
    for (int64_t slot = 0; slot < count_; slot++) free_.push_back(memory_.data() + slot * elements);
  }

  // Calls use(slot); waits if all slots are in use.
  template <class Use> void with(Use &&use) {
    T *slot = take();
    use(slot);
    {
      std::lock_guard lock(mutex_);
      free_.push_back(slot);
    }
    returned_.notify_one();
  }

private:
  T *take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !free_.empty(); });
    T *slot = free_.back();
    free_.pop_back();
    return slot;
  }

  int64_t count_;
  Scratch<T> memory_;
  std::vector<T *> free_;
  std::mutex mutex_;
  std::condition_variable returned_;
};

} // namespace orchard
