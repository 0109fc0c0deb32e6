// The stream of a command queue's thread. Work runs in the order in which the thread issues it.
//
// Launches are recorded and issued several at a time. The bytes that their arguments point to travel together, in one
// copy before the launches that read them.
#pragma once

#include "gpu/graph.h"
#include "gpu/product.h"

#include <chrono>
#include <vector>

namespace mrt {

class GpuStream {
public:
  explicit GpuStream(Gpu &gpu) : products(gpu), gpu_(gpu) {}
  ~GpuStream();
  GpuStream(const GpuStream &) = delete;

  // The calling thread's stream of a GPU, whose context is current; null and the reason if none can be made.
  static GpuStream *of_thread(Gpu &gpu, std::string &problem);

  cuda::Stream handle() const { return handle_; }
  // Matrix products that a library computes. It issues them to `handle`, so call flush() first.
  GpuProducts products;
  // Makes room for staged bytes, each rounded up to `staged_alignment`. May issue and await the recorded launches.
  cuda::Result reserve(size_t bytes);
  // Copies bytes of the host, for which there is room. Returns their offset in the next sequence's bytes.
  cuda::Address stage(const void *bytes, size_t count);
  static constexpr size_t staged_alignment = contained_alignment;
  // Zeros that a kernel may read for an argument that a function constant disables.
  cuda::Address absent() const { return staging_ + staging_bytes; }
  // Records a launch with these parameters (gpu/sequence.h).
  cuda::Result record(GpuLaunch launch, const void *parameters, size_t count);
  // Issues the recorded launches. If one fails, the others are dropped; `fail` describes it.
  cuda::Result flush();
  // Describes the error, with the kernel's name if a launch failed.
  mrt_result fail(cuda::Result result, std::string &message);
  // Waits for all work of the stream, at most for the time limit of the settings.
  mrt_result finish(std::string &message);
  mrt_result mark(mrt_gpu_mark *&mark, std::string &message);
  bool reached(mrt_gpu_mark *mark, std::chrono::microseconds most, mrt_result &result, std::string &message);

private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t staging_bytes = size_t(4) << 20, absent_bytes = size_t(64) << 10;
  // The GPU starts on the first launches while the next are recorded.
  static constexpr size_t most_recorded = 20; // half of a command buffer of 40

  cuda::Result open();
  cuda::Result issue();
  cuda::Result launch(const GpuLaunch &launch, cuda::Address bytes);
  cuda::Result await_clears();
  mrt_result expire(std::string &message);

  Gpu &gpu_;
  cuda::Stream handle_ = nullptr;
  cuda::Address staging_ = 0;
  uint8_t *host_ = nullptr;      // pinned memory with the layout of staging_
  size_t staged_ = 0, sent_ = 0; // bytes
  GpuSequence sequence_;         // recorded and not issued; its staged bytes begin at sent_
  GpuGraphs graphs_;
  std::vector<cuda::Event> events_; // of earlier marks
  std::string failed_;              // the kernel whose launch failed
  uint64_t issued_ = 0;             // counts flushes, copies and fills
  uint64_t clears_ = 0;             // of memory that this stream has waited for
};

} // namespace mrt
