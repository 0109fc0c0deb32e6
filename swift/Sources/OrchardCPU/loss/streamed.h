// Rows of results that no cache would keep: their whole lines go past the caches, what is left at both ends goes through them.
#pragma once

#include "../elementwise/stream.h"

#include <algorithm>
#include <cstring>

namespace orchard {

// Bytes of a result from which on it is streamed.
constexpr int64_t streamed_bytes = 16 << 20;

inline bool is_streamed(int64_t bytes) { return bytes >= streamed_bytes && streams().copy; }

namespace ORCHARD_ISA {
inline void stream_row(const void *from, void *to, int64_t bytes) {
  int64_t over = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % stream_line);
  int64_t head = std::min(bytes, over == 0 ? 0 : stream_line - over), whole = (bytes - head) / stream_line * stream_line;
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  std::memcpy(target, source, head);
  if (whole > 0) orchard::streams().copy(source + head, target + head, whole);
  std::memcpy(target + head + whole, source + head + whole, bytes - head - whole);
}
} // namespace ORCHARD_ISA

} // namespace orchard
