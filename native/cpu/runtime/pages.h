// Memory from the system, in whole pages.
#pragma once

#include <cstddef>

namespace orchard {

// Returns null if the system has no memory. Large blocks use huge pages if the system supports them.
void *map_pages(size_t bytes) noexcept;
void unmap_pages(void *pages, size_t bytes) noexcept;
size_t machine_memory() noexcept;

} // namespace orchard
