// The thread that runs, and the runtime's table: what every other header of the cooperative part stands on.
//
// `static` and not `inline`: each kernel library is one translation unit with its own copy, and two libraries in one process
// must never share these. The scheduler writes the thread-local pointer at each switch of fibers.
#ifndef MRT_CURRENT_H
#define MRT_CURRENT_H

#ifndef MRT_STRICT

#include "../kernel_abi.h"

// The library's own bookkeeping (operands of a collective on the lane's stack) is not the user's memory traffic.
#ifdef MRT_CHECKED
#define MRT_UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define MRT_UNINSTRUMENTED
#endif

namespace mrt {

static thread_local MrtThread *current_thread;
static const MrtRuntime *runtime;

// For MrtModule::current and MrtModule::bind.
MRT_UNINSTRUMENTED [[maybe_unused]] static MrtThread **current() { return &current_thread; }
MRT_UNINSTRUMENTED [[maybe_unused]] static void bind(const MrtRuntime *table) { runtime = table; }

// Where the user's code calls a function of the library. As a default argument it takes the caller's line, as
// std::source_location::current() does, so that a finding names the line in the .metal file.
struct Site {
  const char *file;
  int line;
  static constexpr Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// A rendezvous without operands. Not inlined, so that the checked build does not count the library's own stack as memory traffic.
MRT_UNINSTRUMENTED __attribute__((convergent, noinline)) static void meet(MrtCollectiveKind kind, mrt_u32 flags, const char *operation, Site site) {
  MrtCollective collective = {};
  collective.kind = kind;
  collective.flags = flags;
  collective.operation = operation;
  collective.file = site.file;
  collective.line = mrt_u32(site.line);
  runtime->collective(&collective);
}

// A rendezvous in which each lane gives a T and gets a Result; `resolve` computes all lanes' results. The lane's operand and
// result lie on its own stack; `uniform` is the parameter on which all lanes must agree.
template <typename Result, MrtResolve resolve, typename T>
MRT_UNINSTRUMENTED __attribute__((convergent, noinline)) Result exchange(T value, MrtCollectiveKind kind, const char *operation, Site site) {
  Result result;
  MrtCollective collective = {};
  collective.kind = kind;
  collective.resolve = resolve;
  collective.input = &value;
  collective.output = &result;
  collective.operation = operation;
  collective.file = site.file;
  collective.line = mrt_u32(site.line);
  runtime->collective(&collective);
  return result;
}

template <typename Result, MrtResolve resolve, typename T, typename Uniform>
MRT_UNINSTRUMENTED __attribute__((convergent, noinline)) Result exchange(T value, Uniform uniform, MrtCollectiveKind kind, const char *operation, Site site) {
  Result result;
  MrtCollective collective = {};
  collective.kind = kind;
  collective.resolve = resolve;
  collective.input = &value;
  collective.output = &result;
  collective.uniform = &uniform;
  collective.uniform_size = sizeof(uniform);
  collective.operation = operation;
  collective.file = site.file;
  collective.line = mrt_u32(site.line);
  runtime->collective(&collective);
  return result;
}

} // namespace mrt

#define MRT_SITE_ONLY mrt::Site site = mrt::Site::here()
#define MRT_SITE , MRT_SITE_ONLY

#else // the strict pass checks types only: no call has a place to report

#define MRT_UNINSTRUMENTED
#define MRT_SITE_ONLY
#define MRT_SITE

#endif

// A function in which threads meet: the compiler may not make its execution depend on more conditions than the source does.
#define MRT_COOPERATIVE __attribute__((convergent, always_inline)) inline

#endif
