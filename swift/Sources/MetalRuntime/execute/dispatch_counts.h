// The counters of dispatches, summed by label and kernel.
#pragma once

#include "include/metal_runtime.h"

namespace mrt {

void add_counters(mrt_counters &sum, const mrt_counters &part);

// Adds a dispatch's counters to those of mrt_dispatch_counts_json.
void record_counters(const char *label, const char *kernel, const mrt_counters &counters);

} // namespace mrt
