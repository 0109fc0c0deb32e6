// NVIDIA's driver: its functions, the GPUs, and the state of each GPU. Nothing is loaded before the first call.
#pragma once

#include "gpu/cuda.h"
#include "include/metal_runtime.h"

#include <atomic>
#include <string>
#include <vector>

namespace mrt {

struct Gpu {
  uint32_t index = 0;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  std::string name;
  size_t memory = 0;
  int major = 0, minor = 0;
  bool integrated = false; // shares the processor's memory
  // Set by an error after which the driver refuses all further work of this process.
  std::atomic<bool> lost{false};
  // New private memory is cleared on a separate stream. `clears` counts these clears; other streams wait for the event
  // after the last one (gpu_memory.cpp).
  std::atomic<uint64_t> clears{0};
  cuda::Event cleared = nullptr;
};

struct Driver {
  cuda::Functions call = {};
  std::vector<Gpu *> gpus; // usable ones
  std::string problem;     // why there is none
};

// Loads the driver once. `problem` is set if no GPU is usable.
const Driver &driver();
// Returns the GPU and makes its context the calling thread's; null and the reason if that fails.
Gpu *enter_gpu(uint32_t index, std::string &problem);
// Describes an error as "operation: … (CUDA_ERROR_…)", and marks the GPU as lost if the error ends its context.
std::string gpu_error(Gpu &gpu, const std::string &operation, cuda::Result result);
mrt_result gpu_result(cuda::Result result);

} // namespace mrt
