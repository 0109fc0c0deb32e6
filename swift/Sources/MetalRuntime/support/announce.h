// Implements ORCHARD_METAL_CHECK in the environment: findings are printed as they are made, and a process with errors
// ends with status 1.
#pragma once

#include "include/metal_runtime.h"

#include <string>

namespace mrt {

// Prints a new finding on standard error. Returns false if the environment doesn't ask for it.
bool announce(const mrt_finding &finding);
// Appends a line to the file that ORCHARD_FINDINGS names, if it does.
void record(const std::string &line);

} // namespace mrt
