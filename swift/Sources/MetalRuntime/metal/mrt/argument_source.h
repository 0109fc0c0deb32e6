// The parameters of a kernel, as the rewriter describes them.
#ifndef MRT_ARGUMENT_SOURCE_H
#define MRT_ARGUMENT_SOURCE_H

#include "current.h"

namespace mrt {

// The source of the value of a kernel's parameter.
enum class ArgumentSource : mrt_u32 {
  buffer,
  threadgroup,
  thread_position_in_grid,
  thread_position_in_threadgroup,
  thread_index_in_threadgroup,
  threadgroup_position_in_grid,
  threads_per_grid,
  threads_per_threadgroup,
  threadgroups_per_grid,
  dispatch_threads_per_threadgroup,
  thread_index_in_simdgroup,
  simdgroup_index_in_threadgroup,
  simdgroups_per_threadgroup,
  dispatch_simdgroups_per_threadgroup,
  threads_per_simdgroup,
  thread_execution_width,
  thread_index_in_quadgroup,
  quadgroup_index_in_threadgroup,
  quadgroups_per_threadgroup,
  dispatch_quadgroups_per_threadgroup,
  grid_origin,
  grid_size,
  texture,
  sampler
};

struct ParameterSpec {
  const char *name, *type_name;
  ArgumentSource source;
  mrt_u32 space;
  bool coherent;
  int gate;
  bool (*gate_value)(const MrtLaunch *launch);
};

} // namespace mrt

#endif
