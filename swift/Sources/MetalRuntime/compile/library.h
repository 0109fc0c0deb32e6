// The interface of the runtime's compiler half for the half that runs kernels.
#pragma once

#include "include/metal_runtime.h"
#include "metal/kernel_abi.h"

#include <string>
#include <vector>

namespace mrt {

// The builds of one library; each is compiled when it is first needed. The checked build is also the counting one.
struct Build {
  bool checked = false;  // instrumented: MrtRuntime::access is called for every access
  bool fast = false;     // fast formulas
  bool contract = false; // fused multiply-add
};

// A function in one build, with all that a dispatch needs. Valid as long as the function.
struct KernelCode {
  const MrtModule *module = nullptr; // loaded and bound to kernel_runtime()
  const MrtEntry *entry = nullptr;
  const void *const *constants = nullptr; // for MrtLaunch::constants
  // The positions in module->variables of this kernel's variables: MrtGroup::threadgroup_variables needs addresses only
  // at these. An array of module->variable_count is large enough.
  std::vector<mrt_u32> variables;
};

// Returns the build that the settings and the library's math mode select. A kernel reads function constants into
// thread-local memory when it starts, so an operating-system thread must end a threadgroup of one function before it
// starts one of another.
Build current_build(const mrt_function *function, bool checked);

// Compiles and loads the function if needed; returns null with the reason if that fails. Any thread may call it.
const KernelCode *kernel_code(const mrt_function *function, Build build, std::string &problem);

// The executor defines this: the table that every module is bound to.
const MrtRuntime *kernel_runtime();

} // namespace mrt
