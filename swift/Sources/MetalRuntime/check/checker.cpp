// Handles the executor's events, and passes on each of the checker's reports.
#include "check/checker_state.h"

#include "compile/library.h"
#include "support/memory.h"

#include <algorithm>
#include <link.h>
#include <unistd.h>

namespace mrt::checker {
namespace {

// Shadow cells use at most 1 / memory_share of the machine's memory.
constexpr size_t memory_share = 8;

size_t machine_memory() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }

// Thread-local variables of a kernel (its function constants) are within this distance of its current-thread pointer.
constexpr uintptr_t locals_reach = 65536;

// Returns the address range of the loaded object that contains this address.
Extent image_around(const void *inside) {
  struct Search {
    uintptr_t inside;
    Extent found;
  } search = {uintptr_t(inside), {}};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *context) {
        Search &search = *static_cast<Search *>(context);
        Extent extent = {info->dlpi_addr, info->dlpi_addr};
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto &header = info->dlpi_phdr[i];
          if (header.p_type == PT_LOAD)
            extent.end = std::max<uintptr_t>(extent.end, extent.begin + header.p_vaddr + header.p_memsz);
        }
        if (!extent.contains(search.inside)) return 0;
        search.found = extent;
        return 1;
      },
      &search);
  return search.found;
}

void add(Traffic &sum, Tracked &memory) {
  memory.lines.take(memory.traffic);
  sum.bytes_read += memory.traffic.bytes_read;
  sum.bytes_written += memory.traffic.bytes_written;
  sum.constant_bytes_read += memory.traffic.constant_bytes_read;
  sum.lines_read += memory.traffic.lines_read;
  sum.lines_written += memory.traffic.lines_written;
  memory.traffic = {};
}

} // namespace

Checker::Checker() : pool_(machine_memory() / memory_share), runtime_(image_around(kernel_runtime())) {
  threadgroup_.space = Space::threadgroup;
}

// Never destroyed: other threads may still free memory at exit.
Checker *Checker::instance_;

Checker &Checker::create() {
  static Checker *const checker = new Checker;
  return *(instance_ = checker);
}

ShadowRange &Checker::arena() {
  std::call_once(arena_once_, [this] {
    const ArenaBounds bounds = arena_bounds();
    arena_.shadow.reserve(bounds.address, bounds.size);
    arena_.lines.reserve(bounds.address, bounds.size);
  });
  return arena_.shadow;
}

void Checker::forget(uintptr_t address, size_t length) {
  if (!length || !arena().contains(address)) return;
  arena().set_written(address, length, false);
  std::lock_guard<std::mutex> lock(freed_lock_);
  size_t &freed = freed_[address];
  freed = std::max(freed, length);
}

// ---------------------------------------------------------------- dispatches, threadgroups, barriers

void Checker::begin_dispatch(const Dispatch &dispatch) {
  dispatch_ = dispatch;
  objects_.begin_dispatch(dispatch);
  views_.begin_dispatch(dispatch, objects_);
  image_ = image_around(reinterpret_cast<const void *>(dispatch.entry->run));
  const uintptr_t local = uintptr_t(dispatch.module->current());
  locals_ = {local - locals_reach, local + locals_reach};
  arena();
  {
    std::lock_guard<std::mutex> lock(freed_lock_);
    for (const auto &[address, length] : freed_) arena_.shadow.drop_pages(pool_, address, length);
    freed_.clear();
  }
  constants_.clear();
  for (const Target &target : objects_.buffers()) {
    if (target.constant) constants_.push_back({target.begin, target.end});
    if (arena_.shadow.contains(target.begin)) continue;
    const uintptr_t base = target.begin / page_bytes * page_bytes;
    wrapped_.emplace_back(new Tracked);
    wrapped_.back()->shadow.reserve(base, target.end - base);
    wrapped_.back()->lines.reserve(base, target.end - base);
    wrapped_.back()->shadow.set_written(base, target.end - base, true); // initialized by the host
  }
  pool_.trim(order.dispatch_start());
  if (order.exhausted()) {
    pool_.drop_all();
    order.restart();
  }
  order.begin_dispatch({dispatch.entry->name, dispatch.request->epoch, image_.begin});
  report.begin_dispatch(dispatch.entry->name);
  refresh();
}

void Checker::hand_over() {
  resolve_values();
  trials.cancel();
  report.end_dispatch();
}

void Checker::end_of_groups() {
  resolve_values();
  if (trials.is_here()) trials.finish();
}

void Checker::end_dispatch(bool completed) {
  if (completed) trials.judge(dispatch_.timeout_ms, !trials.is_empty() && has_nan_result());
  hand_over();
  Traffic device, threadgroup;
  add(device, arena_);
  for (auto &memory : wrapped_) {
    add(device, *memory);
    memory->shadow.drop_pages(pool_, memory->shadow.base(), memory->shadow.size());
  }
  wrapped_.clear();
  views_.end_dispatch();
  std::swap(threadgroup, threadgroup_.traffic);
  if (!dispatch_.counters) return;
  mrt_counters &counters = *dispatch_.counters;
  counters.device_bytes_read += device.bytes_read;
  counters.device_bytes_written += device.bytes_written;
  counters.constant_bytes_read += device.constant_bytes_read;
  counters.cache_lines_read += device.lines_read;
  counters.cache_lines_written += device.lines_written;
  counters.threadgroup_bytes_read += threadgroup.bytes_read;
  counters.threadgroup_bytes_written += threadgroup.bytes_written;
}

