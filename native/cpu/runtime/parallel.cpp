#include "../parallel.h"

#include "../pause.h"
#include "processor.h"
#include "sanitizer.h"
#include "sleeper.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace orchard {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;
// Operations come in quick succession: a helper that spins this long gets the next one without having to be woken. In a
// training step most operations follow within a millisecond.
constexpr auto spinning_time = milliseconds(1);
// Used if other processes compete for the processors: spinning would use up the thread's time slice.
constexpr auto crowded_spinning_time = microseconds(20);
constexpr auto crowded_time = milliseconds(300);
constexpr auto largest_lost_time = microseconds(500);
// A helper that loses its processor is a sign that other threads compete for it. A few helpers also lose their
// processors to threads that soon end, such as those of JavaScript's compiler. So the machine counts as crowded only if
// a quarter of the helpers lose their processors within this time.
constexpr auto sign_time = milliseconds(20);
// Waking takes tens of microseconds on an idle processor, but Linux may wake the thread on its caller's processor.
constexpr auto longest_waking_time = milliseconds(2);
constexpr int polls_between_clocks = 64;

std::atomic<int> others_computing{0};
// The time until which the machine counts as crowded, in clock ticks.
std::atomic<int64_t> crowded_until{0};
// The number of started helpers, and the number of signs since `signs_since` (in clock ticks).
std::atomic<int> started_helpers{0}, signs{0};
std::atomic<int64_t> signs_since{0};

int64_t ticks(Clock::time_point time) { return time.time_since_epoch().count(); }
Clock::time_point time_of(int64_t ticks) { return Clock::time_point(Clock::duration(ticks)); }
bool is_crowded(Clock::time_point now) { return ticks(now) < crowded_until.load(std::memory_order_relaxed); }

// Takes note of a sign that other threads compete for the processors.
void note_sign(Clock::time_point now) {
  if (now - time_of(signs_since.load(std::memory_order_relaxed)) > sign_time) {
    signs_since.store(ticks(now), std::memory_order_relaxed);
    signs.store(0, std::memory_order_relaxed);
  }
  const int seen = signs.fetch_add(1, std::memory_order_relaxed) + 1;
  if (seen > started_helpers.load(std::memory_order_relaxed) / 4)
    crowded_until.store(ticks(now + crowded_time), std::memory_order_relaxed);
}

// Detects whether the calling thread lost its processor to other threads while it had work.
class LostTime {
public:
  // Starts the measurement again; to be called after the thread slept voluntarily.
  void start_anew() {
    wall_ = Clock::now();
    processor_ = processor_time();
  }

  // Checks the time since the last call of `check` or `start_anew`.
  void check() {
    auto wall = wall_, processor = processor_;
    start_anew();
    auto passed = wall_ - wall;
    auto lost = passed - (processor_ - processor);
    if (lost > largest_lost_time && lost > passed / 8) note_sign(wall_);
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

// Polls until `done` returns true, the spinning time is over, or the machine is crowded. Returns whether `done` was
// true. After a short wait, calls `looks` to check whether the machine is crowded.
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
    if (now - last > largest_lost_time) note_sign(now); // another thread ran on this processor between two polls
    last = now;
    if (now - start < crowded_spinning_time) continue;
    if (!has_looked) looks();
    has_looked = true;
    if (now - start >= spinning_time || is_crowded(now)) break;
  }
  return done();
}

// One call of parallel_for.
struct Work {
  int64_t count, grain, blocks;
  ParallelBody body;
  void *context;

  void run(int64_t block) const {
    body(context, block * grain, std::min(count, (block + 1) * grain));
    if (blocks > 1) let_others_work();
  }
};

thread_local bool is_inside_work = false;

// Data written at different times is on separate cache lines, to avoid false sharing; processors prefetch lines in
// pairs.
constexpr size_t line_bytes = 128;

// Waking a thread takes a system call of several microseconds. So the caller wakes at most this many helpers, and each
// of them wakes at most as many again. A short call ends before many helpers are woken.
constexpr int most_woken = 4;

struct Place;
// The helpers that one thread wakes; null for those that were not started.
using Wakes = std::array<std::atomic<Place *>, most_woken>;

// The state of one helper, which only this helper and the caller use while it is awake, so that its cache line is not
// shared with other helpers.
struct alignas(line_bytes) Place {
  std::atomic<uint64_t> begun{0};    // number of the last work whose block for this helper was claimed
  std::atomic<uint64_t> finished{0}; // number of the last work whose block this helper has finished

  // Claims the helper's block of work number `work` for the calling thread; returns false if it was already claimed.
  // Work ends only after all its blocks were claimed, and its numbers increase, so a late thread finds `begun` at this
  // number or above.
  bool begin(uint64_t work) {
    uint64_t last = begun.load(std::memory_order_relaxed);
    return last < work && begun.compare_exchange_strong(last, work, std::memory_order_acq_rel);
  }

