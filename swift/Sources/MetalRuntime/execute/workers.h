// The operating-system threads that run threadgroups: the thread that dispatches, and helpers from a pool.
#pragma once

#include "execute/launch.h"

namespace mrt {

// Runs all threadgroups of the launch on the calling thread and, if `workers` and the amount of work allow it, on
// helpers. Returns when all have left the launch.
void run_on_workers(Launch &launch, size_t workers);

} // namespace mrt
