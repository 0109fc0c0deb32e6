#include "gpu/kernel.h"

#include "metal/mrt/gpu/contained.h"
#include "support/settings.h"

#include <map>
#include <memory>
#include <mutex>

namespace mrt {
namespace {

// Modules stay loaded, since another function may have the same text.
struct Modules {
  std::mutex mutex;
  std::map<std::pair<uint32_t, std::string>, cuda::Module> loaded;
};

Modules &modules() {
  static Modules &instance = *new Modules;
  return instance;
}

cuda::Result load(Gpu &gpu, const GpuProgram &program, cuda::Module &module, std::string &log) {
  Modules &all = modules();
  std::lock_guard<std::mutex> lock(all.mutex);
  cuda::Module &known = all.loaded[{gpu.index, program.key}];
  if (known) return module = known, cuda::success;
  char text[4096] = {};
  cuda::JitOption options[] = {cuda::error_log_buffer, cuda::error_log_buffer_bytes};
  void *values[] = {text, reinterpret_cast<void *>(sizeof text)};
  const cuda::Result result = driver().call.module_load(&known, program.ptx.c_str(), 2, options, values);
  if (result != cuda::success) known = nullptr;
  log = text;
  module = known;
  return result;
}

// Finds the values that launches can contain, as metal/mrt/gpu/entry.h does.
void place_references(GpuKernel &kernel) {
  ContainedBytes bytes;
  for (mrt_u32 position = 0; position < kernel.entry->parameter_count; position++) {
    const MrtParameter &parameter = kernel.entry->parameters[position];
    const bool is_value =
        parameter.kind == MRT_PARAMETER_BUFFER && parameter.space == MRT_IN_CONSTANT && parameter.is_reference;
    kernel.places.push_back(bytes.place(is_value ? parameter.element_size : 0));
  }
  kernel.contained_bytes = bytes.count;
}

// Compiles both builds, since it is not known how the references will be bound.
bool compile(const mrt_function *function, std::string &problem) {
  GpuKernel kernel;
  kernel.entry = gpu_entry(function, problem);
  if (!kernel.entry) return false;
  place_references(kernel);
  GpuProgram program;
  return gpu_program(function, false, program, problem) &&
         (kernel.contained_bytes == 0 || gpu_program(function, true, program, problem));
}

} // namespace

GpuKernel *gpu_kernel(Gpu &gpu, const mrt_function *function, std::string &problem) {
  GpuSlot &slot = gpu_slot(function);
  std::lock_guard<std::mutex> lock(slot.mutex);
  std::shared_ptr<void> &known = slot.kernels[gpu.index];
  if (!known) {
    const MrtEntry *entry = gpu_entry(function, problem);
    if (!entry) return nullptr;
    auto kernel = std::make_shared<GpuKernel>();
    kernel->entry = entry;
    place_references(*kernel);
    known = kernel;
  }
  return static_cast<GpuKernel *>(known.get());
}

const GpuBuild *gpu_build(Gpu &gpu, const mrt_function *function, GpuKernel &kernel, bool contains_bytes,
                          std::string &problem) {
  std::lock_guard<std::mutex> lock(gpu_slot(function).mutex);
  GpuBuild &build = kernel.builds[contains_bytes];
  if (build.function) return &build;
  GpuProgram program;
  if (!gpu_program(function, contains_bytes, program, problem)) return nullptr;
  cuda::Module module = nullptr;
  cuda::Function loaded = nullptr;
  std::string log;
  const cuda::Functions &call = driver().call;
  cuda::Result result = load(gpu, program, module, log);
  if (result == cuda::success) result = call.module_function(&loaded, module, program.symbol.c_str());
  if (result == cuda::success) result = call.function_attribute(&build.static_bytes, cuda::static_shared_bytes, loaded);
  if (result != cuda::success) {
    problem =
        gpu_error(gpu, "loading '" + std::string(kernel.entry->name) + "'", result) + (log.empty() ? "" : ": " + log);
    return nullptr;
  }
  build.function = loaded;
  return &build;
}

} // namespace mrt

bool mrt_gpu_prepare(uint32_t index, const mrt_function *function, char **message) {
  std::string problem;
  mrt::Gpu *gpu = mrt::enter_gpu(index, problem);
  mrt::GpuKernel *kernel = gpu ? mrt::gpu_kernel(*gpu, function, problem) : nullptr;
  if (kernel && mrt::gpu_build(*gpu, function, *kernel, kernel->contained_bytes != 0, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}

bool mrt_gpu_compile(const mrt_function *function, char **message) {
  std::string problem;
  if (mrt::compile(function, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}
