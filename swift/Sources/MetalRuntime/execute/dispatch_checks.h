// The limits that a dispatch must keep on every device.
#pragma once

#include "include/metal_runtime.h"

#include <string>

namespace mrt {

// Returns an empty string if the dispatch can run, else the reason why not.
std::string dispatch_problem(const mrt_dispatch &request, const mrt_function_info &info);

} // namespace mrt
