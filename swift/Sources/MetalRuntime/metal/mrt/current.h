// The running thread, the runtime's table, and the rendezvous: the base of all other headers for operations that
// involve several threads.
//
// These are `static`, not `inline`: each kernel library is one translation unit and needs a separate copy, since two
// libraries in one process must not share them. The scheduler updates the thread-local pointer at each switch of
// fibers.
#ifndef MRT_CURRENT_H
#define MRT_CURRENT_H

#include "types.h"

// MRT_CALL: a function that calls the runtime. MRT_COOPERATIVE: a function in which threads meet; the compiler must not
// make its execution depend on more conditions than the source does.
#define MRT_COOPERATIVE MRT_CALL __attribute__((convergent))

#ifdef MRT_STRICT // types only: no call has a body or reports a location

#define MRT_CALL
#define MRT_SITE_ONLY
#define MRT_SITE
#define MRT_BODY(...) ;

#elif defined(MRT_GPU)

#include "gpu/current.h"

#else

#include "../kernel_abi.h"

#define MRT_LOOP(pragma)
#define MRT_CALL MRT_FUNC
#define MRT_SITE_ONLY [[maybe_unused]] mrt::Site site = mrt::Site::here()
#define MRT_SITE , MRT_SITE_ONLY
#define MRT_BODY(...) {__VA_ARGS__}

// The library's internal accesses (operands of a collective operation on the lane's stack) do not count as the user's
// memory traffic.
#ifdef MRT_CHECKED
#define MRT_UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define MRT_UNINSTRUMENTED
#endif
#define MRT_MEETING MRT_UNINSTRUMENTED __attribute__((convergent, noinline))

namespace mrt {

static thread_local MrtThread *current_thread;
#ifdef MRT_CHECKED
// Accesses by initializers of a library while it is loaded, before it is bound, do not count as traffic.
MRT_UNINSTRUMENTED static void ignore_access(const void *, mrt_u64, mrt_u32, const void *) {}
MRT_UNINSTRUMENTED static void ignore_copy(const void *, const void *, mrt_u64, const void *) {}
MRT_UNINSTRUMENTED static void ignore_misaligned(const void *, mrt_u32, const char *, const void *) {}
MRT_UNINSTRUMENTED static void ignore_subscript(mrt_u64, const char *, const void *) {}
MRT_UNINSTRUMENTED static mrt_u32 in_thread(const volatile void *) { return MRT_IN_THREAD; }
static constexpr MrtRuntime not_bound = {MRT_ABI_VERSION,   nullptr,          nullptr, nullptr,       nullptr,
                                         nullptr,           nullptr,          nullptr, ignore_access, ignore_copy,
                                         ignore_misaligned, ignore_subscript, nullptr, nullptr,       in_thread};
static const MrtRuntime *runtime = &not_bound;
#else
static const MrtRuntime *runtime;
#endif

// For MrtModule::current and MrtModule::bind.
[[maybe_unused]] MRT_UNINSTRUMENTED static MrtThread **current() { return &current_thread; }
[[maybe_unused]] MRT_UNINSTRUMENTED static void bind(const MrtRuntime *table) { runtime = table; }

// Returns whether the object of a method is in the address space `space`, for methods that differ only in it
// (rewrite/objects.cpp).
[[maybe_unused]] MRT_UNINSTRUMENTED static bool lies_in(const volatile void *object, MrtSpace space) {
  return runtime && runtime->space_of(object) == mrt_u32(space);
}

// Counts an iteration of a loop that only reads memory (rewrite/waits.cpp).
[[maybe_unused]] MRT_UNINSTRUMENTED static void wait_turn(mrt_u64 turns, int line,
                                                          const char *file = __builtin_FILE()) {
  runtime->wait_turn(turns, file, mrt_u32(line));
}

[[maybe_unused]] MRT_UNINSTRUMENTED static mrt_u32 lane_index() { return current_thread->thread_index_in_simdgroup; }
[[maybe_unused]] MRT_UNINSTRUMENTED static mrt_u32 simdgroup_index() {
  return current_thread->simdgroup_index_in_threadgroup;
}
[[maybe_unused]] MRT_UNINSTRUMENTED static mrt_u32 simdgroup_count() {
  return current_thread->group->simdgroups_per_threadgroup;
}

// The place where the user's code calls a function of the library. As a default argument it captures the caller's line,
// like std::source_location::current(), so that a finding gives the line in the .metal file.
struct Site {
  const char *file;
  int line, column;
  static constexpr Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE(),
                             int column = __builtin_COLUMN()) {
    return {file, line, column};
  }
};

// Describes a rendezvous: which lanes meet, the name of the operation, and the place of the call.
struct Meeting {
  MrtCollectiveKind kind;
  const char *operation;
  Site site;
};

MRT_MEETING static void meet(Meeting meeting, MrtResolve resolve, void *input, void *output, mrt_u32 flags) {
  MrtCollective collective = {};
  collective.kind = meeting.kind;
  collective.flags = flags;
  collective.resolve = resolve;
  collective.input = input;
  collective.output = output;
  collective.operation = meeting.operation;
  collective.file = meeting.site.file;
  collective.line = mrt_u32(meeting.site.line);
  collective.column = mrt_u32(meeting.site.column);
  runtime->collective(&collective);
}

MRT_MEETING static void wait_at_barrier(mrt_u32 flags, Site site) {
  runtime->threadgroup_barrier(flags, site.file, mrt_u32(site.line));
}

// A rendezvous in which each lane passes an Operand and receives a Result, both on the lane's stack. `resolve` computes
// the results of all lanes.
template <typename Result, MrtResolve resolve, typename Operand>
MRT_MEETING Result exchange(Operand operand, Meeting meeting) {
  Result result;
  meet(meeting, resolve, &operand, &result, 0);
  return result;
}

} // namespace mrt

#endif
#endif
