// Memory of GPUs. Shared storage is managed memory, which has one address on the processor and on the GPU and moves to
// the one that uses it; private storage is device memory; the program's memory is registered with the driver.
#include "gpu/stream.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace mrt {
namespace {

enum class Storage { managed, device, registered };

struct GpuAllocation {
  size_t length;
  Storage storage;
  uint32_t gpu;
};

struct GpuMemory {
  std::shared_mutex mutex;
  std::map<uintptr_t, GpuAllocation> allocations; // by address
  std::map<uint32_t, size_t> live;                // bytes by GPU
};

GpuMemory &gpu_memory() {
  static GpuMemory &instance = *new GpuMemory;
  return instance;
}

void add(uintptr_t address, GpuAllocation allocation) {
  GpuMemory &memory = gpu_memory();
  std::unique_lock lock(memory.mutex);
  memory.allocations[address] = allocation;
  if (allocation.storage != Storage::registered) memory.live[allocation.gpu] += allocation.length;
}

// Clears private memory on a separate stream, without waiting: streams that issue work later wait for the event
// (GpuStream::await_clears).
cuda::Result clear_private(Gpu &gpu, cuda::Address address, size_t length) {
  static std::mutex &mutex = *new std::mutex;
  static auto &streams = *new std::map<uint32_t, cuda::Stream>;
  const cuda::Functions &call = driver().call;
  std::lock_guard<std::mutex> lock(mutex);
  cuda::Stream &stream = streams[gpu.index];
  cuda::Result result = cuda::success;
  if (!stream) result = call.stream_create(&stream, cuda::stream_non_blocking);
  if (result == cuda::success && !gpu.cleared) result = call.event_create(&gpu.cleared, cuda::event_disable_timing);
  if (result == cuda::success) result = call.fill(address, 0, length, stream);
  if (result == cuda::success) result = call.event_record(gpu.cleared, stream);
  if (result == cuda::success) gpu.clears.fetch_add(1, std::memory_order_release);
  return result;
}

// The host may use shared memory immediately, so wait for the clear.
cuda::Result clear_shared(Gpu &gpu, cuda::Address address, size_t length) {
  std::string problem;
  GpuStream *stream = GpuStream::of_thread(gpu, problem);
  if (!stream) return cuda::launch_failed;
  const cuda::Result result = driver().call.fill(address, 0, length, stream->handle());
  if (result != cuda::success) return result;
  return stream->finish(problem) == MRT_RESULT_OK ? cuda::success : cuda::launch_failed;
}

} // namespace
} // namespace mrt

using namespace mrt;

// Managed memory beyond the GPU's size would migrate back and forth and can hang the GPU, so it is rejected.
void *mrt_gpu_memory_allocate(uint32_t index, size_t length, bool is_private) {
  std::string problem;
  Gpu *gpu = enter_gpu(index, problem);
  if (!gpu || length == 0 || length > gpu->memory - std::min(gpu->memory, mrt_gpu_memory_live_bytes(index)))
    return nullptr;
  cuda::Address address = 0;
  const cuda::Functions &call = driver().call;
  const cuda::Result result = is_private ? call.memory_allocate(&address, length)
                                         : call.memory_allocate_managed(&address, length, cuda::attach_global);
  if (result != cuda::success) return nullptr;
  // New memory of a Metal device contains zeros.
  const auto clear = is_private ? clear_private : clear_shared;
  if (clear(*gpu, address, length) != cuda::success) return call.memory_free(address), nullptr;
  add(uintptr_t(address), {length, is_private ? Storage::device : Storage::managed, index});
  return reinterpret_cast<void *>(address);
}

bool mrt_gpu_memory_wrap(uint32_t index, void *pointer, size_t length) {
  std::string problem;
  if (!enter_gpu(index, problem)) return false;
  const unsigned flags = cuda::host_register_portable | cuda::host_register_mapped;
  if (driver().call.host_register(pointer, length, flags) != cuda::success) return false;
  add(uintptr_t(pointer), {length, Storage::registered, index});
  return true;
}

void mrt_gpu_memory_free(void *pointer) {
  GpuMemory &memory = gpu_memory();
  GpuAllocation freed = {};
  {
    std::unique_lock lock(memory.mutex);
    auto found = memory.allocations.find(uintptr_t(pointer));
    if (found == memory.allocations.end()) return;
    freed = found->second;
    memory.allocations.erase(found);
    if (freed.storage != Storage::registered) memory.live[freed.gpu] -= freed.length;
  }
  std::string problem;
  if (!enter_gpu(freed.gpu, problem)) return; // a lost GPU's memory ends with the process
  if (freed.storage == Storage::registered) driver().call.host_unregister(pointer);
  else driver().call.memory_free(cuda::Address(uintptr_t(pointer)));
}

size_t mrt_gpu_memory_live_bytes(uint32_t gpu) {
  GpuMemory &memory = gpu_memory();
  std::shared_lock lock(memory.mutex);
  auto found = memory.live.find(gpu);
  return found == memory.live.end() ? 0 : found->second;
}
