#include "pages.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace orchard {
namespace {

constexpr size_t huge_page = size_t(2) << 20;

size_t whole_pages(size_t bytes) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void *map(size_t bytes) noexcept {
  void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

#if defined(MADV_HUGEPAGE)
// Maps one huge page more than needed, and unmaps the parts outside the aligned range.
void *map_huge(size_t bytes) noexcept {
  char *pages = static_cast<char *>(map(bytes + huge_page));
  if (!pages) return nullptr;
  size_t before = (huge_page - reinterpret_cast<uintptr_t>(pages) % huge_page) % huge_page;
  if (before > 0) munmap(pages, before);
  munmap(pages + before + bytes, huge_page - before);
  madvise(pages + before, bytes, MADV_HUGEPAGE);
  return pages + before;
}
#endif

} // namespace

void *map_pages(size_t bytes) noexcept {
  bytes = whole_pages(bytes);
#if defined(MADV_HUGEPAGE)
  if (bytes >= 2 * huge_page) return map_huge(bytes);
#endif
  return map(bytes);
}

void unmap_pages(void *pages, size_t bytes) noexcept { munmap(pages, whole_pages(bytes)); }

size_t machine_memory() noexcept {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace orchard
