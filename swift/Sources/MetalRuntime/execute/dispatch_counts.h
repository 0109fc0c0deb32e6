// The counters of dispatches, added up by label and kernel.
#pragma once

#include "include/metal_runtime.h"

namespace mrt {

void add_counters(mrt_counters &sum, const mrt_counters &part);

// Keeps a dispatch's counters for mrt_dispatch_counts_json.
void record_counters(const char *label, const char *kernel, const mrt_counters &counters);

} // namespace mrt
