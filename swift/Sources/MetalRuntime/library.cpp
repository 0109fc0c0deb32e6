// Placeholder until its part of the runtime lands.
#include "include/metal_runtime.h"
#include "library_internal.h"

namespace mrt {
Build current_build(const mrt_function *, bool) { return {}; }
const KernelCode *kernel_code(const mrt_function *, Build, std::string &problem) {
  problem = "there is no compiler yet";
  return nullptr;
}
} // namespace mrt

mrt_library * mrt_library_create(const char *, const mrt_compile_options *, char **) { return {}; }
void mrt_library_retain(mrt_library *) { }
void mrt_library_release(mrt_library *) { }
size_t mrt_library_function_count(const mrt_library *) { return {}; }
const char * mrt_library_function_name(const mrt_library *, size_t) { return {}; }
mrt_function * mrt_function_create(mrt_library *, const char *, const mrt_constant_value *, size_t, char **) { return {}; }
void mrt_function_retain(mrt_function *) { }
void mrt_function_release(mrt_function *) { }
const mrt_function_info * mrt_function_info_get(const mrt_function *) { return {}; }
const mrt_function_info * mrt_library_function_info(const mrt_library *, const char *) { return {}; }
mrt_compile_stats mrt_compile_stats_get(void) { return {}; }
bool mrt_function_archive(const mrt_function *, const char *, char **) { return {}; }
