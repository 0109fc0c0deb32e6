// A compiled library in this process.
#pragma once

#include "compile/library.h"

#include <map>
#include <string>
#include <vector>

namespace mrt {

struct LoadedModule {
  const MrtModule *module = nullptr;
  std::map<std::string, const MrtEntry *> entries;
  std::map<const MrtEntry *, std::vector<mrt_u32>> variables; // positions in module->variables
};

// Loads a shared object once per process, binds it and lets its kernels identify themselves. Modules are never
// unloaded, since threads of the process may have thread-local storage in them.
const LoadedModule *load_module(const std::string &path, std::string &problem, bool &was_loaded);

} // namespace mrt
