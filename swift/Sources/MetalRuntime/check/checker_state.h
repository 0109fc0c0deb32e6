// The checker's state and the code that uses it: checker.cpp (events of the executor), checker_access.cpp (shadow state
// of each access), checker_findings.cpp (findings about conflicts).
#pragma once

#include "check/access_counters.h"
#include "check/checker.h"
#include "check/messages.h"
#include "check/objects.h"
#include "check/shadow.h"
#include "check/trials.h"
#include "check/views.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mrt::checker {

// One tracked range of memory: the arena of device memory, the threadgroup's memory, or a wrapped buffer.
struct Tracked {
  Space space = Space::device;
  ShadowRange shadow;
  LineCounter lines; // for device memory
  Traffic traffic;
  // Order's thresholds, copied for the fast path. If this dispatch has no fences, the moments in [settled, settled +
  // settled_span) are those of its earlier threadgroups: a reader among them conflicts with every later writer, so no
  // other reader needs to be recorded.
  Moment fence = 0, settled = 0, settled_span = 0;
  Moment past = 0; // earlier moments cannot conflict any more
};

// One access.
struct Step {
  uintptr_t address;
  uint64_t size;
  bool read, write;
  Site site;
  Moment now;

  Action action() const {
    if (is_atomic(now)) return write ? Action::atomic_write : Action::atomic_read;
    return read && write ? Action::read_write : write ? Action::write : Action::read;
  }
};

// A write that conflicts with an earlier one, kept until the value that it stores can be read.
struct PendingValue {
  uintptr_t address;
  size_t size;
  uint64_t before;
  Finding *finding;
};

struct Extent {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address - begin < end - begin; }
};

// Hidden, so that calls within the dylib are direct.
class __attribute__((visibility("hidden"))) Checker {
public:
  static Checker &get() { return instance_ ? *instance_ : create(); }
  // During a checked dispatch.
  static Checker &existing() { return *instance_; }

  void begin_dispatch(const Dispatch &dispatch);
  void hand_over();
  void end_of_groups();
  void end_dispatch(bool completed);
  void begin_group(const MrtGroup *group, const Region *regions, size_t count);
  // Called after the order has changed.
  void copy_fences();

  // `frame` is the frame address of the entry function; the thread's stack is above it. Returns the memory that was
  // accessed, or null if it is not tracked.
  Tracked *access(const Step &step, uintptr_t frame);
  bool is_recorded(uintptr_t address, uint64_t size, bool write, Moment now) const;
  void copy(uintptr_t destination, uintptr_t source, uint64_t size, Site site, Moment now, uintptr_t frame);
  void misaligned(uintptr_t address, mrt_u32 alignment, const char *type, Site site, Moment now);
  void subscript(mrt_u64 index, const char *type, Site site, Moment now);
  void absent_argument(Site site, Moment now);
  void layout_dependence(const char *file, mrt_u32 line, Moment now);
  void tensor_problem(mrt_u32 problem, long one, long other, const char *file, mrt_u32 line, Moment now);
  uintptr_t original(uintptr_t address) { return views_.original(address); }
  void texture_bounds(const MrtTexture &texture, const mrt_u32 *position, Action action, Site site, Moment now);

  // Shadow state of device memory. Any thread may access the initialization state of an allocation that no other thread
  // uses.
  ShadowRange &arena();
  void clear_unwritten(ShadowRange &shadow, uintptr_t address, size_t length);
  void forget(uintptr_t address, size_t length); // may be called by any thread

  Order order;
  Report report;
  Trials trials;

private:
  Checker();
  static Checker &create();
  static Checker *instance_;

  // ---- checker_access.cpp
  Tracked *find(const Step &step, uintptr_t frame);
  void access_array(const Step &step);
  bool is_constant(uintptr_t address) const;
  void count(Tracked &memory, const Step &step);
  bool is_private(uintptr_t address, uintptr_t frame) const;
  Tracked *access_view(View &view, const Step &step, uintptr_t frame);
  bool settled_read(const Tracked &memory, const Cell &cell, Moment now) const;
  bool is_known(const Tracked &memory, const Cell &cell, bool write, Moment now) const;
  bool is_first(const Tracked &memory, Cell &cell, const Step &step);
  bool record_first(Tracked &memory, const Step &step);
  Tracked *update(Tracked &memory, const Step &step);
  Tracked *access_elsewhere(const Step &step, uintptr_t frame);
  void slow(Tracked &memory, const Step &step);
  void touch_cells(Tracked &memory, const Step &step);
  void read_cell(Tracked &memory, Cell &cell, const Step &step, uintptr_t address);
  void write_cell(Tracked &memory, Cell &cell, const Step &step, uintptr_t address);
  Gap gap(const Tracked &memory, Moment then, Moment now, uintptr_t address) const;
  Gap conflict(const Tracked &memory, Moment then, Moment now, uintptr_t address) const;

  // ---- checker_findings.cpp
  bool in_bounds(const Tracked &memory, const Step &step);
  void out_of_bounds(const Step &step, Space space);
  void check_initialized(Tracked &memory, const Step &step);
  void report_uninitialized(Tracked &memory, const Step &step);
  void report_unwritten(const MrtArray &array, const Step &step);
  bool has_nan_result();
  void find_host_writes(Tracked &memory, const Step &step);
  void check_alias(const View &view, const Step &step, uintptr_t frame);
  void race(Tracked &memory, const Step &step, uintptr_t address, Moment other, Site other_site, bool other_writes,
            Gap gap);
  bool is_settled() const { return pending_.empty() && views_.is_settled(); }
  // Called after each change of these.
  void refresh() { is_quick_ = dispatch_.detect && !dispatch_.counters && is_settled(); }
  void resolve_values();
  Finding &found(const char *kind, const void *identity, Site site, Moment now, Location other = {});
  Location location(Site site, Moment moment) const;

  Dispatch dispatch_ = {};
  Tracked arena_, threadgroup_;
  std::vector<std::unique_ptr<Tracked>> wrapped_; // the buffers of this dispatch that wrap the program's memory
  // the buffers of this dispatch that are bound only to `constant` parameters
  std::vector<Extent> constants_;
  PagePool pool_;
  Objects objects_;
  Views views_;
  // The kernel's code and constants, its thread-local variables, and the runtime's tables.
  Extent image_, locals_, runtime_;
  std::vector<PendingValue> pending_;
  bool is_quick_ = false; // an access that changes no cell needs no other work
  std::once_flag arena_once_;
  std::mutex freed_lock_;
  // Allocations freed since the last checked or counted dispatch, by first byte. Addresses are reused, so the number of
  // entries is limited by the addresses in use even without such a dispatch.
  std::unordered_map<uintptr_t, size_t> freed_;
};

inline Checker &the_checker() { return Checker::get(); }

// The address where the kernel's module stores its current thread. Null except on the operating-system thread that runs
// a checked dispatch.
extern __thread MrtThread **running __attribute__((tls_model("initial-exec")));

// Returns null outside kernels: the checker ignores code of a library that only describes its functions.
inline const MrtThread *running_thread() { return running ? *running : nullptr; }

} // namespace mrt::checker
