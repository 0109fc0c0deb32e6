// Records a dispatch for a GPU (gpu/stream.h).
#include "execute/dispatch_checks.h"
#include "gpu/kernel.h"
#include "gpu/stream.h"
#include "support/settings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace mrt {
namespace {

constexpr unsigned largest_depth = 64;              // threads of a block in the third dimension
constexpr uint64_t most_groups = 65535;             // blocks in the second or third dimension of a CUDA grid
constexpr uint64_t most_groups_across = 2147483647; // blocks in the first dimension
constexpr unsigned plain_threadgroup_bytes = 48 << 10;

// Whether a launch can contain the values of the kernel's references: they are bytes of the host, or absent.
bool can_contain(const GpuKernel &kernel, const mrt_dispatch &request) {
  if (kernel.contained_bytes == 0) return false;
  for (uint32_t position = 0; position < kernel.entry->parameter_count; position++) {
    if (kernel.places[position] == not_contained) continue;
    const MrtParameter &parameter = kernel.entry->parameters[position];
    const mrt_bound_buffer &bound = request.buffers[parameter.index];
    if (bound.address && !(bound.is_bytes && bound.length >= parameter.element_size)) return false;
  }
  return true;
}

class GpuDispatch {
public:
  GpuDispatch(GpuStream &stream, const GpuKernel &kernel, const GpuBuild &build, bool contains_bytes,
              const mrt_dispatch &request)
      : stream(stream), kernel(kernel), build(build), request(request), contains_bytes(contains_bytes) {}

  cuda::Result run() {
    cuda::Result result = bind();
    if (result == cuda::success) result = allow_threadgroup_bytes();
    return result == cuda::success ? launch() : result;
  }

private:
  cuda::Result bind() {
    if (const cuda::Result result = stream.reserve(bytes_to_stage()); result != cuda::success) return result;
    for (uint32_t position = 0; position < kernel.entry->parameter_count; position++) {
      const MrtParameter &parameter = kernel.entry->parameters[position];
      arguments[position] = 0;
      if (parameter.kind == MRT_PARAMETER_THREADGROUP) {
        arguments[position] = threadgroup_bytes;
        threadgroup_bytes += (request.threadgroup_lengths[parameter.index] + 15) / 16 * 16;
      }
      if (parameter.kind != MRT_PARAMETER_BUFFER) continue;
      const mrt_bound_buffer &bound = request.buffers[parameter.index];
      if (is_contained(position)) {
        uint8_t *value = contained() + kernel.places[position];
        if (bound.address) memcpy(value, bound.address, parameter.element_size);
        else memset(value, 0, parameter.element_size);
      } else if (!bound.address) arguments[position] = stream.absent();
      else if (!bound.is_bytes) arguments[position] = uintptr_t(bound.address);
      else {
        arguments[position] = stream.stage(bound.address, bound.length);
        staged |= uint64_t(1) << position;
      }
    }
    return cuda::success;
  }

  size_t bytes_to_stage() const {
    size_t bytes = 0;
    for (uint32_t position = 0; position < kernel.entry->parameter_count; position++) {
      const MrtParameter &parameter = kernel.entry->parameters[position];
      if (parameter.kind != MRT_PARAMETER_BUFFER || !request.buffers[parameter.index].is_bytes) continue;
      if (is_contained(position)) continue;
      bytes += request.buffers[parameter.index].length + GpuStream::staged_alignment;
    }
    return bytes;
  }

  // More than 48 KB must be requested. A graph keeps its kernels, so the limit never becomes lower.
  cuda::Result allow_threadgroup_bytes() {
    if (unsigned(build.static_bytes) + threadgroup_bytes <= plain_threadgroup_bytes) return cuda::success;
    if (threadgroup_bytes <= build.allowed_bytes) return cuda::success;
    const cuda::Result result =
        driver().call.function_set_attribute(build.function, cuda::max_dynamic_shared_bytes, int(threadgroup_bytes));
    if (result == cuda::success) build.allowed_bytes = threadgroup_bytes;
    return result;
  }

  bool is_contained(uint32_t position) const { return contains_bytes && kernel.places[position] != not_contained; }
  size_t argument_count() const { return std::max(1u, kernel.entry->parameter_count); }
  uint8_t *contained() { return parameters + contained_offset(argument_count()); }

  // A multiple of the size of an argument.
  size_t parameter_bytes() const {
    if (!contains_bytes) return sizeof(GpuLaunchHead) + argument_count() * sizeof(cuda::Address);
    return contained_offset(argument_count()) + (kernel.contained_bytes + 7) / 8 * 8;
  }

