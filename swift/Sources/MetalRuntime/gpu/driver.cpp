#include "gpu/driver.h"

#include "support/settings.h"

#include <algorithm>
#include <dlfcn.h>
#include <iterator>
#include <mutex>

namespace mrt {
namespace {

// The kernels are compiled for compute capability 8.0 (gpu/ptx.cpp).
constexpr int least_major = 8;

std::string text_of(const cuda::Functions &call, cuda::Result result) {
  const char *name = nullptr, *text = nullptr;
  if (call.error_name) call.error_name(result, &name);
  if (call.error_text) call.error_text(result, &text);
  return std::string(text ? text : "unknown error") + " (" + (name ? name : std::to_string(result)) + ")";
}

bool load(cuda::Functions &call, std::string &problem) {
  std::string path = setting_text(Setting::cuda);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return problem = "no NVIDIA driver was found: " + std::string(dlerror()), false;
#define MRT_CUDA_LOAD(member, name, parameters)                                                                        \
  call.member = reinterpret_cast<decltype(call.member)>(dlsym(library, #name));                                        \
  if (!call.member) return problem = path + " has no function " #name "; update the NVIDIA driver", false;
  MRT_CUDA_FUNCTIONS(MRT_CUDA_LOAD)
#undef MRT_CUDA_LOAD
  return true;
}

// Returns an empty string if the kernels can run on the GPU.
std::string examine(const cuda::Functions &call, Gpu &gpu) {
  char name[256] = {};
  int shares = 0, integrated = 0;
  call.device_name(name, sizeof name, gpu.device);
  gpu.name = name;
  call.device_memory(&gpu.memory, gpu.device);
  call.device_attribute(&gpu.major, cuda::compute_capability_major, gpu.device);
  call.device_attribute(&gpu.minor, cuda::compute_capability_minor, gpu.device);
  call.device_attribute(&shares, cuda::concurrent_managed_access, gpu.device);
  call.device_attribute(&integrated, cuda::is_integrated, gpu.device);
  gpu.integrated = integrated != 0;
  if (gpu.major < least_major)
    return gpu.name + " has compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
           ", but the kernels require 8.0";
  if (!shares)
    return gpu.name + " cannot share memory with the processor while it runs (concurrentManagedAccess), which Metal's "
                      "shared storage requires";
  return {};
}

void find_gpus(Driver &driver) {
  if (!load(driver.call, driver.problem)) return;
  int count = 0;
  cuda::Result result = driver.call.init(0);
  if (result == cuda::success) result = driver.call.device_count(&count);
  if (result != cuda::success) {
    driver.problem = "the NVIDIA driver does not start: " + text_of(driver.call, result);
    return;
  }
  if (count == 0) driver.problem = "the NVIDIA driver reports no GPU";
  for (int ordinal = 0; ordinal < count; ordinal++) {
    auto *gpu = new Gpu; // never destroyed, like the driver's context
    driver.call.device_get(&gpu->device, ordinal);
    const std::string problem = examine(driver.call, *gpu);
    gpu->index = uint32_t(driver.gpus.size());
    if (problem.empty()) driver.gpus.push_back(gpu);
    else driver.problem = problem;
  }
  if (!driver.gpus.empty()) driver.problem.clear();
}

bool is_fatal(cuda::Result result) {
  constexpr cuda::Result fatal[] = {cuda::ecc_uncorrectable,  cuda::illegal_address,       cuda::launch_timeout,
                                    cuda::assert_failed,      cuda::hardware_stack_error,  cuda::illegal_instruction,
                                    cuda::misaligned_address, cuda::invalid_address_space, cuda::invalid_pc,
                                    cuda::launch_failed};
  return std::find(std::begin(fatal), std::end(fatal), result) != std::end(fatal);
}

} // namespace

const Driver &driver() {
  static const Driver &instance = *[] {
    auto *driver = new Driver;
    find_gpus(*driver);
    return driver;
  }();
  return instance;
}

Gpu *enter_gpu(uint32_t index, std::string &problem) {
  const Driver &driver = mrt::driver();
  if (index >= driver.gpus.size()) {
    problem = driver.gpus.empty() ? driver.problem
                                  : "there is no GPU " + std::to_string(index) + " (got " +
                                        std::to_string(driver.gpus.size()) + " of them)";
    return nullptr;
  }
  Gpu &gpu = *driver.gpus[index];
  if (gpu.lost) {
    problem = gpu.name + " is lost to this process after an earlier error; start the program again";
    return nullptr;
  }
  static thread_local const Gpu *entered = nullptr;
  if (entered == &gpu) return &gpu;
  static std::mutex &mutex = *new std::mutex;
  std::lock_guard<std::mutex> lock(mutex);
  cuda::Result result = gpu.context ? cuda::success : driver.call.context_retain(&gpu.context, gpu.device);
  if (result == cuda::success) result = driver.call.context_set(gpu.context);
  if (result == cuda::success) return entered = &gpu, &gpu;
  problem = gpu_error(gpu, "using " + gpu.name, result);
  return nullptr;
}

std::string gpu_error(Gpu &gpu, const std::string &operation, cuda::Result result) {
  if (is_fatal(result)) gpu.lost = true;
  return operation + ": " + text_of(driver().call, result);
}

mrt_result gpu_result(cuda::Result result) {
  if (result == cuda::success) return MRT_RESULT_OK;
  if (result == cuda::out_of_memory) return MRT_RESULT_OUT_OF_MEMORY;
  if (result == cuda::launch_timeout) return MRT_RESULT_TIMEOUT;
  const bool is_access =
      result == cuda::illegal_address || result == cuda::misaligned_address || result == cuda::invalid_address_space;
  return is_access ? MRT_RESULT_PAGE_FAULT : MRT_RESULT_INVALID;
}

} // namespace mrt

size_t mrt_gpu_count(char **message) {
  const mrt::Driver &driver = mrt::driver();
  if (message) *message = driver.problem.empty() ? nullptr : mrt::copy_string(driver.problem);
  return driver.gpus.size();
}

bool mrt_gpu_info_get(uint32_t gpu, mrt_gpu_info *info) {
  const mrt::Driver &driver = mrt::driver();
  if (gpu >= driver.gpus.size()) return false;
  const mrt::Gpu &found = *driver.gpus[gpu];
  *info = {found.name.c_str(), found.memory, uint32_t(found.major), uint32_t(found.minor), found.integrated};
  return true;
}
