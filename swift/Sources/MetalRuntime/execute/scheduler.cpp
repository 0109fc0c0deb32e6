#include "execute/scheduler.h"

#include "check/checker.h"
#include "execute/faults.h"
#include "execute/report.h"

#include <algorithm>
#include <cstring>

namespace mrt {

__thread MrtThread *current_thread = nullptr;
__thread GroupRunner *current_runner = nullptr;

// A suspended thread's registers, and the frames of the runtime and of the operation at which it waits.
static constexpr size_t prefetched_lines = 5;

GroupRunner::GroupRunner() : fibers_(fiber_main) {}

bool GroupRunner::begin(Launch &launch) {
  if (!memory_.lay_out(launch)) return false;
  launch_ = &launch;
  runtime_current_ = &current_thread;
  module_current_ = launch.code->module->current();
  moment_ = launch.checked ? &checker::running_moment : nullptr;
  moments_ = launch.checked ? checker::moments() : nullptr;
  counters_ = {};
  group_.launch = &launch;
  group_.threadgroup_arguments = memory_.arguments();
  group_.threadgroup_variables = memory_.variables();
  const mrt_u32 *full = launch.dispatch_threads_per_threadgroup;
  group_.dispatch_simdgroups_per_threadgroup = (full[0] * full[1] * full[2] + MRT_SIMD_WIDTH - 1) / MRT_SIMD_WIDTH;
  current_runner = this;
  return true;
}

void GroupRunner::end() {
  current_runner = nullptr;
  *module_current_ = nullptr;
  if (moment_) *moment_ = 0;
  launch_ = nullptr;
}

// ---------------------------------------------------------------- one threadgroup

bool GroupRunner::run(uint64_t group_index) {
  place_group(group_index);
  memory_.poison();
  if (launch_->checked) checker::begin_group(&group_, memory_.regions().data(), memory_.regions().size());
  fault_ = {};
  abandoned_ = false;
  Fiber *fiber = fibers_.take();
  if (!fiber) {
    launch_->fail(MRT_RESULT_OUT_OF_MEMORY, "no memory for the stack of a thread");
    return false;
  }
  fiber->argument = next_thread();
  in_kernel_ = 1;
  mrt_stack_switch(&main_stack_, fiber->pointer);
  in_kernel_ = 0;
  if (abandoned_) {
    report_fault(*this, fault_);
    fibers_.abandon_all();
    for (Thread &thread : threads_) thread.fiber = nullptr;
  } else {
    counters_.threads += uint64_t(shape_[0]) * shape_[1] * shape_[2];
    counters_.threadgroups++;
    if (launch_->checked) checker::end_group(&group_);
  }
  running_ = nullptr;
  *runtime_current_ = nullptr;
  if (moment_) *moment_ = 0;
  return !abandoned_;
}

void GroupRunner::place_group(uint64_t group_index) {
  uint64_t remainder = group_index;
  Triple size;
  for (int axis = 0; axis < 3; axis++) {
    mrt_u32 position = mrt_u32(remainder % launch_->threadgroups_per_grid[axis]);
    remainder /= launch_->threadgroups_per_grid[axis];
    mrt_u32 full = launch_->dispatch_threads_per_threadgroup[axis];
    group_.threadgroup_position_in_grid[axis] = position;
    group_origin_[axis] = position * full;
    size[axis] = std::min(full, launch_->threads_per_grid[axis] - group_origin_[axis]);
  }
  if (size != shape_) shape_group(size);
  for (SimdGroup &simdgroup : simdgroups_) simdgroup.runnable = simdgroup.lanes;
  for (SimdGroup &simdgroup : simdgroups_) simdgroup.at_collective = simdgroup.at_barrier = 0;
  phase_seed_ = derive_seed(launch_->seed, group_index);
  weak_exchanges_ = 0;
  begin_phase();
}

// Sets the fields that depend only on the threadgroup's size.
void GroupRunner::shape_group(const Triple &size) {
  shape_ = size;
  mrt_u32 count = size[0] * size[1] * size[2];
  std::copy(size.begin(), size.end(), group_.threads_per_threadgroup);
  group_.simdgroups_per_threadgroup = (count + MRT_SIMD_WIDTH - 1) / MRT_SIMD_WIDTH;
  threads_.resize(count);
  for (mrt_u32 index = 0; index < count; index++) {
    Thread &thread = threads_[index];
    thread.group = &group_;
    thread.thread_position_in_threadgroup[0] = index % size[0];
    thread.thread_position_in_threadgroup[1] = index / size[0] % size[1];
    thread.thread_position_in_threadgroup[2] = index / size[0] / size[1];
    thread.thread_index_in_threadgroup = index;
    thread.thread_index_in_simdgroup = index % MRT_SIMD_WIDTH;
    thread.simdgroup_index_in_threadgroup = index / MRT_SIMD_WIDTH;
    thread.fiber = nullptr;
  }
  simdgroups_.assign(group_.simdgroups_per_threadgroup, {});
  for (SimdGroup &simdgroup : simdgroups_) {
    simdgroup.index = mrt_u32(&simdgroup - simdgroups_.data());
    mrt_u32 lanes = std::min<mrt_u32>(MRT_SIMD_WIDTH, count - simdgroup.index * MRT_SIMD_WIDTH);
    simdgroup.lanes = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
}

// Begins a phase, which lasts until the next barrier, with new orders.
void GroupRunner::begin_phase() {
  first_waiting_ = diverged_ = nullptr;
  simdgroup_order_ = Order(simdgroups_.size(), derive_seed(phase_seed_, simdgroups_.size()));
  for (SimdGroup &simdgroup : simdgroups_) {
    simdgroup.order = LaneOrder(derive_seed(phase_seed_, simdgroup.index));
    simdgroup.cursor = 0;
  }
  phase_seed_ = derive_seed(phase_seed_, MRT_SIMD_WIDTH + 1);
  simdgroup_position_ = 0;
  simdgroup_ = &simdgroups_[simdgroup_order_[0]];
}

// ---------------------------------------------------------------- choosing the next thread

void GroupRunner::fiber_main(Fiber *fiber) { current_runner->run_threads(fiber); }

void GroupRunner::run_threads(Fiber *fiber) {
  for (;;) {
    Thread *thread = static_cast<Thread *>(fiber->argument);
    for (int axis = 0; axis < 3; axis++)
      thread->thread_position_in_grid[axis] = group_origin_[axis] + thread->thread_position_in_threadgroup[axis];
    thread->spin_address = nullptr;
    thread->arrays = nullptr;
    enter(thread, fiber);
    launch_->code->entry->run(thread);
    thread->fiber = nullptr;
    Thread *next = next_thread();
    if (next && !next->fiber) {
      fiber->argument = next;
      continue;
    }
    fibers_.give_back(fiber);
    mrt_stack_switch(&fiber->pointer, next ? next->resume : main_stack_);
  }
}

void GroupRunner::enter(Thread *thread, Fiber *fiber) {
  fiber_ = fiber;
  running_ = thread;
  *runtime_current_ = thread;
  *module_current_ = thread;
  if (moment_) *moment_ = moments_[thread->thread_index_in_threadgroup];
}

// Returns the next thread that can run; null if all have ended.
Thread *GroupRunner::next_thread() {
  for (;;) {
    SimdGroup &simdgroup = *simdgroup_;
    while (simdgroup.runnable) {
      mrt_u32 lane = simdgroup.order[simdgroup.cursor++], bit = 1u << lane;
      if (!(simdgroup.runnable & bit)) continue;
      simdgroup.runnable &= ~bit;
      return &thread_at(simdgroup, lane);
    }
    if (simdgroup.at_collective) carry_out_collective(simdgroup);
    else if (++simdgroup_position_ < simdgroups_.size())
      simdgroup_ = &simdgroups_[simdgroup_order_[simdgroup_position_]];
    else if (first_waiting_) open_barrier();
    else return nullptr;
  }
}

// Brings the start of the stack of the lane that follows the next one into the cache: meanwhile the next one runs.
inline void GroupRunner::prefetch_next(const SimdGroup &simdgroup) {
  const mrt_u32 lane = simdgroup.order[simdgroup.cursor];
  if (!(simdgroup.runnable >> lane & 1)) return;
  const char *stack = static_cast<const char *>(thread_at(simdgroup, lane).resume);
  for (size_t line = 0; line < prefetched_lines; line++) __builtin_prefetch(stack + line * 64, 1);
}

void GroupRunner::block(Thread *self) {
  Fiber *own = fiber_;
  self->fiber = own;
  Thread *next = next_thread(); // not null, since this thread has not ended
  if (next != self) {
    if (!next->fiber) start_on_fiber(next);
    prefetch_next(*simdgroup_);
    mrt_stack_switch(&self->resume, next->resume);
  }
  enter(self, own);
}

void GroupRunner::start_on_fiber(Thread *thread) {
  Fiber *fiber = fibers_.take();
  if (!fiber) fail(MRT_RESULT_OUT_OF_MEMORY, "no memory for the stack of a thread");
  fiber->argument = thread;
  thread->resume = fiber->pointer;
}

// ---------------------------------------------------------------- barriers

void GroupRunner::wait_at_barrier(mrt_u32 flags, const char *file, mrt_u32 line) {
  Thread *self = running_;
  self->barrier_file = file;
  self->barrier_line = line;
  self->barrier_flags = flags;
  simdgroup_->at_barrier |= 1u << self->thread_index_in_simdgroup;
  if (!first_waiting_) first_waiting_ = self;
  bool same = first_waiting_->barrier_line == line &&
              (first_waiting_->barrier_file == file || strcmp(first_waiting_->barrier_file, file) == 0);
  if (!same) diverged_ = self;
  block(self);
}

// Called when every thread that has not ended is waiting at a barrier. Ended threads do not count, as on Apple silicon
// (MSL 4).
void GroupRunner::open_barrier() {
  stop_if_asked();
  if (diverged_) {
    // Undefined on a GPU. Under the checker all threads continue, each from its barrier, so that the code after it is
    // checked too.
    if (launch_->detect) report_divergence();
    else fail(MRT_RESULT_INVALID, report_divergence());
  }
  counters_.barriers++;
  if (launch_->checked)
    checker::threadgroup_barrier(&group_, first_waiting_->barrier_flags, first_waiting_->barrier_file,
                                 first_waiting_->barrier_line);
  for (SimdGroup &simdgroup : simdgroups_) {
    simdgroup.runnable = simdgroup.at_barrier;
    simdgroup.at_barrier = 0;
  }
  begin_phase();
}

std::string GroupRunner::report_divergence() {
  const Thread &one = *first_waiting_, &other = *diverged_;
  return add_report(
      {"barrier-divergence", launch_->kernel(), one.barrier_file, one.barrier_line, &one, &other, other.barrier_line},
      describe_thread(one) + " waits at the barrier of " + describe_line(one.barrier_file, one.barrier_line) +
          ", but " + describe_thread(other) + " at that of " + describe_line(other.barrier_file, other.barrier_line) +
          "; all threads that have not ended must reach the same barrier");
}

bool GroupRunner::fails_weakly() { return launch_->seed != 0 && mix(phase_seed_ + ++weak_exchanges_) % 4 == 0; }

// ---------------------------------------------------------------- giving up

void GroupRunner::abandon(const Fault &fault) {
  if (launch_->checked) checker::give_up_trial();
  fault_ = fault;
  abandoned_ = true;
  StackPointer forgotten;
  mrt_stack_switch(&forgotten, main_stack_);
  __builtin_unreachable();
}

void GroupRunner::fail(mrt_result result, std::string &&sentence) {
  if (launch_->checked) checker::give_up_trial();
  launch_->fail(result, std::move(sentence));
  abandon({});
}

void GroupRunner::stop_if_asked() {
  if (!launch_->stopped.load(std::memory_order_relaxed)) return;
  Fault fault;
  if (launch_->timed_out) fault.result = MRT_RESULT_TIMEOUT;
  abandon(fault);
}

} // namespace mrt
