// Memory from the system, in whole pages.
#pragma once

#include <cstddef>

namespace orchard {

// Null where the system has none. Large blocks lie on huge pages where the system has those.
void *map_pages(size_t bytes) noexcept;
void unmap_pages(void *pages, size_t bytes) noexcept;
size_t machine_memory() noexcept;

} // namespace orchard
