#include "gpu/stream.h"

#include "support/settings.h"

#include <cstring>
#include <map>
#include <memory>
#include <thread>

struct mrt_gpu_mark {
  mrt::cuda::Event event = nullptr;
  uint64_t issued = 0;                              // the stream's work at the mark
  std::chrono::steady_clock::time_point start = {}; // of waiting
};

namespace mrt {

GpuStream::~GpuStream() {
  std::string problem;
  if (!handle_ || !enter_gpu(gpu_.index, problem)) return;
  for (cuda::Event event : events_) driver().call.event_destroy(event);
  driver().call.stream_destroy(handle_);
  if (staging_) driver().call.memory_free(staging_);
  if (host_) driver().call.host_free(host_);
  graphs_.end();
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
  void *host = nullptr;
  if (result == cuda::success) result = call.host_allocate(&host, staging_bytes, 0);
  host_ = static_cast<uint8_t *>(host);
  return result == cuda::success ? call.fill(absent(), 0, absent_bytes, handle_) : result;
}

// ---------------------------------------------------------------- recording and issuing

cuda::Result GpuStream::reserve(size_t bytes) {
  if (staged_ + bytes <= staging_bytes) return cuda::success;
  std::string message;
  return finish(message) == MRT_RESULT_OK ? cuda::success : cuda::launch_failed;
}

cuda::Address GpuStream::stage(const void *bytes, size_t count) {
  const size_t at = staged_;
  memcpy(host_ + at, bytes, count);
  staged_ += (count + staged_alignment - 1) / staged_alignment * staged_alignment;
  return at - sent_;
}

cuda::Result GpuStream::record(GpuLaunch launch, const void *parameters, size_t count) {
  std::vector<uint8_t> &all = sequence_.parameters;
  launch.parameters = all.size();
  launch.parameter_bytes = count;
  const auto *bytes = static_cast<const uint8_t *>(parameters);
  all.insert(all.end(), bytes, bytes + count);
  sequence_.launches.push_back(launch);
  return sequence_.launches.size() < most_recorded ? cuda::success : flush();
}

// Memory is cleared on another stream (gpu_memory.cpp).
cuda::Result GpuStream::await_clears() {
  const uint64_t clears = gpu_.clears.load(std::memory_order_acquire);
  if (clears == clears_) return cuda::success;
  clears_ = clears;
  return driver().call.stream_wait(handle_, gpu_.cleared, cuda::plain_wait);
}

cuda::Result GpuStream::flush() {
  issued_++;
  cuda::Result result = await_clears();
  if (result == cuda::success && !sequence_.launches.empty()) result = issue();
  sent_ = staged_;
  sequence_.clear();
  return result;
}

cuda::Result GpuStream::issue() {
  const uint8_t *bytes = host_ + sent_;
  const size_t count = staged_ - sent_;
  if (graphs_.run(handle_, sequence_, bytes, count)) return cuda::success;
  const cuda::Address copy = staging_ + sent_;
  if (count)
    if (const cuda::Result result = driver().call.copy_from_host(copy, bytes, count, handle_); result != cuda::success)
      return result;
  for (const GpuLaunch &recorded : sequence_.launches)
    if (const cuda::Result result = launch(recorded, copy); result != cuda::success) return result;
  return cuda::success;
}

cuda::Result GpuStream::launch(const GpuLaunch &launch, cuda::Address bytes) {
  PlacedParameters parameters(sequence_, launch, bytes);
  const auto &[x, y, z] = launch.groups;
  const auto &[width, height, depth] = launch.threads;
  const cuda::Result result = driver().call.launch(launch.function, x, y, z, width, height, depth,
                                                   launch.threadgroup_bytes, handle_, parameters.list(), nullptr);
  if (result != cuda::success) failed_ = launch.name;
  return result;
}

// ---------------------------------------------------------------- waiting

mrt_result GpuStream::fail(cuda::Result result, std::string &message) {
  message = gpu_error(gpu_, failed_.empty() ? "running on " + gpu_.name : "launching '" + failed_ + "'", result);
  failed_.clear();
  return gpu_result(result);
}

mrt_result GpuStream::expire(std::string &message) {
  gpu_.lost = true; // the driver cannot end one kernel
  message = "the work ran longer than " + std::to_string(setting_number(Setting::timeout_ms)) +
            " ms (setting 'timeout_ms'); " + gpu_.name + " is lost to this process";
  return MRT_RESULT_TIMEOUT;
}

mrt_result GpuStream::finish(std::string &message) {
  mrt_gpu_mark *mark = nullptr;
  mrt_result result = this->mark(mark, message);
  while (result == MRT_RESULT_OK && !reached(mark, std::chrono::seconds(1), result, message)) {
  }
  return result;
}

mrt_result GpuStream::mark(mrt_gpu_mark *&mark, std::string &message) {
  const cuda::Functions &call = driver().call;
  auto fresh = std::make_unique<mrt_gpu_mark>();
  cuda::Result result = flush();
  if (result == cuda::success && events_.empty()) result = call.event_create(&fresh->event, cuda::event_disable_timing);
  else if (result == cuda::success) fresh->event = events_.back(), events_.pop_back();
  if (result == cuda::success) result = call.event_record(fresh->event, handle_);
  if (result != cuda::success) return fail(result, message);
  fresh->issued = issued_;
  mark = fresh.release();
  return MRT_RESULT_OK;
}

// Short work is polled, which detects its end at once. Long work yields the processor to other threads.
bool GpuStream::reached(mrt_gpu_mark *mark, std::chrono::microseconds most, mrt_result &result, std::string &message) {
  const auto begun = Clock::now();
  if (mark->start == Clock::time_point()) mark->start = begun;
  const std::chrono::milliseconds limit(setting_number(Setting::timeout_ms));
  cuda::Result seen;
  while ((seen = driver().call.event_query(mark->event)) == cuda::not_ready) {
    const auto now = Clock::now();
    if (now - mark->start > limit) {
      delete mark; // its event ends with the process
      return result = expire(message), true;
    }
    if (now - begun >= most) return false;
    if (now - mark->start > std::chrono::milliseconds(1)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else std::this_thread::yield();
  }
  if (mark->issued == issued_ && sequence_.launches.empty())
    staged_ = sent_ = 0; // nothing reads the staged bytes any more
  result = seen == cuda::success ? MRT_RESULT_OK : fail(seen, message);
  if (seen == cuda::success) events_.push_back(mark->event);
  delete mark;
  return true;
}

} // namespace mrt

using namespace mrt;

namespace {

mrt_result fail(const std::string &problem, mrt_result result, char **message) {
  if (message) *message = copy_string(problem);
  return result;
}

GpuStream *enter_stream(uint32_t index, std::string &problem) {
  Gpu *gpu = enter_gpu(index, problem);
  return gpu ? GpuStream::of_thread(*gpu, problem) : nullptr;
}

// Issues the recorded launches, then calls body(stream). Reports a failure of the driver as a failure of `operation`.
template <typename Body> mrt_result on_stream(uint32_t index, const char *operation, char **message, Body body) {
  std::string problem;
  GpuStream *stream = enter_stream(index, problem);
  if (!stream) return fail(problem, MRT_RESULT_INVALID, message);
  cuda::Result result = stream->flush();
  if (result == cuda::success) result = body(*stream);
  return result == cuda::success
             ? MRT_RESULT_OK
             : fail(gpu_error(*driver().gpus[index], operation, result), gpu_result(result), message);
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

mrt_result mrt_gpu_finish(uint32_t gpu, char **message) {
  std::string problem;
  GpuStream *stream = enter_stream(gpu, problem);
  if (!stream) return fail(problem, MRT_RESULT_INVALID, message);
  const mrt_result result = stream->finish(problem);
  return result == MRT_RESULT_OK ? result : fail(problem, result, message);
}

mrt_result mrt_gpu_mark_create(uint32_t gpu, mrt_gpu_mark **mark, char **message) {
  std::string problem;
  GpuStream *stream = enter_stream(gpu, problem);
  if (!stream) return fail(problem, MRT_RESULT_INVALID, message);
  const mrt_result result = stream->mark(*mark, problem);
  return result == MRT_RESULT_OK ? result : fail(problem, result, message);
}

bool mrt_gpu_mark_reached(uint32_t gpu, mrt_gpu_mark *mark, uint32_t microseconds, mrt_result *result, char **message) {
  std::string problem;
  GpuStream *stream = enter_stream(gpu, problem);
  *result = MRT_RESULT_INVALID;
  if (stream && !stream->reached(mark, std::chrono::microseconds(microseconds), *result, problem)) return false;
  if (!problem.empty() && message) *message = copy_string(problem);
  return true;
}
