#include "execute/faults.h"

#include "check/checker.h"
#include "support/memory.h"
#include "execute/report.h"
#include "execute/scheduler.h"
#include "check/source_lines.h"

#include <cstdio>
#include <mutex>
#include <thread>
#include <ucontext.h>

namespace mrt {
namespace {

constexpr int synchronous_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
struct sigaction previous[NSIG];
int interrupt_signal = 0;
thread_local std::atomic<bool> interrupt_pending = false;

// ---------------------------------------------------------------- what the processor reports about a signal
#if defined(__x86_64__)

const void *program_counter(const ucontext_t *context) {
  return reinterpret_cast<const void *>(context->uc_mcontext.gregs[REG_RIP]);
}

bool was_write(const ucontext_t *context) { return context->uc_mcontext.gregs[REG_ERR] & 2; }

// In kernels, only these move instructions require an aligned address. The processor reports neither the address nor
// the reason of the fault.
bool is_aligned_move(const ucontext_t *context) {
  auto *code = reinterpret_cast<const uint8_t *>(context->uc_mcontext.gregs[REG_RIP]);
  bool short_prefix = code[0] == 0xc5, long_prefix = code[0] == 0xc4 && (code[1] & 0x1f) == 1; // VEX prefix of map 0F
  if (!short_prefix && !long_prefix) return false;
  uint8_t kind = code[long_prefix ? 2 : 1] & 3, opcode = code[long_prefix ? 3 : 2];
  bool floats = (opcode == 0x28 || opcode == 0x29) && kind < 2,
       integers = (opcode == 0x6f || opcode == 0x7f) && kind == 1;
  return floats || integers; // movaps, movapd; movdqa
}

// Integer division by zero, and of the smallest integer by -1, traps on x86. On a GPU only the result is unspecified,
// so the instruction is skipped here. The quotient is the dividend, which is already in its register, and the remainder
// is 0 (correct for the smallest integer divided by -1).
bool step_over_division(ucontext_t *context) {
  auto &registers = context->uc_mcontext.gregs;
  auto *code = reinterpret_cast<const uint8_t *>(registers[REG_RIP]);
  const uint8_t *at = code;
  while (*at == 0x66 || *at == 0x67 || *at == 0x2e || *at == 0x3e || *at == 0xf2 || *at == 0xf3) at++;
  if ((*at & 0xf0) == 0x40) at++; // REX
  bool bytes = *at == 0xf6;
  if (!bytes && *at != 0xf7) return false;
  uint8_t form = at[1], mode = form >> 6, base = form & 7;
  if ((form >> 3 & 7) < 6) return false; // neither div nor idiv
  at += 2;
  if (mode != 3 && base == 4) { // a byte with index and base follows
    if (mode == 0 && (*at & 7) == 5) at += 4;
    at++;
  } else if (mode == 0 && base == 5) at += 4; // relative to the instruction
  if (mode == 1) at += 1;
  if (mode == 2) at += 4;
  if (bytes) registers[REG_RAX] &= ~0xff00ll;
  else registers[REG_RDX] = 0;
  registers[REG_RIP] += at - code;
  return true;
}

#elif defined(__aarch64__)

const void *program_counter(const ucontext_t *context) {
  return reinterpret_cast<const void *>(context->uc_mcontext.pc);
}

// The syndrome is in a record after the registers (ESR_MAGIC); for a data abort, bit 6 means "write".
bool was_write(const ucontext_t *context) {
  auto *record = reinterpret_cast<const _aarch64_ctx *>(context->uc_mcontext.__reserved);
  for (; record->magic;
       record = reinterpret_cast<const _aarch64_ctx *>(reinterpret_cast<const char *>(record) + record->size))
    if (record->magic == ESR_MAGIC) return reinterpret_cast<const esr_context *>(record)->esr >> 6 & 1;
  return false;
}

bool is_aligned_move(const ucontext_t *) { return false; } // accesses of kernels need no alignment
bool step_over_division(ucontext_t *) { return false; }    // division by zero gives 0 without a trap

#endif

void pass_on(int signal, siginfo_t *info, void *context) {
  const struct sigaction &old = previous[signal];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
  if (old.sa_handler == SIG_IGN && info->si_code <= 0) return; // sent by another process
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  // Restores the default action and runs the same instruction again.
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  sigaction(signal, &fallback, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void on_synchronous_signal(int signal, siginfo_t *info, void *raw) {
  GroupRunner *runner = current_runner;
  bool sent = info->si_code <= 0; // by kill or the like, not by an instruction
  if (!runner || !runner->in_kernel() || sent) return pass_on(signal, info, raw);
  auto *context = static_cast<ucontext_t *>(raw);
  if (signal == SIGFPE && step_over_division(context)) return;
  Fault fault;
  fault.signal = signal;
  fault.program_counter = program_counter(context);
  fault.result = MRT_RESULT_INVALID;
  if (signal == SIGSEGV || signal == SIGBUS) {
    fault.address = info->si_addr;
    // For an address that is not canonical, the processor reports no address, and the operating system sets SI_KERNEL.
    fault.address_known = info->si_code != SI_KERNEL;
    fault.misaligned = !fault.address_known && is_aligned_move(context);
    fault.write = was_write(context);
    bool overflow = fault.address_known && runner->fiber()->overflowed_at(fault.address);
    fault.result = overflow ? MRT_RESULT_STACK_OVERFLOW : MRT_RESULT_PAGE_FAULT;
  }
  runner->abandon(fault);
}

// Returns whether a kernel that has timed out can be abandoned here: only at the kernel's instructions, since the
// runtime or the C library may hold a lock.
bool can_leave(GroupRunner *runner, const void *counter) {
  if (!runner || !runner->in_kernel() || !runner->launch().timed_out) return false;
  return counter >= runner->launch().image_begin && counter < runner->launch().image_end;
}

void on_interrupt(int, siginfo_t *, void *raw) {
  GroupRunner *runner = current_runner;
  const void *counter = program_counter(static_cast<ucontext_t *>(raw));
  interrupt_pending = false;
  if (!can_leave(runner, counter)) return;
  Fault fault;
  fault.result = MRT_RESULT_TIMEOUT;
  fault.program_counter = counter;
  runner->abandon(fault);
}

void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigaction(signal, &action, &previous[signal]);
}

// Returns an unused real-time signal.
int free_signal() {
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; signal--) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL)
      return signal;
  }
  return SIGRTMAX;
}

