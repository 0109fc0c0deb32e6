#include "processor.h"

#include "../parallel.h"

#include <algorithm>
#include <thread>
#if defined(__linux__)
#include <sched.h>
#endif

namespace orchard {
namespace {

int machine_processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

} // namespace

#if defined(__linux__)

int available_processors() {
  cpu_set_t allowed; // holds 1024 processors: the call fails on a larger machine
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return machine_processors();
  return std::max(1, CPU_COUNT(&allowed));
}

int current_processor() noexcept { return sched_getcpu(); }

void leave_processor(int processor) noexcept {
  cpu_set_t allowed;
  if (processor < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0) return;
  sched_setaffinity(0, sizeof(others), &others);
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

#else

int available_processors() { return machine_processors(); }
int current_processor() noexcept { return -1; }
void leave_processor(int) noexcept {}

#endif

} // namespace orchard
