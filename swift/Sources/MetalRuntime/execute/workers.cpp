#include "check/checker.h"
#include "execute/dispatch_counts.h"
#include "execute/workers.h"

#include "execute/faults.h"
#include "execute/scheduler.h"
#include "support/settings.h"
#include "execute/watchdog.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mrt {
namespace {

using Clock = std::chrono::steady_clock;
// Helpers are called if the first threadgroup has taken at least this long: waking one takes a few microseconds.
constexpr auto worth_helping = std::chrono::microseconds(20);

// The state that a thread needs to run threadgroups, borrowed for the duration of a launch.
struct Equipment {
  GroupRunner runner;
  std::unique_ptr<char[]> signal_stack{new char[signal_stack_bytes]};
};

class EquipmentPool {
public:
  std::unique_ptr<Equipment> take() {
    std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Equipment>();
    auto equipment = std::move(idle_.back()); // its caches are the warmest, as it was used last
    idle_.pop_back();
    return equipment;
  }
  void give_back(std::unique_ptr<Equipment> equipment) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(equipment));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Equipment>> idle_;
};

EquipmentPool &equipment_pool() {
  static EquipmentPool &instance = *new EquipmentPool;
  return instance;
}

// Flushes float32 subnormals, in operands and results, if the setting says so. Half subnormals are kept: they are
// normal numbers in float32 arithmetic, and conversions do not flush.
class DenormalScope {
public:
#if defined(__x86_64__)
  explicit DenormalScope(bool flush) : old_(_mm_getcsr()) { _mm_setcsr(flush ? 0x1f80 | 0x8040 : 0x1f80); }
  ~DenormalScope() { _mm_setcsr(old_); }

private:
  unsigned old_;
#elif defined(__aarch64__)
  explicit DenormalScope(bool flush) {
    asm volatile("mrs %0, fpcr" : "=r"(old_));
    asm volatile("msr fpcr, %0" : : "r"(flush ? uint64_t(1) << 24 : uint64_t(0)));
  }
  ~DenormalScope() { asm volatile("msr fpcr, %0" : : "r"(old_)); }

private:
  uint64_t old_;
#endif
};

// Runs threadgroups of the launch until none is left. `after_first` is called after the first one.
template <typename AfterFirst> void run_groups(Launch &launch, AfterFirst after_first) {
  auto equipment = equipment_pool().take();
  GroupRunner &runner = equipment->runner;
  {
    SignalScope signals(equipment->signal_stack.get());
    DenormalScope denormals(setting_number(Setting::denormals) == denormals_flush);
    WatchedThread watched(launch);
    if (!runner.begin(launch)) {
      launch.fail(MRT_RESULT_OUT_OF_MEMORY, "no memory for the variables of a threadgroup");
    } else {
      bool first = true;
      while (!launch.stopped.load(std::memory_order_relaxed)) {
        uint64_t index = launch.next_group.fetch_add(1, std::memory_order_relaxed);
        if (index >= launch.group_order.count || !runner.run(launch.group_order[index])) break;
        if (first) after_first();
        first = false;
      }
      if (launch.checked) checker::end_of_groups();
      runner.end();
    }
  }
  std::unique_lock lock(launch.mutex);
  add_counters(launch.counters, runner.counters());
  lock.unlock();
  equipment_pool().give_back(std::move(equipment));
}

// A pool of helpers, which wait for launches.
class HelperPool {
public:
  // Requests `count` helpers for the launch, until `withdraw`.
  void call(Launch &launch, size_t count) {
    std::lock_guard lock(mutex_);
    for (; started_ < count; started_++) start_background_thread([this] { help(); });
    calls_.push_back({&launch, count, 0});
    if (count > 1) called_.notify_all();
    else called_.notify_one();
  }

  // After this call no helper joins the launch, and all that had joined have left it.
  void withdraw(Launch &launch) {
    std::unique_lock lock(mutex_);
    auto mine = [&] {
      return std::find_if(calls_.begin(), calls_.end(), [&](Call &call) { return call.launch == &launch; });
    };
    mine()->requested = 0;
    left_.wait(lock, [&] { return mine()->inside == 0; });
    calls_.erase(mine());
  }

private:
  struct Call {
    Launch *launch;
    size_t requested, inside;
  };

  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto call = std::find_if(calls_.begin(), calls_.end(), [](Call &call) { return call.requested > 0; });
      if (call == calls_.end()) {
        called_.wait(lock);
        continue;
      }
      Launch *launch = call->launch;
      call->requested--;
      call->inside++;
      lock.unlock();
      run_groups(*launch, [] {});
      lock.lock();
      call = std::find_if(calls_.begin(), calls_.end(), [&](Call &call) { return call.launch == launch; });
      if (--call->inside == 0) left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable called_, left_;
  std::vector<Call> calls_;
  size_t started_ = 0;
};

HelperPool &helper_pool() {
  static HelperPool &instance = *new HelperPool;
  return instance;
}

} // namespace

void run_on_workers(Launch &launch, size_t workers) {
  Watch watch(launch);
  size_t helpers = size_t(std::min<uint64_t>(workers, launch.group_order.count)) - 1;
  bool called = false;
  auto start = Clock::now();
  run_groups(launch, [&] {
    if (helpers == 0 || Clock::now() - start < worth_helping) return;
    helper_pool().call(launch, helpers);
    called = true;
  });
  if (called) helper_pool().withdraw(launch);
}

} // namespace mrt
