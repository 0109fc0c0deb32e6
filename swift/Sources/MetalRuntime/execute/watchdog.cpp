#include "execute/watchdog.h"

#include "execute/faults.h"
#include "support/settings.h"

#include <algorithm>
#include <condition_variable>
#include <link.h>
#include <vector>

namespace mrt {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t longest_timeout_ms = uint64_t(365) * 24 * 3600 * 1000; // so that the clock does not overflow
constexpr auto interrupt_interval = std::chrono::milliseconds(2);

struct Watched {
  Launch *launch;
  Clock::time_point deadline;
  std::vector<Interruptible> threads;
};

// Finds the address range of the loaded file that contains the kernel.
void find_image(Launch &launch) {
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *context) {
        Launch &launch = *static_cast<Launch *>(context);
        uintptr_t code = uintptr_t(launch.code->entry->run);
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto &part = info->dlpi_phdr[i];
          uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type != PT_LOAD || code < begin || code - begin >= part.p_memsz) continue;
          launch.image_begin = reinterpret_cast<const void *>(begin);
          launch.image_end = reinterpret_cast<const void *>(begin + part.p_memsz);
          return 1;
        }
        return 0;
      },
      &launch);
}

class Watchdog {
public:
  Watchdog() {
    start_background_thread([this] { watch(); });
  }

  void add(Launch &launch) {
    std::lock_guard lock(mutex_);
    auto deadline = Clock::now() + std::chrono::milliseconds(std::min(launch.timeout_ms, longest_timeout_ms));
    watched_.push_back({&launch, deadline, {}});
    if (deadline < wake_) changed_.notify_one(); // otherwise the thread wakes up early enough
  }

  void remove(Launch &launch) {
    std::lock_guard lock(mutex_);
    watched_.erase(find(launch));
  }

  void enter(Launch &launch) {
    std::lock_guard lock(mutex_);
    find(launch)->threads.push_back(interruptible_thread());
  }

  void leave(Launch &launch) {
    std::lock_guard lock(mutex_);
    auto &threads = find(launch)->threads;
    threads.erase(
        std::find_if(threads.begin(), threads.end(), [](auto &each) { return each.thread == pthread_self(); }));
  }

  std::string running() {
    std::lock_guard lock(mutex_);
    std::string names;
    for (const Watched &entry : watched_)
      names += (names.empty() ? "'" : ", '") + std::string(entry.launch->kernel()) + "'";
    return names;
  }

private:
  std::vector<Watched>::iterator find(Launch &launch) {
    return std::find_if(watched_.begin(), watched_.end(), [&](auto &entry) { return entry.launch == &launch; });
  }

  void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_ = never;
      auto now = Clock::now();
      for (Watched &entry : watched_) {
        if (entry.deadline > now) {
          wake_ = std::min(wake_, entry.deadline);
          continue;
        }
        stop(entry);
        wake_ = std::min(wake_, now + interrupt_interval);
      }
      if (wake_ == never) changed_.wait(lock);
      else changed_.wait_until(lock, wake_);
    }
  }

  void stop(Watched &entry) {
    Launch &launch = *entry.launch;
    if (!launch.timed_out) {
      find_image(launch);
      launch.timed_out = true;
      launch.stopped = true;
    }
    // A thread that is inside the runtime ignores the interrupt: it checks at its next wait, or is interrupted again.
    for (const Interruptible &thread : entry.threads) interrupt_kernel(thread);
  }

  static constexpr auto never = Clock::time_point::max();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Watched> watched_;
  Clock::time_point wake_ = never;
};

Watchdog &watchdog() {
  static Watchdog &instance = *new Watchdog;
  return instance;
}

} // namespace

Watch::Watch(Launch &launch) : launch_(launch) { watchdog().add(launch_); }
Watch::~Watch() { watchdog().remove(launch_); }
WatchedThread::WatchedThread(Launch &launch) : launch_(launch) { watchdog().enter(launch_); }
WatchedThread::~WatchedThread() { watchdog().leave(launch_); }

} // namespace mrt

char *mrt_running_kernels(void) { return mrt::copy_string(mrt::watchdog().running()); }