  // The fields below are used only around sleep.
  alignas(line_bytes) Sleeper sleeper;
  std::atomic<int64_t> woken_at{0}; // when the helper was last woken, in ticks
  std::atomic<int> woken_by{-1};    // the processor of the thread that woke it
  Wakes wakes{};
};

// A call is published in one cache line, which waiting helpers read. The first blocks are assigned to the caller and
// the helpers, one each; the others are claimed by tickets from a shared counter. So if there are no more blocks than
// threads, each helper touches two cache lines, and no two helpers contend for one.
//
// The caller also runs the blocks of helpers that have not started: it never waits for a helper that is late, and there
// is no lock. A thread that has claimed a block, or drawn a positive ticket, may use the work, which stays valid until
// that block is done. No other thread touches it.
class ThreadPool {
public:
  // Returns false if another thread is using the helpers.
  bool run(const Work &work, int helpers) {
    if (!owner_.try_lock()) return false;
    std::lock_guard owner(owner_, std::adopt_lock);
    helpers = start_helpers(helpers);
    publish(work, helpers);
    wake(wakes_, 0, helpers, number_);
    work_.run(0);
    for (int helper = 0; helper < helpers; helper++)
      if (places_[helper].begin(number_)) {
        work_.run(1 + helper);
        places_[helper].finished.store(number_, std::memory_order_relaxed);
      }
    finish(helpers, run_tickets());
    return true;
  }

private:
  // The number of a task and of its helpers, packed into one word so that they are read together.
  static constexpr int helper_bits = 12;
  static constexpr int most_helpers = (1 << helper_bits) - 1;
  static uint64_t number_of(uint64_t call) { return call >> helper_bits; }
  static int helpers_of(uint64_t call) { return static_cast<int>(call & most_helpers); }

  // Starts helpers until there are `wanted`; returns how many there are.
  int start_helpers(int wanted) {
    wanted = std::min(wanted, most_helpers);
    while (helpers_ < wanted && make_place() && start_helper(helpers_)) {
      Wakes &waker = helpers_ < most_woken ? wakes_ : places_[helpers_ / most_woken - 1].wakes;
      waker[helpers_ % most_woken].store(&places_[helpers_], std::memory_order_release);
      started_helpers.store(++helpers_, std::memory_order_relaxed);
    }
    return std::min(wanted, helpers_);
  }

  bool make_place() {
    if (helpers_ < static_cast<int>(places_.size())) return true;
    try {
      places_.emplace_back();
    } catch (const std::bad_alloc &) {
      return false;
    }
    return true;
  }

  void publish(const Work &work, int helpers) {
    number_++;
    const int64_t drawn = work.blocks - 1 - helpers;
    work_ = work;
    if (drawn > 0) {
      done_.store(0, std::memory_order_relaxed);
      tickets_.store(drawn, std::memory_order_release);
    }
    call_.store(number_ << helper_bits | static_cast<uint64_t>(helpers), std::memory_order_release);
    calls_.fetch_add(1, std::memory_order_seq_cst);
  }

  // Wakes sleeping helpers that take part in a call and still have something to do. `wakes` are the helpers from number
  // `first` on. If the work is already over, it may wake helpers for nothing.
  void wake(Wakes &wakes, int first, int helpers, uint64_t work) {
    if (first >= helpers || sleepers_.load(std::memory_order_seq_cst) == 0) return;
    const int count = std::min(most_woken, helpers - first);
    for (int at = 0; at < count; at++) {
      Place *place = wakes[at].load(std::memory_order_acquire);
      if (!place || !place->sleeper.is_asleep()) continue;
      const bool is_claimed = place->begun.load(std::memory_order_relaxed) >= work;
      if (is_claimed && tickets_.load(std::memory_order_relaxed) <= 0) continue;
      place->woken_at.store(ticks(Clock::now()), std::memory_order_relaxed);
      place->woken_by.store(current_processor(), std::memory_order_relaxed);
      place->sleeper.wake();
    }
  }

  // Claims and runs unclaimed blocks in order until none is left; returns how many it ran.
  int64_t run_tickets() {
    int64_t ran = 0;
    while (tickets_.load(std::memory_order_relaxed) > 0) {
      const int64_t ticket = tickets_.fetch_sub(1, std::memory_order_acq_rel);
      if (ticket <= 0) break;
      work_.run(work_.blocks - ticket);
      ran++;
    }
    return ran;
  }

  // Waits until the helpers have finished the blocks that they claimed.
  void finish(int helpers, int64_t ran) {
    const int64_t drawn = std::max<int64_t>(work_.blocks - 1 - helpers, 0);
    if (drawn > 0) done_.fetch_add(ran, std::memory_order_acq_rel);
    int next = 0;
    auto is_done = [&] {
      while (next < helpers && places_[next].finished.load(std::memory_order_seq_cst) == number_) next++;
      return next == helpers && (drawn == 0 || done_.load(std::memory_order_seq_cst) == drawn);
    };
    if (spin_until(is_done, [] {})) return;
    std::unique_lock lock(mutex_);
    is_waiting_.store(true, std::memory_order_seq_cst);
    finished_.wait(lock, is_done);
    is_waiting_.store(false, std::memory_order_relaxed);
  }

