// Findings of the executor, with fields filled in for the thread that they are about.
#pragma once

#include "include/metal_runtime.h"
#include "metal/kernel_abi.h"

#include <string>

namespace mrt {

struct Report {
  const char *kind;
  const char *kernel;
  const char *file = nullptr;
  mrt_u32 line = 0;
  const MrtThread *thread = nullptr;
  const MrtThread *other = nullptr;
  mrt_u32 other_line = 0;
};

// Returns text such as "thread (3, 0, 0) of threadgroup (1, 0, 0)".
std::string describe_thread(const MrtThread &thread);
// Returns text such as "softmax.metal:12".
std::string describe_line(const char *file, mrt_u32 line);

// Adds "kernel 'name': sentence" to the findings, and returns it.
std::string add_report(const Report &report, const std::string &sentence);

} // namespace mrt