void Checker::begin_group(const MrtGroup *group, const Region *regions, size_t count) {
  order.begin_group(group->threadgroup_position_in_grid, group->threads_per_threadgroup);
  objects_.begin_group(regions, count);
  copy_fences();
  if (!count) return;
  // With this margin, an access slightly out of bounds still counts as an access to threadgroup memory.
  const uintptr_t begin = uintptr_t(regions[0].address) / page_bytes * page_bytes - page_bytes;
  const size_t size = uintptr_t(regions[count - 1].address) + regions[count - 1].size + page_bytes - begin;
  ShadowRange &shadow = threadgroup_.shadow;
  if (shadow.base() != begin || shadow.size() < size) {
    shadow.drop_pages(pool_, shadow.base(), shadow.size());
    shadow.reserve(begin, size);
  }
  shadow.set_written(begin, size, false);
}

void Checker::copy_fences() {
  const auto copy = [this](Tracked &memory) {
    memory.fence = order.fence(Space::device);
    memory.past = order.epoch_start();
    memory.settled = order.dispatch_start();
    memory.settled_span = order.has_fences() ? 0 : order.group_start() - order.dispatch_start();
  };
  copy(arena_);
  for (auto &memory : wrapped_) copy(*memory);
  threadgroup_.fence = threadgroup_.past = order.fence(Space::threadgroup);
}

__thread MrtThread **running;
__thread mrt_u32 running_moment;

const mrt_u32 *moments() { return the_checker().order.moments(); }

void begin_dispatch(const Dispatch &dispatch) {
  the_checker().begin_dispatch(dispatch);
  running = dispatch.module->current();
}

const void *original_address(const void *address) {
  return reinterpret_cast<const void *>(the_checker().original(uintptr_t(address)));
}

void hand_over() { the_checker().hand_over(); }

void end_of_groups() { the_checker().end_of_groups(); }
bool is_trial() { return the_checker().trials.is_here(); }

void give_up_trial() {
  if (is_trial()) Trials::give_up();
}

void end_dispatch(bool completed) {
  running = nullptr;
  the_checker().end_dispatch(completed);
}

void begin_group(const MrtGroup *group, const Region *regions, size_t count) {
  the_checker().begin_group(group, regions, count);
}
void end_group(const MrtGroup *) {}

void threadgroup_barrier(const MrtGroup *, mrt_u32 flags, const char *, mrt_u32) {
  the_checker().order.threadgroup_barrier(flags);
  the_checker().copy_fences();
}

void simd_barrier(const MrtGroup *, mrt_u32 simdgroup, mrt_u32, mrt_u32 flags) {
  if (flags) the_checker().order.simdgroup_barrier(simdgroup, flags);
}

void fence(const MrtThread *thread, mrt_u32 flags, mrt_u32 order, mrt_u32 scope) {
  const bool releases = order == MRT_ORDER_RELEASE || order >= MRT_ORDER_ACQ_REL,
             acquires = order == MRT_ORDER_ACQUIRE || order >= MRT_ORDER_ACQ_REL;
  const bool over_device = scope == MRT_SCOPE_DEVICE || scope == MRT_SCOPE_SYSTEM;
  if (!(flags & MRT_MEM_DEVICE) || !over_device) return;
  the_checker().order.device_fence(thread->simdgroup_index_in_threadgroup, releases, acquires);
  the_checker().copy_fences();
  running_moment = the_checker().order.moment(thread->thread_index_in_threadgroup);
}

// ---------------------------------------------------------------- reports of kernels

namespace {

Moment now() { return the_checker().order.moment(running_thread()->thread_index_in_threadgroup); }
Site site(const void *program_counter) { return Site(uintptr_t(program_counter)); }

} // namespace

void misaligned(const void *address, mrt_u32 alignment, const char *type, const void *program_counter) {
  if (running_thread()) the_checker().misaligned(uintptr_t(address), alignment, type, site(program_counter), now());
}

void subscript(mrt_u64 index, const char *type, const void *program_counter) {
  if (running_thread()) the_checker().subscript(index, type, site(program_counter), now());
}

void layout_dependence(const char *file, mrt_u32 line) { the_checker().layout_dependence(file, line, now()); }

void tensor_problem(mrt_u32 problem, long one, long other, const char *file, mrt_u32 line) {
  the_checker().tensor_problem(problem, one, other, file, line, now());
}

// ---------------------------------------------------------------- memory

void memory_allocated(const void *address, size_t length) { the_checker().forget(uintptr_t(address), length); }
void memory_freed(const void *address, size_t length) { the_checker().forget(uintptr_t(address), length); }
void memory_fresh(const void *address, size_t length) { the_checker().forget(uintptr_t(address), length); }

void memory_written(const void *address, size_t length) {
  ShadowRange &arena = the_checker().arena();
  if (arena.contains(uintptr_t(address))) arena.set_written(uintptr_t(address), length, true);
}

void memory_copied(const void *destination, const void *source, size_t length) {
  ShadowRange &arena = the_checker().arena();
  if (!arena.contains(uintptr_t(destination))) return;
  if (arena.contains(uintptr_t(source))) arena.copy_written(uintptr_t(destination), uintptr_t(source), length);
  else arena.set_written(uintptr_t(destination), length, true);
}

} // namespace mrt::checker
