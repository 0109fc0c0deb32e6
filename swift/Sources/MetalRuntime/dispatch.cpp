// Placeholder until its part of the runtime lands.
#include "include/metal_runtime.h"

void mrt_string_free(char *) { }
uint64_t mrt_epoch_next(void) { return {}; }
mrt_result mrt_dispatch_run(const mrt_dispatch *, mrt_counters *, char **) { return {}; }
