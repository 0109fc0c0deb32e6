// The runtime's functions that kernels call.
#include "check/checker.h"
#include "execute/math_table.h"
#include "compile/library.h"
#include "execute/math_table.h"
#include "execute/report.h"
#include "execute/scheduler.h"

#include <algorithm>
#include <dlfcn.h>

namespace mrt {
namespace {

void threadgroup_barrier(mrt_u32 flags, const char *file, mrt_u32 line) {
  current_runner->wait_at_barrier(flags, file, line);
}

void collective(MrtCollective *collective) {
  current_runner->wait_at_collective(collective, __builtin_return_address(0));
}

std::string report_spin_wait(const GroupRunner &runner, const char *file, mrt_u32 line) {
  const Thread &thread = *runner.running();
  return add_report(
      {"spin-wait", runner.launch().kernel(), file, line, &thread},
      describe_thread(thread) + " waits in a loop at " + describe_line(file, line) +
          " for an atomic to change: " + std::to_string(thread.spin_count) +
          " times it saw the same value. There is no guarantee that other threads make progress meanwhile");
}

// A thread that repeatedly reads one atomic variable and always gets the same value is waiting for another thread.
void atomic(const void *address, mrt_u32 size, mrt_u32 write, mrt_u64 seen, const char *file, mrt_u32 line) {
  GroupRunner &runner = *current_runner;
  Thread &thread = *runner.running();
  runner.counters().atomics++;
  if (runner.launch().checked) checker::atomic_access(address, size, write, file, line);
  if (thread.spin_address != address || thread.spin_seen != seen) {
    thread.spin_address = address;
    thread.spin_seen = seen;
    thread.spin_count = 0;
  } else if (++thread.spin_count >= runner.launch().spin_limit) {
    runner.fail(MRT_RESULT_TIMEOUT, report_spin_wait(runner, file, line));
  }
  runner.stop_if_asked();
}

std::string report_memory_wait(const GroupRunner &runner, mrt_u64 turns, const char *file, mrt_u32 line) {
  const Thread &thread = *runner.running();
  return add_report(
      {"spin-wait", runner.launch().kernel(), file, line, &thread},
      describe_thread(thread) + " waits in a loop at " + describe_line(file, line) +
          " for memory to change: " + std::to_string(turns) +
          " turns, which only read. There is no guarantee that other threads make progress meanwhile, and "
          "the compiler may read the memory once for all turns");
}

void wait_turn(mrt_u64 turns, const char *file, mrt_u32 line) {
  GroupRunner &runner = *current_runner;
  if (turns >= runner.launch().spin_limit)
    runner.fail(MRT_RESULT_TIMEOUT, report_memory_wait(runner, turns, file, line));
  runner.stop_if_asked();
}

void fence(mrt_u32 flags, mrt_u32 order, mrt_u32 scope) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  GroupRunner &runner = *current_runner;
  if (runner.launch().checked) checker::fence(runner.running(), flags, order, scope);
}

bool fails_weakly() { return current_runner->fails_weakly(); }

void count_matrix(mrt_u32 multiply_accumulates) {
  current_runner->counters().matrix_multiply_accumulates += multiply_accumulates;
}

bool is_within(const volatile void *address, const void *start, size_t size) {
  return address >= start && address < static_cast<const char *>(start) + size;
}

// Constant buffers can be distinguished from device buffers only by the arguments; an object in a loaded file is one of
// the program's constants.
mrt_u32 space_of_memory(const Launch &launch, const volatile void *object) {
  mrt_u32 found = MRT_IN_THREAD;
  for (mrt_u32 i = 0; i < launch.code->entry->parameter_count; i++) {
    const MrtParameter &parameter = launch.code->entry->parameters[i];
    if (parameter.kind != MRT_PARAMETER_BUFFER || parameter.index >= MRT_MAX_BUFFERS) continue;
    const size_t length = launch.request->buffers[parameter.index].length;
    if (is_within(object, launch.addresses[parameter.index], length)) found = std::min(found, parameter.space);
  }
  if (found != MRT_IN_THREAD) return found;
  Dl_info file;
  return dladdr(const_cast<const void *>(object), &file) ? MRT_IN_CONSTANT : MRT_IN_DEVICE;
}

mrt_u32 space_of(const volatile void *object) {
  if (!current_runner || !current_runner->in_kernel()) return MRT_IN_THREAD;
  const Fiber &fiber = *current_runner->fiber();
  if (object >= fiber.stack && object < fiber.top) return MRT_IN_THREAD;
  for (const checker::Region &region : current_runner->threadgroup_regions())
    if (is_within(object, region.address, region.size)) return MRT_IN_THREADGROUP;
  return space_of_memory(current_runner->launch(), object);
}

constexpr MrtRuntime table = {
    MRT_ABI_VERSION,
    threadgroup_barrier,
    collective,
    atomic,
    fence,
    fails_weakly,
    count_matrix,
    checker::layout_dependence,
    checker::access,
    checker::copy,
    checker::misaligned,
    checker::subscript,
    &mrt_math_table,
    checker::texture_bounds,
    space_of,
    wait_turn,
    checker::tensor_problem,
};

} // namespace

const MrtRuntime *kernel_runtime() { return &table; }

} // namespace mrt
