// Signals that a kernel's instructions raise, and the one that ends a kernel that runs too long.
#pragma once

#include <csignal>
#include <functional>
#include <pthread.h>

namespace mrt {

class GroupRunner;
struct Fault;

// Installs the handlers, once. Signals that do not come from a kernel are passed to the handlers that were installed
// before.
void install_fault_handlers();

// Prepares the calling thread to take such signals, and undoes that: a stack of their own (a kernel may have used up
// its stack), and none of them blocked.
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

// Makes the kernel on that thread give up, if it is one of its own instructions that runs just then; else nothing
// happens.
void interrupt_kernel(pthread_t thread);

// Starts a thread of the runtime's own. It takes no signals, which are for the host's threads, but those of a
// SignalScope.
void start_background_thread(std::function<void()> body);

// A finding and the launch's failure, from an abandoned threadgroup.
void report_fault(GroupRunner &runner, const Fault &fault);

} // namespace mrt
