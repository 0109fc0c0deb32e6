// Memory of GPUs. Shared storage is managed memory, which has one address on the processor and on the GPU and moves to
// the one that uses it; private storage is device memory; the program's memory is registered with the driver.
#pragma once

#include "gpu/driver.h"

namespace mrt {

// Returns whether kernels can use the address: it is in memory of a GPU, not in the software device's.
bool is_gpu_address(const void *address);

} // namespace mrt
