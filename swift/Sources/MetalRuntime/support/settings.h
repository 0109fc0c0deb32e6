// The settings as used by the runtime: cheap to read, from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace mrt {

enum class Setting {
  check,
  count,
  workers,
  seed,
  denormals,
  contract,
  fast,
  poison,
  max_threads,
  timeout_ms,
  compile_timeout_ms,
  spin_limit,
  strict,
  cache,
  cache_limit,
  clang,
  headers,
  max_findings,
  abort_on_misuse,
  memory_limit,
  execute,
  whole,
  after_fault,
  gpu_clang,
  gpu_compile,
  gpu_graphs,
  cuda,
  device
};

// The index of each value of a choice.
enum Denormals : int64_t { denormals_keep = 0, denormals_flush = 1 };
enum Poison : int64_t { poison_auto = 0, poison_never = 1, poison_always = 2 };
enum Fast : int64_t { fast_auto = 0, fast_never = 1, fast_always = 2 };

// Returns the value of a flag or a number, or the index of a choice. An atomic load, suitable for hot paths.
int64_t setting_number(Setting setting);
inline bool setting_flag(Setting setting) { return setting_number(setting) != 0; }

// Returns whether new memory has the poison pattern but is read as zeros; see include/metal_runtime.h.
inline bool poison_reads_as_zero() {
  return setting_number(Setting::poison) == poison_auto && setting_flag(Setting::check);
}
inline bool poisons_device_memory() {
  return setting_number(Setting::poison) == poison_always || poison_reads_as_zero();
}
inline bool poisons_threadgroup_memory() { return setting_number(Setting::poison) != poison_never; }

// Returns the value of a path.
std::string setting_text(Setting setting);

// Returns a malloc'ed copy, for strings that the C interface returns.
char *copy_string(const std::string &text);

} // namespace mrt
