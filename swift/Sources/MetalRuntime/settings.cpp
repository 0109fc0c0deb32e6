// Placeholder until its part of the runtime lands.
#include "include/metal_runtime.h"

bool mrt_setting_set(const char *, const char *, char **) { return {}; }
char * mrt_setting_get(const char *) { return {}; }
char * mrt_settings_json(void) { return {}; }
void mrt_fault_inject(const char *, uint32_t, uint32_t, int32_t) { }
bool mrt_fault_take(const char *, int32_t *) { return {}; }