  // A helper's last access to a work: afterwards, the caller may have returned.
  void wake_caller() {
    if (!is_waiting_.load(std::memory_order_seq_cst)) return;
    {
      std::lock_guard lock(mutex_);
    } // the caller either has not checked yet, and will see the change, or is waiting
    finished_.notify_one();
  }

  struct Helper {
    ThreadPool *pool;
    Place *place;
    int number;
  };

  // The thread is detached and has signals blocked, so that the program's threads handle them. Returns false if the
  // system can't start it.
  bool start_helper(int number) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    auto entry = [](void *given) -> void * {
      const std::unique_ptr<Helper> helper(static_cast<Helper *>(given));
      helper->pool->help(*helper->place, helper->number);
      return nullptr;
    };
    auto helper = std::unique_ptr<Helper>(new (std::nothrow) Helper{this, &places_[number], number});
    bool started = helper && pthread_create(&thread, nullptr, entry, helper.get()) == 0;
    if (started) pthread_detach(thread), helper.release();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }

  void help(Place &place, int number) {
    is_inside_work = true;
    LostTime lost_time;
    lost_time.start_anew();
    for (uint32_t seen = 0;;) {
      auto is_called = [&] { return calls_.load(std::memory_order_seq_cst) != seen; };
      if (!spin_until(is_called, [&] { lost_time.check(); })) sleep(place, seen, lost_time);
      seen = calls_.load(std::memory_order_acquire);
      const uint64_t call = call_.load(std::memory_order_acquire);
      if (number >= helpers_of(call)) continue;
      wake(place.wakes, most_woken * (number + 1), helpers_of(call), number_of(call));
      join(place, number, number_of(call));
    }
  }

  // Runs the helper's block, then unclaimed ones. Reports completion last.
  void join(Place &place, int number, uint64_t work) {
    const bool has_block = place.begin(work);
    if (has_block) work_.run(1 + number);
    const int64_t ran = run_tickets();
    if (ran > 0) done_.fetch_add(ran, std::memory_order_seq_cst);
    if (has_block) place.finished.store(work, std::memory_order_seq_cst);
    if (has_block || ran > 0) wake_caller();
  }

  void sleep(Place &place, uint32_t seen, LostTime &lost_time) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    place.sleeper.announce();
    const bool is_called = calls_.load(std::memory_order_seq_cst) != seen; // maybe before the announcement
    if (is_called) place.sleeper.cancel();
    else place.sleeper.sleep();
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    lost_time.start_anew();
    if (is_called) return;
    const auto now = Clock::now();
    if (now - time_of(place.woken_at.load(std::memory_order_relaxed)) > longest_waking_time) note_sign(now);
    // Linux may wake a thread on its waker's processor, and move it away only milliseconds later.
    const int waker = place.woken_by.load(std::memory_order_relaxed);
    if (current_processor() == waker) leave_processor(waker);
  }

  std::mutex owner_;    // held during the work in progress
  uint64_t number_ = 0; // of the last work
  int helpers_ = 0;
  std::deque<Place> places_;
  // Fields that helpers read when work is published, in one cache line.
  alignas(line_bytes) std::atomic<uint32_t> calls_{0};
  std::atomic<uint64_t> call_{0}; // the last work's number and its helpers
  Work work_{};
  // Fields that change rarely.
  alignas(line_bytes) std::atomic<bool> is_waiting_{false}; // whether the caller waits for `finished_`
  std::atomic<int> sleepers_{0};                            // the number of helpers that sleep or are about to
  Wakes wakes_{};                                           // the helpers that the caller wakes
  alignas(line_bytes) std::atomic<int64_t> tickets_{0};     // number of unclaimed blocks
  alignas(line_bytes) std::atomic<int64_t> done_{0};        // how many of those are finished
  std::mutex mutex_;
  std::condition_variable finished_;
};

// Never destroyed: helpers may still run when destructors run at exit.
std::atomic<ThreadPool *> &pool() {
  static std::atomic<ThreadPool *> instance{[] {
    // A forked child has no helpers, so it starts new ones.
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
int threads_at_hand() { return is_inside_work ? 1 : thread_count(); }
void set_thread_count(int count) { threads().store(count, std::memory_order_relaxed); }

void run_parallel(int64_t count, int64_t grain, ParallelBody body, void *context) noexcept {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t blocks = (count - 1) / grain + 1;
  int helpers = static_cast<int>(std::min<int64_t>(thread_count(), blocks)) - 1;
  const Work work{count, grain, blocks, body, context};
  bool nested = is_inside_work;
  is_inside_work = true;
  if (nested || helpers == 0 || !pool().load()->run(work, helpers))
    for (int64_t block = 0; block < blocks; block++) work.run(block);
  is_inside_work = nested;
}

} // namespace orchard
