// A running dispatch, shared by the workers that run its threadgroups.
#pragma once

#include "include/metal_runtime.h"
#include "compile/library.h"
#include "metal/kernel_abi.h"
#include "execute/order.h"

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace mrt {

using Triple = std::array<mrt_u32, 3>;

struct Launch : MrtLaunch {
  const mrt_dispatch *request = nullptr;
  const KernelCode *code = nullptr;
  std::array<void *, MRT_MAX_BUFFERS> addresses{}; // MrtLaunch::buffers

  bool checked = false; // uses the instrumented build, to detect errors or to count
  bool detect = false;  // the checker is on
  bool counted = false; // someone asks for the counters
  uint64_t seed = 0;
  uint64_t spin_limit = 0;
  uint64_t timeout_ms = 0;
  // The address range of the kernel's code, set once the dispatch has timed out.
  const void *image_begin = nullptr, *image_end = nullptr;

  Order group_order;
  std::atomic<uint64_t> next_group{0};

  // Set once the dispatch has failed or run too long: workers stop as soon as possible.
  std::atomic<bool> stopped{false};
  std::atomic<bool> timed_out{false};
  std::mutex mutex; // guards the following fields
  mrt_result result = MRT_RESULT_OK;
  std::string message;
  mrt_counters counters = {};

  const char *kernel() const { return code->entry->name; }

  // Records the first failure, which is the dispatch's result, and stops the other threads.
  void fail(mrt_result why, std::string sentence) {
    std::lock_guard lock(mutex);
    if (result != MRT_RESULT_OK) return;
    result = why;
    message = std::move(sentence);
    stopped.store(true, std::memory_order_relaxed);
  }
};

} // namespace mrt