  // A CUDA grid is smaller than Metal's in the second and third dimension, so a large one is launched in parts.
  cuda::Result launch() {
    const uint64_t grid[3] = {request.grid.width, request.grid.height, request.grid.depth};
    const uint64_t group[3] = {request.threads_per_threadgroup.width, request.threads_per_threadgroup.height,
                               request.threads_per_threadgroup.depth};
    uint64_t groups[3];
    for (int axis = 0; axis < 3; axis++) {
      head.threads_per_grid[axis] = uint32_t(grid[axis]);
      head.threads_per_threadgroup[axis] = uint32_t(group[axis]);
      groups[axis] = (grid[axis] + group[axis] - 1) / group[axis];
    }
    for (uint64_t z = 0; z < groups[2]; z += most_groups)
      for (uint64_t y = 0; y < groups[1]; y += most_groups)
        for (uint64_t x = 0; x < groups[0]; x += most_groups_across) {
          head.first_group[0] = uint32_t(x), head.first_group[1] = uint32_t(y), head.first_group[2] = uint32_t(z);
          GpuLaunch launch = {build.function,
                              kernel.entry->name,
                              {unsigned(std::min(groups[0] - x, most_groups_across)),
                               unsigned(std::min(groups[1] - y, most_groups)),
                               unsigned(std::min(groups[2] - z, most_groups))},
                              {unsigned(group[0]), unsigned(group[1]), unsigned(group[2])},
                              threadgroup_bytes,
                              staged,
                              0,
                              0};
          const cuda::Result result = stream.record(launch, parameters, parameter_bytes());
          if (result != cuda::success) return result;
        }
    return cuda::success;
  }

  GpuStream &stream;
  const GpuKernel &kernel;
  const GpuBuild &build;
  const mrt_dispatch &request;
  const bool contains_bytes;
  alignas(contained_alignment) uint8_t parameters[contained_offset(most_parameters) + most_contained] = {};
  GpuLaunchHead &head = *new (parameters) GpuLaunchHead();
  cuda::Address *arguments = reinterpret_cast<cuda::Address *>(parameters + sizeof(GpuLaunchHead));
  uint64_t staged = 0; // a bit for each argument that stage() returned
  unsigned threadgroup_bytes = 0;
};

constexpr unsigned product_operands = 4; // and the parameters after them

// Lets the library compute a product, after the recorded launches. Returns false if the kernel must run: for kernels
// that are not products, and if there is no library or it rejects the product.
bool run_by_library(GpuStream &stream, const mrt_dispatch &request, mrt_result &result, std::string &problem) {
  cublas::DataType type;
  if (!is_library_product(mrt_function_info_get(request.function)->name, type)) return false;
  const mrt_bound_buffer &parameters = request.buffers[product_operands];
  if (product_library().name.empty() || !parameters.is_bytes || parameters.length < sizeof(ProductParameters))
    return false;
  ProductParameters product;
  memcpy(&product, parameters.address, sizeof product);
  std::array<uintptr_t, product_operands> operands;
  for (unsigned i = 0; i < product_operands; i++) operands[i] = uintptr_t(request.buffers[i].address);
  if (const cuda::Result flushed = stream.flush(); flushed != cuda::success) {
    result = stream.fail(flushed, problem);
    return true;
  }
  if (stream.products.run(stream.handle(), type, product, operands, problem)) return result = MRT_RESULT_OK, true;
  result = MRT_RESULT_INVALID;
  return !problem.empty();
}

mrt_result dispatch(uint32_t index, const mrt_dispatch &request, std::string &problem) {
  problem = dispatch_problem(request, *mrt_function_info_get(request.function));
  if (problem.empty() && request.threads_per_threadgroup.depth > largest_depth)
    problem = "a threadgroup on this device is at most " + std::to_string(largest_depth) + " deep (got " +
              std::to_string(request.threads_per_threadgroup.depth) + ")";
  if (!problem.empty()) return MRT_RESULT_INVALID;
  Gpu *gpu = enter_gpu(index, problem);
  GpuStream *stream = gpu ? GpuStream::of_thread(*gpu, problem) : nullptr;
  mrt_result by_library;
  if (stream && setting_flag(Setting::execute) && run_by_library(*stream, request, by_library, problem))
    return by_library;
  GpuKernel *kernel = stream ? gpu_kernel(*gpu, request.function, problem) : nullptr;
  const mrt_size &group = request.threads_per_threadgroup;
  const int threads = int(group.width * group.height * group.depth);
  const bool contains_bytes = kernel && can_contain(*kernel, request);
  const GpuBuild *build =
      kernel ? gpu_build(*gpu, request.function, *kernel, contains_bytes, threads, problem) : nullptr;
  if (!build) return MRT_RESULT_INVALID;
  if (!setting_flag(Setting::execute)) return MRT_RESULT_OK;
  if (kernel->entry->parameter_count > most_parameters) {
    problem = "a kernel on this device has at most " + std::to_string(most_parameters) + " parameters (got " +
              std::to_string(kernel->entry->parameter_count) + ")";
    return MRT_RESULT_INVALID;
  }
  const cuda::Result result = GpuDispatch(*stream, *kernel, *build, contains_bytes, request).run();
  return result == cuda::success ? MRT_RESULT_OK : stream->fail(result, problem);
}

} // namespace
} // namespace mrt

mrt_result mrt_gpu_dispatch(uint32_t gpu, const mrt_dispatch *request, char **message) {
  std::string problem;
  const mrt_result result = mrt::dispatch(gpu, *request, problem);
  if (message) *message = problem.empty() ? nullptr : mrt::copy_string(problem);
  return result;
}
