// Parallel loops. Work is divided the same way for any number of threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace orchard {

// Number of threads that take part, the caller included.
int thread_count();
void set_thread_count(int count);
// The same for a parallel_for that starts here: 1 inside another one's body.
int threads_at_hand();
// Number of processors in the calling thread's affinity mask, which by default all threads of a process share.
int available_processors();

// While one exists, idle threads sleep instead of spinning: the processors are in use by another library's threads.
class OthersCompute {
public:
  OthersCompute();
  ~OthersCompute();
  OthersCompute(const OthersCompute &) = delete;
};

using ParallelBody = void (*)(void *context, int64_t begin, int64_t end);
void run_parallel(int64_t count, int64_t grain, ParallelBody body, void *context) noexcept;

// Calls body(begin, end) for the blocks [0, grain), [grain, 2 grain), … of [0, count), each once, on any thread, and
// returns when all are done. A body may wait for results of earlier blocks, because a block is started only by a thread
// that waits for no later one; blocks start in about ascending order. The blocks are always the same, so what is
// computed per block does not depend on the number of threads. A single block, or a call from inside a body, runs on
// the calling thread. A grain should be worth 10 µs or more: waking a thread costs a few. The body must not throw.
template <class Body> void parallel_for(int64_t count, int64_t grain, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  auto call = [](void *context, int64_t begin, int64_t end) { (*static_cast<Plain *>(context))(begin, end); };
  run_parallel(count, grain, call, const_cast<void *>(static_cast<const void *>(&body)));
}

} // namespace orchard
