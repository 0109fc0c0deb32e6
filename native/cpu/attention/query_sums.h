// Memory for the partial sums of dq: one array for each chunk of a group of heads, allocated only for groups in
// progress.
#pragma once

#include "../memory.h"
#include "../parallel.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace orchard {

template <class T> class QuerySums {
public:
  // `numbers` is the size of a group's array per chunk. Throws Failure if memory can't be allocated, as Scratch does.
  QuerySums(int64_t groups, int64_t chunks, int64_t numbers)
      : slots_(size_t(std::min<int64_t>(groups, thread_count()))), chunks_(chunks), numbers_(numbers),
        memory_(scratch_product({int64_t(slots_.size()), numbers})) {}

  // Calls use(sums) for a chunk of a group, and finish(sums) after the group's last chunk. All chunks of a group start
  // before those of the next group, so at most as many groups as threads are in progress.
  template <class Use, class Finish> void with(int64_t group, Use &&use, Finish &&finish) {
    Slot &slot = enter(group);
    T *sums = memory_.data() + (&slot - slots_.data()) * numbers_;
    use(sums);
    if (!is_last(slot)) return;
    finish(sums);
    leave(slot);
  }

private:
  static constexpr int64_t nobody = -1;
  struct Slot {
    int64_t group = nobody, chunks_left = 0;
  };

  Slot &enter(int64_t group) {
    std::unique_lock lock(mutex_);
    Slot *slot = nullptr;
    left_.wait(lock, [&] { return (slot = find(group)) || (slot = find(nobody)); });
    if (slot->group == nobody) *slot = {group, chunks_};
    return *slot;
  }

  Slot *find(int64_t group) {
    auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot &slot) { return slot.group == group; });
    return found == slots_.end() ? nullptr : &*found;
  }

  bool is_last(Slot &slot) {
    std::lock_guard lock(mutex_);
    return --slot.chunks_left == 0;
  }

  void leave(Slot &slot) {
    {
      std::lock_guard lock(mutex_);
      slot.group = nobody;
    }
    left_.notify_all();
  }

  std::vector<Slot> slots_;
  const int64_t chunks_, numbers_;
  Scratch<T> memory_;
  std::mutex mutex_;
  std::condition_variable left_;
};

} // namespace orchard
