// Threads that sleep until a counter changes, and are then all woken at once.
#pragma once

#include <atomic>
#include <cstdint>
#if defined(__linux__)
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace orchard {

#if defined(__linux__)

// Lock-free: if a mutex guarded the counter, threads that wake together would acquire it one after the other.
class Sleepers {
public:
  // Returns when the counter differs from `seen`, or spuriously.
  void sleep(std::atomic<uint32_t> &counter, uint32_t seen) {
    count_.fetch_add(1, std::memory_order_seq_cst);
    static_assert(sizeof counter == sizeof(uint32_t));
    syscall(SYS_futex, &counter, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Call this after changing the counter with sequential consistency: then a thread that missed the change is already
  // counted.
  bool are_there() const { return count_.load(std::memory_order_seq_cst) > 0; }
  void wake(std::atomic<uint32_t> &counter) {
    syscall(SYS_futex, &counter, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

private:
  std::atomic<int> count_{0};
};

#else

class Sleepers {
public:
  void sleep(std::atomic<uint32_t> &counter, uint32_t seen) {
    count_.fetch_add(1, std::memory_order_seq_cst);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return counter.load(std::memory_order_seq_cst) != seen; });
    }
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  bool are_there() const { return count_.load(std::memory_order_seq_cst) > 0; }
  void wake(std::atomic<uint32_t> &) {
    {
      std::lock_guard lock(mutex_);
    } // a sleeper has either seen the change or is waiting
    changed_.notify_all();
  }

private:
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

#endif

} // namespace orchard
