#include "check/shadow.h"

#include "check/lazy_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h> // madvise

namespace mrt::checker {
namespace {

// A range up to this size, such as threadgroup memory, keeps its table, since each threadgroup clears and fills it.
constexpr size_t kept_range = size_t(1) << 20;

size_t page_count(size_t size) { return (size + page_bytes - 1) / page_bytes; }

} // namespace

// ---------------------------------------------------------------- pages of cells

ShadowPage *PagePool::create(PageSlot *slot, uint32_t shift) {
  const size_t size = sizeof(ShadowPage) + (page_bytes >> shift) * sizeof(Cell);
  while (bytes_ + size > limit_ && !pages_.empty()) drop(pages_[oldest_++ % pages_.size()]);
  ShadowPage *page = static_cast<ShadowPage *>(calloc(1, size));
  if (!page) abort(); // the limit is only a fraction of the machine's memory
  page->slot = slot;
  page->shift = shift;
  page->index = pages_.size();
  *slot = PageSlot(page);
  bytes_ += size;
  pages_.push_back(page);
  return page;
}

ShadowPage *PagePool::refine(ShadowPage *page, uint32_t shift) {
  PageSlot *slot = page->slot, kept(page);
  page->slot = &kept;
  ShadowPage *finer = create(slot, shift);
  if (!kept) return finer; // the limit reclaimed the page itself
  finer->touched = page->touched;
  for (size_t i = 0; i < finer->cell_count(); i++) finer->cells[i] = page->cells[i >> (page->shift - shift)];
  drop(page);
  return finer;
}

void PagePool::drop(ShadowPage *page) {
  *page->slot = {};
  bytes_ -= page->bytes();
  pages_[page->index] = pages_.back();
  pages_[page->index]->index = page->index;
  pages_.pop_back();
  free(page);
}

void PagePool::drop_all() {
  while (!pages_.empty()) drop(pages_.back());
}

void PagePool::trim(Moment floor) {
  if (bytes_ < limit_ / 2) return;
  for (size_t i = pages_.size(); i-- > 0;)
    if (pages_[i]->touched < floor) drop(pages_[i]);
}

// ---------------------------------------------------------------- ranges

void ShadowRange::reserve(uintptr_t base, size_t size) {
  reset();
  base_ = base;
  size_ = size;
  pages_ = reserve_lazily<PageSlot>(page_count(size));
  bits_ = reserve_lazily<uint8_t>(size / 8 + sizeof(uint64_t));
}

void ShadowRange::reset() {
  if (!size_) return;
  release_lazily(pages_, page_count(size_));
  release_lazily(bits_, size_ / 8 + sizeof(uint64_t));
  size_ = 0;
}

bool ShadowRange::written_bits(size_t at, size_t size) const {
  for (size_t end = at + size; at < end; at += chunk_bits) {
    const uint64_t mask = bit_mask(at, std::min(chunk_bits, end - at));
    if ((load_bits(at) & mask) != mask) return false;
  }
  return true;
}

bool ShadowRange::any_written(uintptr_t address, size_t size) const {
  for (size_t at = address - base_, end = at + size; at < end; at += chunk_bits)
    if (load_bits(at) & bit_mask(at, std::min(chunk_bits, end - at))) return true;
  return false;
}

void ShadowRange::set_many(size_t at, size_t size, bool value) {
  const size_t end = at + size, first = (at + 7) / 8, last = end / 8; // whole bytes of the table
  set_bits(at, first * 8 - at, value);
  set_bits(last * 8, end - last * 8, value);
  const uintptr_t low = (uintptr_t(bits_ + first) + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t high = uintptr_t(bits_ + last) / page_bytes * page_bytes;
  if (value || low >= high || size_ <= kept_range) {
    memset(bits_ + first, value ? 0xff : 0, last - first);
    return;
  }
  // When a large range is forgotten, its part of the table is returned to the system.
  memset(bits_ + first, 0, low - uintptr_t(bits_ + first));
  madvise(reinterpret_cast<void *>(low), high - low, MADV_DONTNEED);
  memset(reinterpret_cast<void *>(high), 0, uintptr_t(bits_ + last) - high);
}

void ShadowRange::copy_written(uintptr_t destination, uintptr_t source, size_t size) {
  const size_t to = destination - base_, from = source - base_;
  const size_t whole = to % 8 == 0 && from % 8 == 0 ? size / 8 * 8 : 0;
  memmove(bits_ + to / 8, bits_ + from / 8, whole / 8);
  for (size_t i = whole; i < size; i++) set_bits(to + i, 1, bit(from + i));
}

void ShadowRange::drop_pages(PagePool &pool, uintptr_t address, size_t size) {
  if (!size) return;
  for (PageSlot *each = slot(address), *end = slot(address + size - 1) + 1; each < end; each++)
    if (*each) pool.drop(each->page());
}

} // namespace mrt::checker
