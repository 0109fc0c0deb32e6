// The interface between the compiling part of the runtime and the part that runs kernels.
#pragma once

#include "include/metal_runtime.h"
#include "metal/kernel_abi.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mrt {

// A build of a library; each is compiled when it is first needed. The checked build is also used for counting.
struct Build {
  bool checked = false;  // instrumented: MrtRuntime::access is called for every access
  bool fast = false;     // fast formulas
  bool contract = false; // fused multiply-add
};

// A function in one build, with everything that a dispatch needs. Valid while the function exists.
struct KernelCode {
  const MrtModule *module = nullptr; // loaded and bound to kernel_runtime()
  const MrtEntry *entry = nullptr;
  const void *const *constants = nullptr; // for MrtLaunch::constants
  // The positions of this kernel's variables in module->variables: MrtGroup::threadgroup_variables needs addresses only
  // there. An array of module->variable_count entries is large enough.
  std::vector<mrt_u32> variables;
};

// Returns whether the compiler has warned that a variable of the function's library is read before it is written, at
// this line or after it.
bool is_told_unset(const mrt_function *function, const char *variable, uint32_t line);

// Returns the build that the settings and the library's math mode select. When a kernel starts, it reads function
// constants into thread-local memory, so an operating-system thread must finish a threadgroup of one function before it
// starts one of another.
Build current_build(const mrt_function *function, bool checked);

// Compiles and loads the function if needed; returns null and the reason if that fails. Any thread may call it.
const KernelCode *kernel_code(const mrt_function *function, Build build, std::string &problem);

// A function as a program for NVIDIA GPUs. Valid while the function exists.
struct GpuProgram {
  std::string ptx;    // the text of its module
  std::string symbol; // the kernel's name in the module
  std::string key;    // identifies the text
};

// Returns the function's description for NVIDIA GPUs; null and the reason if it can't run there.
const MrtEntry *gpu_entry(const mrt_function *function, std::string &problem);

// Compiles the function for NVIDIA GPUs if needed; returns false and the reason if that fails. If `contains_bytes`, its
// launches contain the values of `constant` references (metal/mrt/gpu/contained.h). Any thread may call it.
bool gpu_program(const mrt_function *function, bool contains_bytes, GpuProgram &program, std::string &problem);

// The loaded function of each GPU, indexed by the GPU's number; gpu/kernel.h has the type.
struct GpuSlot {
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<void>> kernels;
};
GpuSlot &gpu_slot(const mrt_function *function);

// Returns the table of functions for kernels, to which every module is bound. Defined by the executor.
const MrtRuntime *kernel_runtime();

} // namespace mrt
