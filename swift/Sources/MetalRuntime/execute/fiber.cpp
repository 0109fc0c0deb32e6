#include "execute/fiber.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>

// A suspended stack contains the words that mrt_stack_switch pushed, lowest address first. A new stack is laid out as
// if it had been suspended just before mrt_fiber_start, which calls the function in one saved register with the
// argument in another.
#if defined(__x86_64__)

asm(R"(
.text
.p2align 4
.type mrt_stack_switch, @function
.globl mrt_stack_switch
.hidden mrt_stack_switch
mrt_stack_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
.size mrt_stack_switch, .-mrt_stack_switch

.type mrt_fiber_start, @function
.hidden mrt_fiber_start
mrt_fiber_start:
  movq %r12, %rdi
  callq *%r13
  ud2
.size mrt_fiber_start, .-mrt_fiber_start
)");
// The switch ends with `ret` instead of a jump. Threads of a kernel nearly always wait at the same place, so the
// processor's return-address predictor predicts this return and the following ones correctly. In measurements, a
// barrier takes half as long as with a jump.

namespace {
constexpr size_t saved_words = 7; // r15 r14 r13 r12 rbx rbp, then the address to resume at
constexpr size_t function_word = 2, argument_word = 3, resume_word = 6;
} // namespace

#elif defined(__aarch64__)

asm(R"(
.text
.p2align 4
.type mrt_stack_switch, %function
.globl mrt_stack_switch
.hidden mrt_stack_switch
mrt_stack_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  br x30
.size mrt_stack_switch, .-mrt_stack_switch

.type mrt_fiber_start, %function
.hidden mrt_fiber_start
mrt_fiber_start:
  mov x0, x19
  blr x20
  brk #1
.size mrt_fiber_start, .-mrt_fiber_start
)");

namespace {
constexpr size_t saved_words = 20; // x19 … x30, d8 … d15
constexpr size_t argument_word = 0, function_word = 1, resume_word = 11;
} // namespace

#else
#error "fibers are written for x86-64 and AArch64"
#endif

extern "C" void mrt_fiber_start();

namespace mrt {
namespace {

constexpr size_t slab_fibers = 32; // one SIMD-group
// Offsets the start of stacks: if all began at the same offset in a page, they would share a few cache sets.
constexpr size_t color_bytes = 128;

} // namespace

FiberPool::~FiberPool() {
  for (char *slab : slabs_) munmap(slab, slab_fibers * (guard_bytes + stack_bytes));
}

Fiber *FiberPool::take() {
  if (idle_.empty() && !grow()) return nullptr;
  Fiber *fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void FiberPool::abandon_all() {
  idle_.clear();
  for (size_t index = fibers_.size(); index-- > 0;) {
    prepare(*fibers_[index]);
    idle_.push_back(fibers_[index].get());
  }
}

void FiberPool::prepare(Fiber &fiber) {
  uintptr_t words[saved_words] = {};
  words[function_word] = uintptr_t(main_);
  words[argument_word] = uintptr_t(&fiber);
  words[resume_word] = uintptr_t(mrt_fiber_start);
  // After the words are popped, the stack pointer is a multiple of 16, as calling conventions require before a call.
  char *pointer = fiber.top - (sizeof words + 15) / 16 * 16 - 16;
  pointer += (sizeof words) % 16;
  memcpy(pointer, words, sizeof words);
  fiber.pointer = pointer;
}

bool FiberPool::grow() {
  constexpr size_t stride = guard_bytes + stack_bytes;
  void *slab = mmap(nullptr, slab_fibers * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slab == MAP_FAILED) return false;
  slabs_.push_back(static_cast<char *>(slab));
  for (size_t index = 0; index < slab_fibers; index++) {
    auto fiber = std::make_unique<Fiber>();
    fiber->guard = slabs_.back() + index * stride;
    fiber->stack = fiber->guard + guard_bytes;
    fiber->top = fiber->stack + stack_bytes - index * color_bytes;
    if (mprotect(fiber->stack, stack_bytes, PROT_READ | PROT_WRITE) != 0) return !idle_.empty();
    prepare(*fiber);
    idle_.push_back(fiber.get());
    fibers_.push_back(std::move(fiber));
  }
  return true;
}

} // namespace mrt
