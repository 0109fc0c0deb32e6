// A kernel that is loaded on a GPU.
#pragma once

#include "compile/library.h"
#include "gpu/driver.h"

#include <atomic>

namespace mrt {

struct GpuKernel {
  cuda::Function function = nullptr;
  const MrtEntry *entry = nullptr;
  int static_bytes = 0;                           // of threadgroup memory
  mutable std::atomic<unsigned> allowed_bytes{0}; // of threadgroup arguments, if they need a permission
};

// Compiles and loads the function for a GPU, whose context is current; null and the reason if that fails. Valid while
// the function exists.
const GpuKernel *gpu_kernel(Gpu &gpu, const mrt_function *function, std::string &problem);

} // namespace mrt
