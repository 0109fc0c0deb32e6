// Placeholder until its part of the runtime lands.
#include "include/metal_runtime.h"

void mrt_finding_add(const mrt_finding *) { }
size_t mrt_findings_count(void) { return {}; }
char * mrt_findings_json(bool) { return {}; }
void mrt_misuse(const char *) { }
void mrt_misuse_set_handler(mrt_misuse_handler, void *) { }
