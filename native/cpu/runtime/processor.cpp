#include "processor.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace orchard {

#if defined(__linux__)

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

int current_processor() noexcept { return -1; }
void leave_processor(int) noexcept {}

#endif

} // namespace orchard
