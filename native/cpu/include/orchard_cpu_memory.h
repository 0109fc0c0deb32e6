// orchard_cpu_memory.h: reuse of a released block together with its ArrayBuffer. All other functions for memory are in
// orchard_cpu.h.
#ifndef ORCHARD_CPU_MEMORY_H
#define ORCHARD_CPU_MEMORY_H

#include "orchard_cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

// Allocates a released block again, for the same number of bytes and with undefined contents. Returns 1, or 0 if its
// memory is in use or was returned to the system, or if an allocation would fail.
ORCHARD_CPU_API int32_t orchard_cpu_retake(void *context);

#ifdef __cplusplus
}
#endif

#endif
