// Parallel loops. Work is divided in the same way for any number of threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace orchard {

// The number of threads that take part, including the caller.
int thread_count();
void set_thread_count(int count);
// The number of threads that a parallel_for would use here: 1 inside the body of another one.
int threads_at_hand();
// The number of processors in the calling thread's affinity mask; by default, all threads of a process have the same
// mask.
int available_processors();

// While an instance exists, idle threads of the pool sleep instead of spinning, since another library's threads use the
// processors.
class OthersCompute {
public:
  OthersCompute();
  ~OthersCompute();
  OthersCompute(const OthersCompute &) = delete;
};

using ParallelBody = void (*)(void *context, int64_t begin, int64_t end);
void run_parallel(int64_t count, int64_t grain, ParallelBody body, void *context) noexcept;

// Calls body(begin, end) for the blocks [0, grain), [grain, 2 grain), … of [0, count), each once, on any thread, and
// returns when all are done. Blocks start in roughly ascending order. A body may wait for results of earlier blocks: no
// thread starts a block while it waits for a later one, so this can't deadlock. Blocks do not depend on the number of
// threads, and neither do results computed per block. A single block runs on the calling thread, and so does a call
// from inside a body. A block should take at least 10 µs, since waking a thread takes a few. The body must not throw.
template <class Body> void parallel_for(int64_t count, int64_t grain, Body &&body) {
  using Plain = std::remove_reference_t<Body>;
  auto call = [](void *context, int64_t begin, int64_t end) { (*static_cast<Plain *>(context))(begin, end); };
  run_parallel(count, grain, call, const_cast<void *>(static_cast<const void *>(&body)));
}

} // namespace orchard
