// Implements the environment variable ORCHARD_METAL_CHECK: findings are printed when they are made, and a process with
// errors ends with status 1.
#pragma once

#include "include/metal_runtime.h"

#include <string>

namespace mrt {

// Prints a new finding to standard error. Returns false if the environment does not request it.
bool announce(const mrt_finding &finding);
// Appends a line to the file named by ORCHARD_FINDINGS, if it is set.
void record(const std::string &line);

} // namespace mrt
