#include "heap.h"

#include <malloc.h>
#include <stdlib.h>

// Uninitialized memory must not pass for zeros in a test.
__attribute__((constructor)) static void poison_fresh_memory(void) { setenv("ORCHARD_METAL_POISON", "1", 0); }

size_t heap_bytes(void) {
  struct mallinfo2 counts = mallinfo2();
  return counts.uordblks + counts.hblkhd;
}
