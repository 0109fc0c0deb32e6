// The stream of a command queue's thread: its work runs in order, after what the thread issued before.
#pragma once

#include "gpu/driver.h"

#include <vector>

namespace mrt {

class GpuStream {
public:
  explicit GpuStream(Gpu &gpu) : gpu_(gpu) {}
  ~GpuStream();
  GpuStream(const GpuStream &) = delete;

  // The calling thread's stream of a GPU, whose context is current; null and the reason if none can be made.
  static GpuStream *of_thread(Gpu &gpu, std::string &problem);

  cuda::Stream handle() const { return handle_; }
  // Copies bytes of the host to the GPU, where they stay until the work that is issued now has ended.
  cuda::Result stage(const std::vector<uint8_t> &bytes, cuda::Address &address);
  // Zeros that a kernel may read for an argument that a function constant disables.
  cuda::Address absent() const { return staging_ + staging_bytes; }
  // Waits for all work of the stream, at most for the time limit of the settings.
  mrt_result finish(std::string &message);

private:
  static constexpr size_t staging_bytes = size_t(4) << 20, absent_bytes = size_t(64) << 10;

  cuda::Result open();

  Gpu &gpu_;
  cuda::Stream handle_ = nullptr;
  cuda::Address staging_ = 0;
  size_t staged_ = 0;
};

} // namespace mrt
