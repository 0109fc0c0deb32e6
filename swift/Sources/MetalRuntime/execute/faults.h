// Handles signals raised by a kernel's instructions, and the signal that ends a kernel that runs too long.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <pthread.h>

namespace mrt {

class GroupRunner;
struct Fault;

// Installs the handlers, once. Signals that do not come from a kernel are passed to the previously installed handlers.
void install_fault_handlers();

// Prepares the calling thread for such signals while it exists: installs a separate signal stack, since a kernel may
// have used up its stack, and unblocks signals.
class SignalScope {
public:
  explicit SignalScope(void *stack);
  ~SignalScope();
  SignalScope(const SignalScope &) = delete;
  SignalScope &operator=(const SignalScope &) = delete;

private:
  stack_t old_stack_;
  sigset_t old_mask_;
};
constexpr size_t signal_stack_bytes = 64 << 10; // AVX-512 and AMX registers take 11 KiB of it

// A thread whose kernel can be interrupted.
struct Interruptible {
  pthread_t thread;
  std::atomic<bool> *pending; // whether an interrupt is on its way
};
Interruptible interruptible_thread(); // the calling one

// Makes the kernel on that thread give up, if the thread is executing one of the kernel's instructions; otherwise does
// nothing. While an earlier interrupt is on its way, none is sent: real-time signals queue, and those of a thread that
// did not run for a while would all nest on its signal stack.
void interrupt_kernel(const Interruptible &target);

// Starts a background thread of the runtime. Except within a SignalScope, it receives no signals, which are for the
// program's threads.
void start_background_thread(std::function<void()> body);

// Reports a finding for an abandoned threadgroup, and sets the failure of the launch.
void report_fault(GroupRunner &runner, const Fault &fault);

} // namespace mrt
