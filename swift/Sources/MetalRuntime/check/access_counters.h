// Memory traffic of a dispatch: bytes, and the distinct 128-byte cache lines that it accessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mrt::checker {

struct Traffic {
  uint64_t bytes_read = 0, bytes_written = 0, constant_bytes_read = 0, lines_read = 0, lines_written = 0;
};

// A page of 4096 bytes has 32 lines; its mask has 32 bits for lines read and 32 for lines written.
typedef uint64_t LineMask;
constexpr size_t line_bytes = 128;

inline LineMask line_bits(uintptr_t offset_in_page, bool read, bool written) {
  const LineMask bit = LineMask(1) << offset_in_page / line_bytes;
  return bit * (LineMask(read) | LineMask(written) << 32);
}

// The lines of one range of memory, counted since the last call of `take`.
class LineCounter {
public:
  LineCounter() = default;
  ~LineCounter() { reset(); }
  LineCounter(const LineCounter &) = delete;
  LineCounter &operator=(const LineCounter &) = delete;

  void reserve(uintptr_t base, size_t size);
  void reset();
  void mark(uintptr_t address, uint64_t size, bool read, bool written) {
    const uintptr_t first = address - base_, last = first + size - 1;
    const LineMask bits = line_bits(first % 4096, read, written);
    // Most accesses touch a line that is already counted.
    if (first / line_bytes != last / line_bytes || (masks_[first / 4096] & bits) != bits)
      mark_lines(first / line_bytes, last / line_bytes, read, written);
  }
  void take(Traffic &traffic);

private:
  void mark_lines(uintptr_t first, uintptr_t last, bool read, bool written);

  uintptr_t base_ = 0;
  size_t pages_ = 0;
  LineMask *masks_ = nullptr;
  std::vector<size_t> touched_;
};

} // namespace mrt::checker
