#include "heap.h"

#include <malloc.h>

size_t heap_bytes(void) {
  struct mallinfo2 counts = mallinfo2();
  return counts.uordblks + counts.hblkhd;
}
