// Runs the threads of a threadgroup as fibers of one operating-system thread.
//
// A thread runs until it waits or ends. A thread that cannot continue selects the next one itself, so a wait costs one
// switch. A kernel that never waits needs no switches: its fiber continues with the next thread. A SIMD-group runs as
// far as it can before the next one. When no lane can run, the first collective operation is executed for the lanes
// that wait at it. When all its lanes are waiting at a threadgroup barrier or have ended, the next SIMD-group runs.
// When that is true of all SIMD-groups, the barrier opens.
#pragma once

#include "execute/fiber.h"
#include "execute/launch.h"
#include "execute/threadgroup_memory.h"

#include <csignal>

namespace mrt {

// The first line of the cache holds all that a switch needs: the lanes' lines and stacks fill most of it.
struct alignas(64) Thread : MrtThread {
  StackPointer resume = nullptr; // where a suspended thread continues
  Fiber *fiber = nullptr;        // its suspended fiber; null before the thread starts and after it ends
  const char *barrier_file = nullptr;
  mrt_u32 barrier_line = 0, barrier_flags = 0;
  // For detecting spin-waits: how many times in a row the same value of the same atomic variable was read.
  const void *spin_address = nullptr;
  mrt_u64 spin_seen = 0, spin_count = 0;
};

// Bit masks of lanes.
struct SimdGroup {
  mrt_u32 index = 0;
  mrt_u32 lanes = 0; // lanes that exist
  mrt_u32 runnable = 0;
  mrt_u32 at_collective = 0;
  mrt_u32 at_barrier = 0; // lanes that wait at the threadgroup barrier
  mrt_u32 cursor = 0;     // position in `order` from which to search for the next runnable lane
  LaneOrder order;
  // The operation of the first lane that arrived at a collective operation, and whether another lane may wait at a
  // different one.
  const MrtCollective *first_arrival = nullptr;
  bool may_differ = false;
  // For each lane that waits at a collective operation: the operation, the return address of the call into the runtime,
  // MrtExchange::input and output.
  std::array<const MrtCollective *, MRT_SIMD_WIDTH> collectives{};
  std::array<const char *, MRT_SIMD_WIDTH> return_addresses{};
  std::array<void *, MRT_SIMD_WIDTH> inputs{}, outputs{};
};

// The reason why a threadgroup was abandoned.
struct Fault {
  mrt_result result = MRT_RESULT_OK;
  int signal = 0; // 0 if there was no signal
  const void *address = nullptr;
  const void *program_counter = nullptr;
  bool write = false;
  bool address_known = false;
  bool misaligned = false; // raised by an instruction that requires an aligned address
};

// A worker's state for running threadgroups, reused for all dispatches. Used by one operating-system thread at a time.
// Hidden, so that calls within the dylib are direct.
class __attribute__((visibility("hidden"))) GroupRunner {
public:
  GroupRunner();

  // Between begin and end, the runner belongs to a launch and is the calling thread's runner.
  bool begin(Launch &launch);
  void end();
  // Runs the threadgroup with this linear index. Returns false if it was abandoned; then the launch has failed.
  bool run(uint64_t group_index);

  // ---- called by running threads on their fibers
  void wait_at_barrier(mrt_u32 flags, const char *file, mrt_u32 line);
  void wait_at_collective(const MrtCollective *collective, const void *return_address);
  // Abandons the threadgroup; never returns. Also called by signal handlers.
  [[noreturn]] void abandon(const Fault &fault);
  // Abandons the threadgroup; `sentence` is the reason. It is moved from, since nothing on an abandoned stack is
  // destroyed.
  [[noreturn]] void fail(mrt_result result, std::string &&sentence);
  // Returns whether a weak compare-exchange fails spuriously: one in four does, selected by the seed; none with seed 0.
  bool fails_weakly();
  // Abandons the threadgroup if the dispatch has been stopped.
  void stop_if_asked();

  Thread *running() const { return running_; }
  Launch &launch() const { return *launch_; }
  Fiber *fiber() const { return fiber_; }
  const std::vector<checker::Region> &threadgroup_regions() const { return memory_.regions(); }
  // Returns whether the threadgroup is running: then a signal was raised by a kernel.
  bool in_kernel() const { return in_kernel_ != 0; }
  mrt_counters &counters() { return counters_; }

private:
  static void fiber_main(Fiber *fiber);
  void run_threads(Fiber *fiber);
  Thread *next_thread();
  void prefetch_next(const SimdGroup &simdgroup);
  void block(Thread *self);
  void start_on_fiber(Thread *thread);
  void enter(Thread *thread, Fiber *fiber);

  void shape_group(const Triple &size);
  void place_group(uint64_t group_index);
  void open_barrier();
  void begin_phase();
  void carry_out_collective(SimdGroup &simdgroup);
  Thread &thread_at(const SimdGroup &simdgroup, mrt_u32 lane) {
    return threads_[simdgroup.index * MRT_SIMD_WIDTH + lane];
  }
  std::string report_divergence();

  Launch *launch_ = nullptr;
  // The two variables that point to the running thread, the runtime's and the module's. Their addresses are stored
  // here: a compiler may keep the address of a thread_local variable in a frame, and an idle fiber's frames move with
  // the runner to other threads.
  MrtThread **runtime_current_ = nullptr, **module_current_ = nullptr;
  // In a checked dispatch, checker::running_moment's address and the moments of the threads; otherwise null.
  mrt_u32 *moment_ = nullptr;
  const mrt_u32 *moments_ = nullptr;
  FiberPool fibers_;
  ThreadgroupMemory memory_;
  mrt_counters counters_ = {};

  MrtGroup group_ = {};
  Triple group_origin_ = {}; // position of its first thread in the grid
  Triple shape_ = {};        // the shape for which threads_ and simdgroups_ are set up
  std::vector<Thread> threads_;
  std::vector<SimdGroup> simdgroups_;
  Order simdgroup_order_; // in the current phase
  mrt_u32 simdgroup_position_ = 0;
  SimdGroup *simdgroup_ = nullptr;
  uint64_t phase_seed_ = 0;
  uint64_t weak_exchanges_ = 0; // number in this threadgroup
  // The barrier at which the first thread waits, and a thread that waits at a different one.
  const Thread *first_waiting_ = nullptr;
  const Thread *diverged_ = nullptr;

  Thread *running_ = nullptr;
  Fiber *fiber_ = nullptr;
  StackPointer main_stack_ = nullptr;
  volatile sig_atomic_t in_kernel_ = 0;
  bool abandoned_ = false;
  Fault fault_;
};

// The runner of the calling thread; null outside dispatches.
extern __thread GroupRunner *current_runner __attribute__((tls_model("initial-exec")));

} // namespace mrt
