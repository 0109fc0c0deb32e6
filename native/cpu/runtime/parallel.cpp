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
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orchard {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;
// Operations come in rows: a helper that waits this long finds the next one without being woken.
// In a training step most come within a millisecond.
constexpr auto spinning_time = milliseconds(1);
// Where other processes want the processors, a thread that spins pays for it with its share of them.
constexpr auto crowded_spinning_time = microseconds(20);
constexpr auto crowded_time = milliseconds(300);
constexpr auto largest_lost_time = microseconds(500);
// An idle processor takes up a thread within tens of microseconds, but it may be woken where its caller runs.
constexpr auto longest_waking_time = milliseconds(2);
constexpr int polls_between_clocks = 64;

std::atomic<int> others_computing{0};
// Until when the processors count as crowded, in ticks of the clock.
std::atomic<int64_t> crowded_until{0};

inline void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t ticks(Clock::time_point time) { return time.time_since_epoch().count(); }
bool is_crowded(Clock::time_point now) { return ticks(now) < crowded_until.load(std::memory_order_relaxed); }
void call_it_crowded(Clock::time_point now) {
  crowded_until.store(ticks(now + crowded_time), std::memory_order_relaxed);
}

// Whether the calling thread lost its processor to others while it had something to do.
class LostTime {
public:
  // The thread slept of its own accord: what was before does not count.
  void start_anew() {
    wall_ = Clock::now();
    processor_ = processor_time();
  }

  // Looks at the time since the last call.
  void check() {
    auto wall = wall_, processor = processor_;
    start_anew();
    auto passed = wall_ - wall;
    auto lost = passed - (processor_ - processor);
    if (lost > largest_lost_time && lost > passed / 8) call_it_crowded(wall_);
  }

private:
  static Clock::time_point processor_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(time.tv_sec) +
                                                                         std::chrono::nanoseconds(time.tv_nsec)));
  }

  Clock::time_point wall_, processor_;
};

// Polls until `done`, until the spinning time is over, or until others want the processor. Returns whether it is done.
// Once the wait is no short one any more, `looks` at whether the machine is crowded.
template <class Done, class Looks> bool spin_until(Done done, Looks looks) {
  auto start = Clock::now(), last = start;
  bool has_looked = false;
  for (;;) {
    for (int poll = 0; poll < polls_between_clocks; poll++) {
      if (done()) return true;
      pause_briefly();
    }
    if (others_computing.load(std::memory_order_relaxed) > 0) break;
    auto now = Clock::now();
    if (now - last > largest_lost_time) call_it_crowded(now); // something else ran here between two polls
    last = now;
    if (now - start < crowded_spinning_time) continue;
    if (!has_looked) looks();
    has_looked = true;
    if (now - start >= spinning_time || is_crowded(now)) break;
  }
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
      if (sleeping > 0) called_at_ = Clock::now();
    }
    if (sleeping > 0) called_.notify_all();
  }

  // No helper joins any more, and all that did have left.
  void withdraw() {
    std::unique_lock lock(mutex_);
    work_ = nullptr;
    lock.unlock();
    auto is_empty = [this] { return inside_.load(std::memory_order_acquire) == 0; };
    if (spin_until(is_empty, [] {})) return;
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
    LostTime lost_time;
    lost_time.start_anew();
    for (uint64_t seen = 0;;) {
      auto is_called = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
      bool called = spin_until(is_called, [&] { lost_time.check(); });
      std::unique_lock lock(mutex_);
      if (!called && !is_called()) {
        sleeping_++;
        called_.wait(lock, is_called);
        sleeping_--;
        lost_time.start_anew();
        if (auto now = Clock::now(); now - called_at_ > longest_waking_time) call_it_crowded(now);
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
  Clock::time_point called_at_; // when sleeping helpers were last woken
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
