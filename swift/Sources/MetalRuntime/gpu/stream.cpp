#include "gpu/stream.h"

#include "gpu/gpu_memory.h"
#include "support/settings.h"

#include <chrono>
#include <map>
#include <memory>
#include <thread>

namespace mrt {

GpuStream::~GpuStream() {
  std::string problem;
  if (!handle_ || !enter_gpu(gpu_.index, problem)) return;
  driver().call.stream_destroy(handle_);
  if (staging_) driver().call.memory_free(staging_);
}

GpuStream *GpuStream::of_thread(Gpu &gpu, std::string &problem) {
  static thread_local std::map<uint32_t, std::unique_ptr<GpuStream>> streams;
  auto &slot = streams[gpu.index];
  if (slot) return slot.get();
  auto stream = std::make_unique<GpuStream>(gpu);
  const cuda::Result result = stream->open();
  if (result != cuda::success) return problem = gpu_error(gpu, "making a stream", result), nullptr;
  return (slot = std::move(stream)).get();
}

cuda::Result GpuStream::open() {
  const cuda::Functions &call = driver().call;
  cuda::Result result = call.stream_create(&handle_, cuda::stream_non_blocking);
  if (result == cuda::success) result = call.memory_allocate(&staging_, staging_bytes + absent_bytes);
  return result == cuda::success ? call.fill(absent(), 0, absent_bytes, handle_) : result;
}

cuda::Result GpuStream::stage(const std::vector<uint8_t> &bytes, cuda::Address &address) {
  constexpr size_t alignment = 256;
  if (staged_ + bytes.size() > staging_bytes) {
    std::string message;
    if (finish(message) != MRT_RESULT_OK) return cuda::launch_failed;
  }
  address = staging_ + staged_;
  staged_ += (bytes.size() + alignment - 1) / alignment * alignment;
  return driver().call.copy_from_host(address, bytes.data(), bytes.size(), handle_);
}

mrt_result GpuStream::finish(std::string &message) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now(), limit = start + std::chrono::milliseconds(setting_number(Setting::timeout_ms));
  cuda::Result result;
  // Short work is polled, so that its end is seen at once; long work leaves the processor to others.
  while ((result = driver().call.stream_query(handle_)) == cuda::not_ready) {
    const auto now = clock::now();
    if (now > limit) {
      gpu_.lost = true; // the driver cannot end one kernel
      message = "the work ran longer than " + std::to_string(setting_number(Setting::timeout_ms)) +
                " ms (setting 'timeout_ms'); " + gpu_.name + " is lost to this process";
      return MRT_RESULT_TIMEOUT;
    }
    if (now - start > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else std::this_thread::yield();
  }
  staged_ = 0;
  if (result != cuda::success) message = gpu_error(gpu_, "running on " + gpu_.name, result);
  return gpu_result(result);
}

} // namespace mrt

using namespace mrt;

namespace {

mrt_result fail(const std::string &problem, mrt_result result, char **message) {
  if (message) *message = copy_string(problem);
  return result;
}

// Calls body(gpu, stream) and reports a failure of the driver as one of `operation`.
template <typename Body> mrt_result on_stream(uint32_t index, const char *operation, char **message, Body body) {
  std::string problem;
  Gpu *gpu = enter_gpu(index, problem);
  GpuStream *stream = gpu ? GpuStream::of_thread(*gpu, problem) : nullptr;
  if (!stream) return fail(problem, MRT_RESULT_INVALID, message);
  const cuda::Result result = body(*stream);
  return result == cuda::success ? MRT_RESULT_OK
                                 : fail(gpu_error(*gpu, operation, result), gpu_result(result), message);
}

} // namespace

mrt_result mrt_gpu_copy(uint32_t gpu, void *destination, const void *source, size_t length, char **message) {
  return on_stream(gpu, "copying", message, [&](GpuStream &stream) {
    return driver().call.copy(cuda::Address(uintptr_t(destination)), cuda::Address(uintptr_t(source)), length,
                              stream.handle());
  });
}

mrt_result mrt_gpu_fill(uint32_t gpu, void *destination, uint8_t value, size_t length, char **message) {
  return on_stream(gpu, "filling", message, [&](GpuStream &stream) {
    return driver().call.fill(cuda::Address(uintptr_t(destination)), value, length, stream.handle());
  });
}

mrt_result mrt_gpu_finish(uint32_t index, char **message) {
  std::string problem;
  Gpu *gpu = enter_gpu(index, problem);
  GpuStream *stream = gpu ? GpuStream::of_thread(*gpu, problem) : nullptr;
  if (!stream) return fail(problem, MRT_RESULT_INVALID, message);
  const mrt_result result = stream->finish(problem);
  return result == MRT_RESULT_OK ? result : fail(problem, result, message);
}
