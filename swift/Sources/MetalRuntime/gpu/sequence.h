// Launches that are issued together.
#pragma once

#include "gpu/cuda.h"
#include "metal/mrt/gpu/contained.h"

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

// The head of metal/mrt/gpu/entry.h's GpuLaunch; the arguments and the contained values follow.
struct GpuLaunchHead {
  uint32_t threads_per_grid[3], threads_per_threadgroup[3], first_group[3], reserved;
};
static_assert(sizeof(GpuLaunchHead) == 40, "pointers follow without padding");

constexpr uint32_t most_parameters = 64; // 31 buffers, 31 threadgroup arguments, and built-in values

// Where the values that a launch contains begin in its parameters.
constexpr size_t contained_offset(size_t arguments) {
  const size_t end = sizeof(GpuLaunchHead) + arguments * sizeof(cuda::Address);
  return (end + contained_alignment - 1) / contained_alignment * contained_alignment;
}

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
  alignas(contained_alignment) uint8_t parameters_[contained_offset(most_parameters) + most_contained];
  void *list_[1] = {parameters_};
};

} // namespace mrt
