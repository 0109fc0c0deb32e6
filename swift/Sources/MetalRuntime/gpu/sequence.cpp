#include "gpu/sequence.h"

#include <cstring>

namespace mrt {

PlacedParameters::PlacedParameters(const GpuSequence &sequence, const GpuLaunch &launch, cuda::Address bytes) {
  memcpy(parameters_, sequence.parameters.data() + launch.parameters, launch.parameter_bytes);
  for (uint64_t left = launch.staged; left; left &= left - 1) {
    uint8_t *argument = parameters_ + sizeof(GpuLaunchHead) + size_t(__builtin_ctzll(left)) * sizeof(cuda::Address);
    cuda::Address address;
    memcpy(&address, argument, sizeof address);
    address += bytes;
    memcpy(argument, &address, sizeof address);
  }
}

} // namespace mrt
