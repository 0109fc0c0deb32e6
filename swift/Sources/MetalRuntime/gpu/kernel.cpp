#include "gpu/kernel.h"

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

} // namespace

const GpuKernel *gpu_kernel(Gpu &gpu, const mrt_function *function, std::string &problem) {
  GpuSlot &slot = gpu_slot(function);
  std::lock_guard<std::mutex> lock(slot.mutex);
  auto &known = slot.kernels[gpu.index];
  if (known) return static_cast<const GpuKernel *>(known.get());
  GpuProgram program;
  if (!gpu_program(function, program, problem)) return nullptr;
  auto kernel = std::make_shared<GpuKernel>();
  cuda::Module module = nullptr;
  std::string log;
  const cuda::Functions &call = driver().call;
  cuda::Result result = load(gpu, program, module, log);
  if (result == cuda::success) result = call.module_function(&kernel->function, module, program.symbol.c_str());
  if (result == cuda::success)
    result = call.function_attribute(&kernel->static_bytes, cuda::static_shared_bytes, kernel->function);
  if (result != cuda::success) {
    problem =
        gpu_error(gpu, "loading '" + std::string(program.entry->name) + "'", result) + (log.empty() ? "" : ": " + log);
    return nullptr;
  }
  kernel->entry = program.entry;
  known = kernel;
  return kernel.get();
}

} // namespace mrt

bool mrt_gpu_prepare(uint32_t index, const mrt_function *function, char **message) {
  std::string problem;
  mrt::Gpu *gpu = mrt::enter_gpu(index, problem);
  if (gpu && mrt::gpu_kernel(*gpu, function, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}

bool mrt_gpu_compile(const mrt_function *function, char **message) {
  std::string problem;
  mrt::GpuProgram program;
  if (mrt::gpu_program(function, program, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}
