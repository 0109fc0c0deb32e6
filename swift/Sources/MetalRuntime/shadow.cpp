#include "shadow.h"

#include "lazy_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h> // madvise

namespace mrt {
namespace {

size_t page_count(size_t size) { return (size + page_bytes - 1) / page_bytes; }

} // namespace

// ---------------------------------------------------------------- pages of cells

ShadowPage *PagePool::create(ShadowPage **slot, uint32_t shift) {
  const size_t size = sizeof(ShadowPage) + (page_bytes >> shift) * sizeof(Cell);
  while (bytes_ + size > limit_ && !pages_.empty()) drop(pages_[oldest_++ % pages_.size()]);
  ShadowPage *page = static_cast<ShadowPage *>(calloc(1, size));
  if (!page) abort(); // the limit is a fraction of the machine's memory
  page->slot = slot;
  page->shift = shift;
  page->index = pages_.size();
  *slot = page;
  bytes_ += size;
  pages_.push_back(page);
  return page;
}

ShadowPage *PagePool::refine(ShadowPage *page, uint32_t shift) {
  ShadowPage **slot = page->slot, *kept = page;
  page->slot = &kept;
  ShadowPage *finer = create(slot, shift);
  if (!kept) return finer; // the limit took the page itself
  finer->touched = page->touched;
  for (size_t i = 0; i < finer->cell_count(); i++) finer->cells[i] = page->cells[i >> (page->shift - shift)];
  drop(page);
  return finer;
}

void PagePool::drop(ShadowPage *page) {
  *page->slot = nullptr;
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
  pages_ = reserve_lazily<ShadowPage *>(page_count(size));
  bits_ = reserve_lazily<uint8_t>(size / 8 + 1);
}

void ShadowRange::reset() {
  if (!size_) return;
  release_lazily(pages_, page_count(size_));
  release_lazily(bits_, size_ / 8 + 1);
  size_ = 0;
}

void ShadowRange::set_bit(size_t at, bool value) {
  const uint8_t mask = uint8_t(1u << at % 8);
  bits_[at / 8] = uint8_t(value ? bits_[at / 8] | mask : bits_[at / 8] & ~mask);
}

bool ShadowRange::written(uintptr_t address, size_t size) const {
  for (size_t at = address - base_, end = at + size; at < end;) {
    if (at % 8 == 0 && end - at >= 8) {
      if (bits_[at / 8] != 0xff) return false;
      at += 8;
    } else if (!bit(at++)) {
      return false;
    }
  }
  return true;
}

bool ShadowRange::any_written(uintptr_t address, size_t size) const {
  for (size_t at = address - base_, end = at + size; at < end; at++)
    if (bit(at)) return true;
  return false;
}

void ShadowRange::set_written(uintptr_t address, size_t size, bool value) {
  size_t at = address - base_;
  const size_t end = at + size;
  for (; at < end && at % 8; at++) set_bit(at, value);
  const size_t whole = (end - at) / 8;
  if (at < end && whole >= page_bytes && !value) {
    // A large range forgets: its memory goes back to the system where whole pages are free.
    uint8_t *first = bits_ + at / 8, *last = first + whole;
    uint8_t *low = reinterpret_cast<uint8_t *>((uintptr_t(first) + page_bytes - 1) / page_bytes * page_bytes);
    uint8_t *high = reinterpret_cast<uint8_t *>(uintptr_t(last) / page_bytes * page_bytes);
    memset(first, 0, size_t(low - first));
    memset(high, 0, size_t(last - high));
    if (high > low) madvise(low, size_t(high - low), MADV_DONTNEED);
  } else if (at < end) {
    memset(bits_ + at / 8, value ? 0xff : 0, whole);
  }
  for (at = std::min(end, at + whole * 8); at < end; at++) set_bit(at, value);
}

void ShadowRange::copy_written(uintptr_t destination, uintptr_t source, size_t size) {
  const size_t to = destination - base_, from = source - base_;
  if (to % 8 == 0 && from % 8 == 0 && size >= 8) {
    memmove(bits_ + to / 8, bits_ + from / 8, size / 8);
    const size_t done = size / 8 * 8;
    return size > done ? copy_written(destination + done, source + done, size - done) : void();
  }
  for (size_t i = 0; i < size; i++) {
    const size_t step = to <= from ? i : size - 1 - i; // as memmove
    set_bit(to + step, bit(from + step));
  }
}

void ShadowRange::drop_pages(PagePool &pool, uintptr_t address, size_t size) {
  for (ShadowPage **page = slot(address), **end = slot(address + size - 1) + 1; page < end; page++)
    if (*page) pool.drop(*page);
}

} // namespace mrt
