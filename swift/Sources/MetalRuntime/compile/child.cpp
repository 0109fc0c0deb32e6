#include "compile/child.h"

#include <cerrno>
#include <chrono>
#include <csignal>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mrt {
namespace {

void limit_resource(int resource, uint64_t most) {
  rlimit limit = {};
  getrlimit(__rlimit_resource_t(resource), &limit);
  limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
  setrlimit(__rlimit_resource_t(resource), &limit);
}

// Runs in the child process, which shares this process's memory until it executes its program: only system calls are
// allowed.
[[noreturn]] void become(char *const *arguments, const int *files, uint64_t longest_file, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  limit_resource(RLIMIT_AS, compiler_memory);
  limit_resource(RLIMIT_FSIZE, longest_file);
  limit_resource(RLIMIT_CORE, 0);
  for (int stream = 0; stream < stream_count; stream++) dup2(files[stream], stream);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(arguments[0], arguments, environ);
  _exit(127);
}

// Returns whether the child ended within the time limit.
bool wait_for(pid_t child, int64_t limit) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(limit);
  const int file = int(syscall(SYS_pidfd_open, child, 0)); // fails before Linux 5.3; then the child is polled
  bool ended = false;
  for (int64_t left = limit; !ended && left > 0;
       left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()) {
    pollfd watched = {file, POLLIN, 0};
    siginfo_t state = {};
    if (file >= 0) poll(&watched, 1, int(left));
    else usleep(2000);
    ended = waitid(P_PID, id_t(child), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == child;
  }
  if (file >= 0) close(file);
  return ended;
}

} // namespace

ChildExit run_child(char *const *arguments, const int *files, uint64_t longest_file, int64_t limit) {
  ChildExit exit;
  const pid_t parent = getpid();
  const pid_t child = vfork();
  if (child == 0) become(arguments, files, longest_file, parent);
  if (child < 0) return exit;
  exit.timed_out = !wait_for(child, limit);
  if (exit.timed_out) kill(child, SIGKILL);
  while (waitpid(child, &exit.status, 0) < 0 && errno == EINTR) {
  }
  exit.started = exit.timed_out || !WIFEXITED(exit.status) || WEXITSTATUS(exit.status) != 127;
  return exit;
}

} // namespace mrt
