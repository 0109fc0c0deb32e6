#include "gpu/kernel.h"

#include "metal/mrt/gpu/contained.h"
#include "support/settings.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace mrt {
namespace {

// Registers of a thread with which any threadgroup fits: a core has 65,536 for at most 1,024 threads.
constexpr uintptr_t fewest_registers = 64;

// Modules stay loaded, since another function may have the same text.
struct Modules {
  std::mutex mutex;
  std::map<std::tuple<uint32_t, std::string, bool>, cuda::Module> loaded; // by GPU, text, and whether any group fits
};

Modules &modules() {
  static Modules &instance = *new Modules;
  return instance;
}

cuda::Result load(Gpu &gpu, const GpuProgram &program, bool fits_all, cuda::Module &module, std::string &log) {
  Modules &all = modules();
  std::lock_guard<std::mutex> lock(all.mutex);
  cuda::Module &known = all.loaded[{gpu.index, program.key, fits_all}];
  if (known) return module = known, cuda::success;
  char text[4096] = {};
  cuda::JitOption options[] = {cuda::error_log_buffer, cuda::error_log_buffer_bytes, cuda::max_registers};
  void *values[] = {text, reinterpret_cast<void *>(sizeof text), reinterpret_cast<void *>(fewest_registers)};
  const cuda::Result result = driver().call.module_load(&known, program.ptx.c_str(), fits_all ? 3 : 2, options, values);
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

bool load_build(Gpu &gpu, const mrt_function *function, bool contains_bytes, bool fits_all, GpuBuild &build,
                std::string &problem) {
  GpuProgram program;
  if (!gpu_program(function, contains_bytes, program, problem)) return false;
  cuda::Module module = nullptr;
  cuda::Function loaded = nullptr;
  std::string log;
  const cuda::Functions &call = driver().call;
  cuda::Result result = load(gpu, program, fits_all, module, log);
  if (result == cuda::success) result = call.module_function(&loaded, module, program.symbol.c_str());
  if (result == cuda::success) result = call.function_attribute(&build.static_bytes, cuda::static_shared_bytes, loaded);
  if (result == cuda::success) result = call.function_attribute(&build.most_threads, cuda::max_threads, loaded);
  if (result != cuda::success) {
    problem = gpu_error(gpu, "loading '" + std::string(mrt_function_info_get(function)->name) + "'", result) +
              (log.empty() ? "" : ": " + log);
    return false;
  }
  build.function = loaded;
  return true;
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

const GpuBuild *gpu_build(Gpu &gpu, const mrt_function *function, GpuKernel &kernel, bool contains_bytes, int threads,
                          std::string &problem) {
  std::lock_guard<std::mutex> lock(gpu_slot(function).mutex);
  for (const bool fits_all : {false, true}) {
    GpuBuild &build = kernel.builds[contains_bytes][fits_all];
    if (!build.function && !load_build(gpu, function, contains_bytes, fits_all, build, problem)) return nullptr;
    if (threads <= build.most_threads) return &build;
  }
  problem = "a threadgroup of '" + std::string(kernel.entry->name) + "' on this device has at most " +
            std::to_string(kernel.builds[contains_bytes][true].most_threads) + " threads (got " +
            std::to_string(threads) + ")";
  return nullptr;
}

} // namespace mrt

bool mrt_gpu_prepare(uint32_t index, const mrt_function *function, char **message) {
  std::string problem;
  mrt::Gpu *gpu = mrt::enter_gpu(index, problem);
  mrt::GpuKernel *kernel = gpu ? mrt::gpu_kernel(*gpu, function, problem) : nullptr;
  if (kernel && mrt::gpu_build(*gpu, function, *kernel, kernel->contained_bytes != 0, 0, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}

bool mrt_gpu_compile(const mrt_function *function, char **message) {
  std::string problem;
  if (mrt::compile(function, problem)) return true;
  if (message) *message = mrt::copy_string(problem);
  return false;
}
