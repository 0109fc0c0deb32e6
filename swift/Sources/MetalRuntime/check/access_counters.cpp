#include "check/access_counters.h"

#include "check/lazy_memory.h"

namespace mrt::checker {

void LineCounter::reserve(uintptr_t base, size_t size) {
  reset();
  base_ = base;
  pages_ = size / 4096 + 1;
  masks_ = reserve_lazily<LineMask>(pages_);
}

void LineCounter::reset() {
  if (masks_) release_lazily(masks_, pages_);
  masks_ = nullptr;
  touched_.clear();
}

void LineCounter::mark_lines(uintptr_t first, uintptr_t last, bool read, bool written) {
  for (uintptr_t line = first; line <= last; line++) {
    const size_t page = line / 32;
    if (!masks_[page]) touched_.push_back(page);
    masks_[page] |= line_bits(line % 32 * line_bytes, read, written);
  }
}

void LineCounter::take(Traffic &traffic) {
  for (size_t page : touched_) {
    traffic.lines_read += unsigned(__builtin_popcountll(masks_[page] & 0xffffffffu));
    traffic.lines_written += unsigned(__builtin_popcountll(masks_[page] >> 32));
    masks_[page] = 0;
  }
  touched_.clear();
}

} // namespace mrt::checker