sigset_t kernel_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : synchronous_signals) sigaddset(&set, signal);
  sigaddset(&set, interrupt_signal);
  return set;
}

} // namespace

void install_fault_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The handlers block no signals (SA_NODEFER), since they may be left by switching stacks.
    for (int signal : synchronous_signals) install(signal, on_synchronous_signal, SA_NODEFER);
    interrupt_signal = free_signal();
    install(interrupt_signal, on_interrupt, SA_NODEFER | SA_RESTART);
  });
}

SignalScope::SignalScope(void *stack) {
  stack_t own = {};
  own.ss_sp = stack;
  own.ss_size = signal_stack_bytes;
  sigaltstack(&own, &old_stack_);
  sigset_t signals = kernel_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, &old_mask_);
}

SignalScope::~SignalScope() {
  sigaltstack(&old_stack_, nullptr);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

Interruptible interruptible_thread() { return {pthread_self(), &interrupt_pending}; }

void interrupt_kernel(const Interruptible &target) {
  if (!target.pending->exchange(true)) pthread_kill(target.thread, interrupt_signal);
}

void start_background_thread(std::function<void()> body) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); // a new thread inherits its creator's mask
  std::thread(std::move(body)).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

namespace {

// Returns the nearest argument with an index, to which an invalid address presumably belongs; null if there is none.
const Allocation *nearest_argument(const Launch &launch, const Fault &fault) {
  const uintptr_t at = uintptr_t(fault.address);
  const MrtEntry &entry = *launch.code->entry;
  const Allocation *nearest = nullptr;
  size_t least = SIZE_MAX;
  for (mrt_u32 i = 0; i < entry.parameter_count; i++) {
    const MrtParameter &parameter = entry.parameters[i];
    if (parameter.kind != MRT_PARAMETER_BUFFER || parameter.is_reference || (fault.write && parameter.is_const))
      continue;
    const void *bound = launch.request->buffers[parameter.index].address;
    const Allocation *candidate = bound ? find_allocation(bound) : nullptr;
    if (!candidate) continue;
    const uintptr_t begin = candidate->address, end = begin + candidate->length;
    const size_t away = at < begin ? begin - at : at >= end ? at - end : 0;
    if (away >= least) continue;
    nearest = candidate;
    least = away;
  }
  return nearest;
}

// Returns the buffer that is or was at this address: the pointer may be stale, or the index far out of range.
const Allocation *named_buffer_at(const void *address) {
  size_t away = 0;
  const Allocation *nearest = nearest_allocation(address, &away);
  const std::string label = nearest && away == 0 ? allocation_label(nearest) : std::string();
  return label.empty() || is_label_of_inline_bytes(label) ? nullptr : nearest;
}

std::string describe_place(const Launch &launch, const Fault &fault) {
  size_t away;
  const Allocation *argument = nearest_argument(launch, fault), *there = named_buffer_at(fault.address);
  if (!argument && !there) there = nearest_allocation(fault.address, &away);
  if (!argument && !there) return "no buffer is allocated";
  std::string text = argument ? describe_address(fault.address, argument) : std::string();
  if (there && there != argument) text += (text.empty() ? "" : ": ") + describe_address(fault.address, there);
  return text;
}

std::string describe_target(const Launch &launch, const Fault &fault) {
  if (!fault.address_known) return "an address that no memory can have";
  constexpr uintptr_t null_page = 64 << 10;
  char address[40];
  snprintf(address, sizeof address, "address %p, ", fault.address);
  if (uintptr_t(fault.address) < null_page)
    return std::string(address) +
           "through a null pointer: a buffer that is not bound, or a threadgroup argument without a length";
  if (is_absent_argument(uintptr_t(fault.address)))
    return std::string(address) + "an argument that its function constant leaves out";
  return address + describe_place(launch, fault);
}

std::string describe_access(const Launch &launch, const Fault &fault) {
  if (fault.misaligned)
    return " used a vector through a misaligned pointer; packed types need no more alignment than their elements";
  return (fault.write ? " wrote to " : " read from ") + describe_target(launch, fault);
}

} // namespace

