// Runs a dispatch from request to result.
#include "check/checker.h"
#include "execute/dispatch_checks.h"
#include "execute/dispatch_counts.h"
#include "execute/faults.h"
#include "execute/launch.h"
#include "support/memory.h"
#include "execute/report.h"
#include "support/settings.h"
#include "execute/workers.h"

#include <cstdlib>
#include <memory>

namespace mrt {

std::string dispatch_problem(const mrt_dispatch &request, const mrt_function_info &info) {
  auto [width, height, depth] = request.threads_per_threadgroup;
  constexpr uint64_t most = 1024;
  if (width == 0 || height == 0 || depth == 0) return "a threadgroup needs at least one thread in each dimension";
  uint64_t limit = info.max_total_threads ? info.max_total_threads : most;
  if (width > limit || height > limit || depth > limit || width * height * depth > limit)
    return "a threadgroup of " + std::to_string(width) + " x " + std::to_string(height) + " x " +
           std::to_string(depth) + " threads is over this kernel's limit of " + std::to_string(limit);
  if (request.grid.width > UINT32_MAX || request.grid.height > UINT32_MAX || request.grid.depth > UINT32_MAX)
    return "a grid has at most 4294967295 threads in each dimension";
  return {};
}

namespace {

// Checked and counted dispatches run one at a time, since the checker has only one set of shadow memory.
std::mutex &checked_mutex() {
  static std::mutex &instance = *new std::mutex;
  return instance;
}

void bind_resources(Launch &launch, const mrt_dispatch &request) {
  for (int index = 0; index < MRT_MAX_BUFFERS; index++) launch.addresses[index] = request.buffers[index].address;
  const mrt_function_info &info = *mrt_function_info_get(request.function);
  for (const mrt_argument *argument = info.arguments; argument != info.arguments + info.argument_count; argument++) {
    if (argument->kind != MRT_ARGUMENT_BUFFER || argument->is_active) continue;
    if (!launch.addresses[argument->index]) launch.addresses[argument->index] = absent_argument();
  }
  launch.buffers = launch.addresses.data();
  launch.textures = request.textures;
  launch.samplers = request.samplers;
}

void describe_grid(Launch &launch, const mrt_dispatch &request) {
  const uint64_t grid[3] = {request.grid.width, request.grid.height, request.grid.depth};
  const uint64_t group[3] = {request.threads_per_threadgroup.width, request.threads_per_threadgroup.height,
                             request.threads_per_threadgroup.depth};
  uint64_t groups = 1;
  for (int axis = 0; axis < 3; axis++) {
    launch.threads_per_grid[axis] = mrt_u32(grid[axis]);
    launch.dispatch_threads_per_threadgroup[axis] = mrt_u32(group[axis]);
    launch.threadgroups_per_grid[axis] = mrt_u32((grid[axis] + group[axis] - 1) / group[axis]);
    groups *= launch.threadgroups_per_grid[axis];
  }
  launch.group_order = Order(groups, launch.seed);
}

void run(Launch &launch) {
  if (!launch.checked) return run_on_workers(launch, size_t(setting_number(Setting::workers)));
  std::lock_guard lock(checked_mutex());
  checker::begin_dispatch({launch.request, &launch, launch.code->module, launch.code->entry, launch.addresses.data(),
                           launch.counted ? &launch.counters : nullptr, launch.detect, launch.timeout_ms});
  run_on_workers(launch, 1);
  checker::end_dispatch(launch.result == MRT_RESULT_OK);
}

mrt_result dispatch(const mrt_dispatch &request, mrt_counters *counters, std::string &message) {
  Launch launch;
  launch.request = &request;
  launch.detect = setting_flag(Setting::check);
  const bool record = setting_flag(Setting::count);
  launch.checked = launch.detect || request.count || record;
  launch.counted = counters || record;
  launch.seed = uint64_t(setting_number(Setting::seed));
  launch.spin_limit = uint64_t(setting_number(Setting::spin_limit));
  launch.timeout_ms = uint64_t(setting_number(Setting::timeout_ms));
  message = dispatch_problem(request, *mrt_function_info_get(request.function));
  if (!message.empty()) return MRT_RESULT_INVALID;
  launch.code = kernel_code(request.function, current_build(request.function, launch.checked), message);
  if (!launch.code) return MRT_RESULT_INVALID;
  bind_resources(launch, request);
  launch.constants = launch.code->constants;
  describe_grid(launch, request);
  if (launch.group_order.count == 0 || !setting_flag(Setting::execute)) return MRT_RESULT_OK;

  install_fault_handlers();
  run(launch);
  if (launch.timed_out && launch.result == MRT_RESULT_OK)
    launch.fail(MRT_RESULT_TIMEOUT, add_report({"timeout", launch.kernel()}, "the dispatch ran longer than " +
                                                                                 std::to_string(launch.timeout_ms) +
                                                                                 " ms (setting 'timeout_ms')"));
  if (counters) *counters = launch.counters;
  if (record && launch.result == MRT_RESULT_OK)
    record_counters(request.label, mrt_function_info_get(request.function)->name, launch.counters);
  message = launch.message;
  return launch.result;
}

} // namespace
} // namespace mrt

// Defined here for its lock: a running kernel may still write the bytes that are to become zero.
void mrt_memory_settle(void *pointer, size_t length) {
  if (!mrt::poison_reads_as_zero()) return;
  std::lock_guard lock(mrt::checked_mutex());
  mrt::checker::memory_settled(pointer, length);
}

void mrt_string_free(char *string) { free(string); }

uint64_t mrt_epoch_next(void) {
  static std::atomic<uint64_t> epoch{0};
  return ++epoch;
}

mrt_result mrt_dispatch_run(const mrt_dispatch *dispatch, mrt_counters *counters, char **message) {
  std::string text;
  mrt_result result = mrt::dispatch(*dispatch, counters, text);
  if (message) *message = text.empty() ? nullptr : mrt::copy_string(text);
  return result;
}
