// Work on several threads, divided the same way however many there are.
#pragma once

#include <cstdint>
#include <type_traits>

namespace orchard {

// Threads that take part, the caller included.
int thread_count();
void set_thread_count(int count);
// The same for a parallel_for that is begun here: 1 within a body of another.
int threads_at_hand();
// The processors of the calling thread's affinity mask, which a process's threads share unless it says otherwise.
int available_processors();

// While one lives, threads that wait for work sleep, and do not spin: the processors belong to a library with threads
// of its own.
class OthersCompute {
public:
  OthersCompute();
  ~OthersCompute();
  OthersCompute(const OthersCompute &) = delete;
};

using ParallelBody = void (*)(void *context, int64_t begin, int64_t end);
void run_parallel(int64_t count, int64_t grain, ParallelBody body, void *context) noexcept;

// Calls body(begin, end) for the blocks [0, grain), [grain, 2 grain), … of [0, count), each once, on any thread, and
// returns when all are done. A body may wait for what blocks before its own do, as each of them is begun by a thread
// that waits for none after it; blocks that come first are begun about first. They are always the same, so what is
// computed per block does not depend on the number of threads. One block, and what is called from within a body, runs
// on the calling thread. A grain should be worth 10 µs or more: waking a thread costs a few. The body must not throw.
template <class Body> void parallel_for(int64_t count, int64_t grain, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  auto call = [](void *context, int64_t begin, int64_t end) { (*static_cast<Plain *>(context))(begin, end); };
  run_parallel(count, grain, call, const_cast<void *>(static_cast<const void *>(&body)));
}

} // namespace orchard
