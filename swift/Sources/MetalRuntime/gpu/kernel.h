// A kernel that is loaded on a GPU.
#pragma once

#include "compile/library.h"
#include "gpu/driver.h"

#include <atomic>

namespace mrt {

// A build of a kernel; each is compiled and loaded when it is first needed.
struct GpuBuild {
  cuda::Function function = nullptr;
  int static_bytes = 0;                           // of threadgroup memory
  int most_threads = 0;                           // of a threadgroup, which the registers of a core limit
  mutable std::atomic<unsigned> allowed_bytes{0}; // of threadgroup arguments, if they need a permission
};

struct GpuKernel {
  const MrtEntry *entry = nullptr;
  // For each parameter: where a launch contains its value (metal/mrt/gpu/contained.h), if it can.
  std::vector<mrt_u32> places;
  mrt_u32 contained_bytes = 0;
  // Indexed by whether launches contain these values, and whether threadgroups of any size fit.
  GpuBuild builds[2][2];
};

// Both return null and the reason if the function can't be compiled or loaded. The kernel is valid while the function
// exists.
GpuKernel *gpu_kernel(Gpu &gpu, const mrt_function *function, std::string &problem);
// Loads a build that runs threadgroups of so many threads on a GPU, whose context is current. Large threadgroups may
// need a build whose threads use fewer registers.
const GpuBuild *gpu_build(Gpu &gpu, const mrt_function *function, GpuKernel &kernel, bool contains_bytes, int threads,
                          std::string &problem);

} // namespace mrt
