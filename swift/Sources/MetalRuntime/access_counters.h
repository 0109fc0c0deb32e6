// Traffic of a dispatch: bytes, and the distinct cache lines of 128 bytes that it touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mrt {

struct Traffic {
  uint64_t bytes_read = 0, bytes_written = 0, lines_read = 0, lines_written = 0;
};

// A page of 4096 bytes has 32 lines; its mask has 32 bits for lines read and 32 for lines written.
typedef uint64_t LineMask;
constexpr size_t line_bytes = 128;

inline LineMask line_bits(uintptr_t offset_in_page, bool read, bool written) {
  const LineMask bit = LineMask(1) << offset_in_page / line_bytes;
  return (read ? bit : 0) | (written ? bit << 32 : 0);
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
  const LineMask &page(uintptr_t address) const { return masks_[(address - base_) / 4096]; }
  void mark(uintptr_t address, uint64_t size, bool read, bool written);
  void take(Traffic &traffic);

private:
  uintptr_t base_ = 0;
  size_t pages_ = 0;
  LineMask *masks_ = nullptr;
  std::vector<size_t> touched_;
};

} // namespace mrt
