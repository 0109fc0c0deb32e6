// Launches that are issued together.
#pragma once

#include "gpu/cuda.h"

#include <cstdint>
#include <vector>

namespace mrt {

// A kernel launch, as cuLaunchKernel receives it.
struct GpuLaunch {
  cuda::Function function;
  const char *name; // of the kernel, valid until the launch is issued
  unsigned groups[3], threads[3], threadgroup_bytes;
  // The arguments that are bytes of the host (setBytes), one bit each. Their values are offsets into the bytes of the
  // sequence, so that equal sequences have equal parameters.
  uint64_t staged;
  size_t parameters, parameter_bytes; // in the sequence's parameters
};

// The head of metal/mrt/gpu/entry.h's GpuLaunch; the arguments follow.
struct GpuLaunchHead {
  uint32_t threads_per_grid[3], threads_per_threadgroup[3], first_group[3], reserved;
};
static_assert(sizeof(GpuLaunchHead) == 40, "pointers follow without padding");

struct GpuSequence {
  std::vector<GpuLaunch> launches;
  std::vector<uint8_t> parameters;

  void clear() { launches.clear(), parameters.clear(); }
};

// The parameters of a launch whose staged bytes begin at an address of the GPU.
class PlacedParameters {
public:
  PlacedParameters(const GpuSequence &sequence, const GpuLaunch &launch, cuda::Address bytes);
  void **list() { return list_; }

private:
  static constexpr size_t most_arguments = 64; // the bits of GpuLaunch::staged
  alignas(8) uint8_t parameters_[sizeof(GpuLaunchHead) + most_arguments * sizeof(cuda::Address)];
  void *list_[1] = {parameters_};
};

} // namespace mrt
