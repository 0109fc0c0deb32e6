#pragma once
#include <stddef.h>

/// Bytes that the process has allocated and not freed, over all of malloc's arenas. This is exact, while resident
/// memory also counts what malloc and the system keep for later.
size_t heap_bytes(void);