void report_fault(GroupRunner &runner, const Fault &raised) {
  Launch &launch = runner.launch();
  Fault fault = raised;
  if (launch.checked) fault.address = checker::original_address(fault.address);
  const Thread &thread = *runner.running();
  // Only the instrumented build has a line table, which maps a call's return address to its line.
  SourcePosition position;
  if (launch.checked && fault.program_counter)
    position = source_position(static_cast<const char *>(fault.program_counter) + 1);
  const char *file = position.line ? position.file.c_str() : nullptr;
  Report report = {"page-fault", launch.kernel(), file, position.line, &thread};
  std::string thread_name = describe_thread(thread) + (file ? " at " + describe_line(file, position.line) : "");
  if (fault.result == MRT_RESULT_PAGE_FAULT) {
    if (fault.misaligned) report.kind = "misaligned";
    launch.fail(fault.result, add_report(report, thread_name + describe_access(launch, fault)));
  } else if (fault.result == MRT_RESULT_STACK_OVERFLOW) {
    report.kind = "stack-overflow";
    launch.fail(fault.result,
                add_report(report, thread_name + " used up its stack of " + std::to_string(stack_bytes >> 10) +
                                       " KiB: thread arrays are too large, or a function calls itself without end"));
  } else if (fault.result == MRT_RESULT_TIMEOUT) {
    report.kind = "timeout";
    launch.fail(fault.result,
                add_report(report, "the dispatch ran longer than " + std::to_string(launch.timeout_ms) +
                                       " ms (setting 'timeout_ms'); it was ended while " + thread_name + " ran"));
  } else if (fault.result == MRT_RESULT_INVALID && launch.checked && fault.signal == SIGILL) {
    report.kind = "out-of-bounds"; // -fsanitize=local-bounds; usually after a report by -fsanitize=array-bounds
    if (launch.detect) checker::hand_over();
    launch.fail(fault.result,
                add_report(report, thread_name + " left the bounds of a variable of its own; the dispatch was ended"));
  } else if (fault.result == MRT_RESULT_INVALID) {
    launch.fail(fault.result, std::string("kernel '") + launch.kernel() + "': " + thread_name + " trapped (signal " +
                                  std::to_string(fault.signal) + ")");
  }
}

} // namespace mrt
