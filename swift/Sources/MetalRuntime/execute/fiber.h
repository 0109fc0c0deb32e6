// Fibers: separate stacks on one operating-system thread. Switching between them takes a few nanoseconds.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace mrt {

// The stack pointer of a suspended stack, on which its registers are saved.
using StackPointer = void *;

// Saves the callee-saved registers on the running stack, stores its stack pointer in `from`, and resumes the stack
// `to`. Floating-point control words are not saved: all stacks of a worker use the dispatch's, and kernels can't change
// them.
extern "C" void mrt_stack_switch(StackPointer *from, StackPointer to);

struct Fiber {
  StackPointer pointer = nullptr;
  char *guard = nullptr; // unmapped memory below the stack
  char *stack = nullptr; // lowest usable byte of the stack
  char *top = nullptr;
  void *argument = nullptr; // set by the code that switches to it

  bool overflowed_at(const void *address) const { return address >= guard && address < stack; }
};

constexpr size_t stack_bytes = 256 << 10;
// Kernels touch each page of a large frame (-fstack-clash-protection), but the runtime's functions that they call may
// not. The odd number of pages spreads the stacks over the sets of the processor's TLB.
constexpr size_t guard_bytes = (64 << 10) + (4 << 10);

// The fibers of one worker, created when first needed and reused. All run the same function, which must not return.
class FiberPool {
public:
  using Main = void (*)(Fiber *fiber);
  explicit FiberPool(Main main) : main_(main) {}
  ~FiberPool();
  FiberPool(const FiberPool &) = delete;
  FiberPool &operator=(const FiberPool &) = delete;

  Fiber *take();                                           // null if there is no memory for another stack
  void give_back(Fiber *fiber) { idle_.push_back(fiber); } // it resumes where it was suspended
  void abandon_all();                                      // discards the state of every fiber; all start again

private:
  void prepare(Fiber &fiber);
  bool grow();

  Main main_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber *> idle_;
  std::vector<char *> slabs_;
};

} // namespace mrt
