#include "compile/loaded_module.h"

#include <memory>
#include <mutex>

#include <dlfcn.h>

namespace mrt {
namespace {

void identify_entries(LoadedModule &loaded) {
  std::map<std::string, std::vector<mrt_u32>> by_owner;
  for (mrt_u32 position = 0; position < loaded.module->variable_count; position++)
    by_owner[loaded.module->variables[position]->owner].push_back(position);
  for (mrt_u32 index = 0; index < loaded.module->entry_count; index++) {
    const MrtEntry *entry = &loaded.module->entries[index];
    loaded.entries[entry->name] = entry;
    loaded.variables[entry] = by_owner[entry->identity()];
  }
}

} // namespace

const LoadedModule *load_module(const std::string &path, std::string &problem, bool &was_loaded) {
  static std::mutex mutex;
  static auto *modules = new std::map<void *, std::unique_ptr<LoadedModule>>;
  std::lock_guard<std::mutex> lock(mutex);
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto *module = handle ? (const MrtModule *)dlsym(handle, "mrt_module") : nullptr;
  if (!module || module->version != MRT_ABI_VERSION) {
    problem = handle ? "the compiled kernels at " + path + " are of another version" : dlerror();
    return nullptr;
  }
  auto &loaded = (*modules)[handle];
  was_loaded = loaded != nullptr;
  if (was_loaded) {
    dlclose(handle); // drops the reference that dlopen added
    return loaded.get();
  }
  loaded = std::make_unique<LoadedModule>();
  loaded->module = module;
  // Called before binding, so that the checker does not take these calls for running kernels.
  identify_entries(*loaded);
  module->bind(kernel_runtime());
  return loaded.get();
}

} // namespace mrt
