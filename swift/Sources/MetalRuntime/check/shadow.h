// Shadow memory: the checker's state for each piece of memory.
//
// There are two tables for a range of addresses, both indexed by the distance from its start:
//  - one bit per byte: whether it has been written (kept for the life of the allocation);
//  - pages of cells: the last reader and writer (used only within one epoch, so pages may be dropped and become empty).
// A cell covers 4 bytes. The first access to a page with a finer granularity refines its cells to 2 or 1 bytes.
#pragma once

#include "check/race.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mrt::checker {

// The low 32 bits of a program counter, or for an atomic moment an index into the checker's table of atomic sites.
typedef uint32_t Site;

// Two readers are enough: a writer that conflicts with any of three or more readers conflicts with one of the two that
// are kept. (If both are of the same SIMD-group, a reader of another SIMD-group replaces the second.)
struct Cell {
  Moment writer, reader, other_reader;
  Site writer_site, reader_site, other_site;
};

constexpr size_t page_bytes = 4096;

struct ShadowPage;

// An entry of the table of pages. The lowest bits of the address hold the page's shift, so that a cell is found without
// a look at the page's head.
class PageSlot {
public:
  PageSlot() = default;
  inline explicit PageSlot(ShadowPage *page);
  ShadowPage *page() const { return reinterpret_cast<ShadowPage *>(bits_ & ~shift_mask); }
  uint32_t shift() const { return bits_ & shift_mask; }
  explicit operator bool() const { return bits_; }
  inline Cell *cells() const;
  inline Cell &cell(uintptr_t address) const;

private:
  static constexpr uintptr_t shift_mask = 3;
  uintptr_t bits_ = 0;
};

struct ShadowPage {
  PageSlot *slot; // the table's entry that points to this page
  size_t index;   // in the pool
  uint32_t shift; // a cell covers 1 << shift bytes
  Moment touched; // no moment in the page is later than this
  Cell cells[];

  size_t cell_count() const { return page_bytes >> shift; }
  size_t bytes() const { return sizeof(ShadowPage) + cell_count() * sizeof(Cell); }
};

PageSlot::PageSlot(ShadowPage *page) : bits_(uintptr_t(page) | page->shift) {}
Cell *PageSlot::cells() const { return page()->cells; }
Cell &PageSlot::cell(uintptr_t address) const { return cells()[address % page_bytes >> shift()]; }

// All pages of all ranges, with a limit on their memory.
class PagePool {
public:
  explicit PagePool(size_t limit) : limit_(limit) {}
  ShadowPage *create(PageSlot *slot, uint32_t shift);
  ShadowPage *refine(ShadowPage *page, uint32_t shift);
  void drop(ShadowPage *page);
  void drop_all();
  // When much of the limit is used, drops pages that contain no moment as recent as `floor`.
  void trim(Moment floor);
  size_t bytes() const { return bytes_; }

private:
  size_t limit_, bytes_ = 0, oldest_ = 0;
  std::vector<ShadowPage *> pages_;
};

class ShadowRange {
public:
  ShadowRange() = default;
  ~ShadowRange() { reset(); }
  ShadowRange(const ShadowRange &) = delete;
  ShadowRange &operator=(const ShadowRange &) = delete;

  void reserve(uintptr_t base, size_t size); // `base` is the start of a page
  void reset();

  uintptr_t base() const { return base_; }
  size_t size() const { return size_; }
  bool contains(uintptr_t address) const { return address - base_ < size_; }
  PageSlot *slot(uintptr_t address) const { return pages_ + (address - base_) / page_bytes; }

  bool written(uintptr_t address, size_t size) const {
    const size_t at = address - base_;
    return size <= chunk_bits ? (~load_bits(at) & bit_mask(at, size)) == 0 : written_bits(at, size);
  }
  bool any_written(uintptr_t address, size_t size) const;
  void set_written(uintptr_t address, size_t size, bool value) {
    if (size <= chunk_bits) set_bits(address - base_, size, value);
    else set_many(address - base_, size, value);
  }
  void copy_written(uintptr_t destination, uintptr_t source, size_t size);
  void drop_pages(PagePool &pool, uintptr_t address, size_t size);

private:
  // Up to this many bits, at any bit position, fit in one unaligned word.
  static constexpr size_t chunk_bits = 56;
  static uint64_t bit_mask(size_t at, size_t count) { return ((uint64_t(1) << count) - 1) << at % 8; }
  uint64_t load_bits(size_t at) const {
    uint64_t word;
    __builtin_memcpy(&word, bits_ + at / 8, sizeof word);
    return word;
  }
  void set_bits(size_t at, size_t count, bool value) {
    const uint64_t mask = bit_mask(at, count), word = load_bits(at);
    const uint64_t changed = value ? word | mask : word & ~mask;
    __builtin_memcpy(bits_ + at / 8, &changed, sizeof changed);
  }
  bool bit(size_t at) const { return load_bits(at) & bit_mask(at, 1); }
  bool written_bits(size_t at, size_t size) const;
  void set_many(size_t at, size_t size, bool value);

  uintptr_t base_ = 0;
  size_t size_ = 0;
  PageSlot *pages_ = nullptr;
  uint8_t *bits_ = nullptr;
};

} // namespace mrt::checker
