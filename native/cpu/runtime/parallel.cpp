#include "../parallel.h"

#include "processor.h"
#include "sanitizer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orchard {
namespace {

using Clock = std::chrono::steady_clock;
// Operations come in rows: a helper that waits this long finds the next one without being woken.
// In a training step most come within a millisecond.
constexpr auto spinning_time = std::chrono::milliseconds(1);
constexpr int polls_between_clocks = 64;

std::atomic<int> others_computing{0};

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls until `done`, until the spinning time is over, or until others want the processor. Returns whether it is done.
template <class Done> bool spin_until(Done done) {
  auto start = Clock::now();
  do {
    for (int poll = 0; poll < polls_between_clocks; poll++) {
      if (done()) return true;
      pause_briefly();
    }
  } while (others_computing.load(std::memory_order_relaxed) == 0 && Clock::now() - start < spinning_time);
  return done();
}

// One parallel_for; it lives on the caller's stack, which leaves when no helper is inside any more.
struct Work {
  int64_t count, grain, blocks;
  ParallelBody body;
  void *context;
  int processor; // the caller's
  int wanted;    // helpers that may still join
  std::atomic<int64_t> next{0};

  void run() {
    for (int64_t block; (block = next.fetch_add(1, std::memory_order_relaxed)) < blocks;) {
      body(context, block * grain, std::min(count, (block + 1) * grain));
      if (blocks > 1) let_others_work();
    }
  }
};

thread_local bool is_inside_work = false;

class ThreadPool {
public:
  // False where another thread's work has the helpers.
  bool run(Work &work) {
    if (!owner_.try_lock()) return false;
    std::lock_guard owner(owner_, std::adopt_lock);
    publish(work);
    work.run();
    withdraw();
    return true;
  }

private:
  void publish(Work &work) {
    int sleeping;
    {
      std::lock_guard lock(mutex_);
      while (helpers_ < work.wanted && start_helper()) helpers_++;
      work_ = &work;
      epoch_.fetch_add(1, std::memory_order_release);
      sleeping = sleeping_;
    }
    if (sleeping > 0) called_.notify_all();
  }

  // No helper joins any more, and all that did have left.
  void withdraw() {
    std::unique_lock lock(mutex_);
    work_ = nullptr;
    lock.unlock();
    auto is_empty = [this] { return inside_.load(std::memory_order_acquire) == 0; };
    if (spin_until(is_empty)) return;
    lock.lock();
    left_.wait(lock, is_empty);
  }

  // Detached, without signals: those are the program's threads' to handle. False where the system refuses.
  bool start_helper() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    auto entry = [](void *pool) -> void * {
      static_cast<ThreadPool *>(pool)->help();
      return nullptr;
    };
    bool started = pthread_create(&thread, nullptr, entry, this) == 0;
    if (started) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }

  void help() {
    is_inside_work = true;
    for (uint64_t seen = 0;;) {
      auto is_called = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      bool called = spin_until(is_called);
      std::unique_lock lock(mutex_);
      if (!called) {
        sleeping_++;
        called_.wait(lock, is_called);
        sleeping_--;
      }
      seen = epoch_.load(std::memory_order_acquire);
      if (!work_ || work_->wanted == 0) continue;
      Work &work = *work_;
      work.wanted--;
      inside_.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      // Linux may wake a thread on the processor of the one that wakes it, and part them milliseconds later.
      if (current_processor() == work.processor) leave_processor(work.processor);
      work.run();
      leave();
    }
  }

  void leave() {
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    {
      std::lock_guard lock(mutex_);
    } // the caller is either not waiting yet, and will see 0, or is waiting
    left_.notify_all();
  }

  std::mutex owner_; // of the one work at a time
  std::mutex mutex_;
  std::condition_variable called_, left_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int> inside_{0};
  Work *work_ = nullptr;
  int helpers_ = 0, sleeping_ = 0;
};

// Never destroyed: helpers outlive every destructor of a process that ends.
std::atomic<ThreadPool *> &pool() {
  static std::atomic<ThreadPool *> instance{[] {
    // A forked child has none of the helpers: it starts its own.
    pthread_atfork(nullptr, nullptr, [] { pool().store(new ThreadPool); });
    return new ThreadPool;
  }()};
  return instance;
}

std::atomic<int> &threads() {
  static std::atomic<int> instance{available_processors()};
  return instance;
}

} // namespace

OthersCompute::OthersCompute() { others_computing.fetch_add(1, std::memory_order_relaxed); }
OthersCompute::~OthersCompute() { others_computing.fetch_sub(1, std::memory_order_relaxed); }

int thread_count() { return threads().load(std::memory_order_relaxed); }
void set_thread_count(int count) { threads().store(count, std::memory_order_relaxed); }

void run_parallel(int64_t count, int64_t grain, ParallelBody body, void *context) noexcept {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t blocks = (count - 1) / grain + 1;
  int helpers = static_cast<int>(std::min<int64_t>(thread_count(), blocks)) - 1;
  Work work{count, grain, blocks, body, context, current_processor(), helpers};
  bool nested = is_inside_work;
  is_inside_work = true;
  if (nested || helpers == 0 || !pool().load()->run(work)) work.run();
  is_inside_work = nested;
}

} // namespace orchard
