// Where a launch on an NVIDIA GPU contains the values of `constant` references that the host bound as bytes. A kernel
// reads them from the parameters of its launch, which needs no copy and takes less time than a load from memory. If one
// of the references is bound to a buffer, another build of the kernel runs, in which all arguments are addresses.
// The host (gpu/launch.cpp) uses this file too.
#ifndef MRT_GPU_CONTAINED_H
#define MRT_GPU_CONTAINED_H

#include "../../kernel_abi.h"

namespace mrt {

constexpr mrt_u32 contained_alignment = 32; // of constant arguments; buffers have the same alignment
constexpr mrt_u32 most_contained = 2048;    // bytes; the parameters of a launch are at most 4096
constexpr mrt_u32 not_contained = ~mrt_u32(0);

// Places values one after the other.
struct ContainedBytes {
  mrt_u32 count = 0;

  // Returns the place of a value, or `not_contained` if it doesn't fit.
  constexpr mrt_u32 place(mrt_u32 size) {
    const mrt_u32 start = (count + contained_alignment - 1) / contained_alignment * contained_alignment;
    if (size == 0 || start + size > most_contained) return not_contained;
    count = start + size;
    return start;
  }
};

} // namespace mrt

#endif
