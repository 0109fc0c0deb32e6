// What ORCHARD_METAL_CHECK in the environment asks for: findings are printed as they are made, and a process with
// errors ends with status 1.
#pragma once

#include "include/metal_runtime.h"

#include <string>

namespace mrt {

// Prints a finding that was not there before on standard error. False where the environment doesn't ask for it.
bool announce(const mrt_finding &finding);
// Appends a line to the file that ORCHARD_FINDINGS names, if it does.
void record(const std::string &line);

} // namespace mrt
