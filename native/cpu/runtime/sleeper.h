// A thread that sleeps until another thread wakes it.
#pragma once

#include <atomic>
#include <cstdint>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace orchard {

// The thread announces that it will sleep, then checks for work, and either cancels or sleeps. Whoever publishes work
// does so with sequential consistency before calling `wake`: then the thread sees the work, or the caller sees the
// announcement.
class Sleeper {
public:
  void announce() { is_asleep_.store(1, std::memory_order_seq_cst); }
  void cancel() { is_asleep_.store(0, std::memory_order_relaxed); }

#if defined(__linux__)
  // Returns when the thread has been woken.
  void sleep() {
    static_assert(sizeof is_asleep_ == sizeof(uint32_t));
    while (is_asleep_.load(std::memory_order_acquire) != 0)
      syscall(SYS_futex, &is_asleep_, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
  }
  bool wake() {
    if (!claim()) return false;
    syscall(SYS_futex, &is_asleep_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }
#else
  void sleep() {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return is_asleep_.load(std::memory_order_acquire) == 0; });
  }
  // Returns whether the thread was asleep.
  bool wake() {
    if (!claim()) return false;
    {
      std::lock_guard lock(mutex_);
    } // the thread has either seen the change or is waiting
    woken_.notify_one();
    return true;
  }
#endif

  bool is_asleep() const { return is_asleep_.load(std::memory_order_seq_cst) != 0; }

private:
  bool claim() { return is_asleep() && is_asleep_.exchange(0, std::memory_order_acq_rel) != 0; }

  std::atomic<uint32_t> is_asleep_{0};
#if !defined(__linux__)
  std::mutex mutex_;
  std::condition_variable woken_;
#endif
};

} // namespace orchard
