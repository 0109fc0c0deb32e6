// Computes in parallel, forks, and computes in parallel in both processes: a child has none of its parent's threads.
#include "orchard_cpu.h"

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using Run = decltype(&orchard_cpu_run3);

// Numbers from orchard_cpu_tables: a function, and two dtypes.
struct Ordinals {
  int32_t convert;
  double float32, float64;
};

// Calls the function "convert" with its block: from, to, offsets, count, and the bytes of both operands.
bool computes(Run run, const Ordinals &ordinals) {
  const int count = 1 << 20;
  std::vector<float> in(count, 1.5f);
  std::vector<double> out(count, 0);
  const double block[] = {ordinals.float32, ordinals.float64, 0, 0, count, 4.0 * count, 8.0 * count};
  if (run(ordinals.convert, block, sizeof block, in.data(), out.data(), nullptr) != ORCHARD_CPU_OK) return false;
  for (double value : out)
    if (value != 1.5) return false;
  return true;
}

// Returns the number of threads of the process; 0 if the system does not report it.
long thread_count() {
  DIR *folder = opendir("/proc/self/task");
  if (!folder) return 0;
  long count = -2; // "." and ".."
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

} // namespace

int main(int, char **words) {
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) return std::puts(dlerror()), 2;
  auto configure = reinterpret_cast<decltype(&orchard_cpu_configure)>(dlsym(library, "orchard_cpu_configure"));
  auto run = reinterpret_cast<Run>(dlsym(library, "orchard_cpu_run3"));
  const Ordinals ordinals{std::atoi(words[2]), std::atof(words[3]), std::atof(words[4])};
  configure("threads", "4");
  if (!computes(run, ordinals)) return 3;
  pid_t child = fork();
  if (child == 0) {
    if (!computes(run, ordinals)) return 4;
    return thread_count() == 1 ? 7 : 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) return 5;
  if (WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  return computes(run, ordinals) ? 0 : 6;
}
