// Placeholder until its part of the runtime lands.
#include "include/metal_runtime.h"

void * mrt_memory_allocate(size_t, const char *) { return {}; }
void * mrt_memory_wrap(void *, size_t, const char *) { return {}; }
void mrt_memory_free(void *) { }
void mrt_memory_set_label(void *, const char *) { }
void mrt_memory_mark_written(void *, size_t) { }
void mrt_memory_mark_copied(void *, const void *, size_t) { }
void mrt_memory_mark_fresh(void *, size_t) { }
size_t mrt_memory_live_bytes(void) { return {}; }
