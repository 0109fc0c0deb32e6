// Rows of results that are larger than any cache: whole cache lines are written with nontemporal stores, the remainders
// at both ends with normal stores.
#pragma once

#include "dtypes.h"
#include "elementwise/stream.h"
#include "tuning.h"

#include <algorithm>
#include <cstring>

namespace orchard {

inline bool is_streamed(int64_t bytes) { return bytes >= tuning::streams::streamed_bytes && streams().copy; }

namespace ORCHARD_ISA {

inline void stream_row(const void *from, void *to, int64_t bytes) {
  int64_t over = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % stream_line);
  int64_t head = std::min(bytes, over == 0 ? 0 : stream_line - over),
          whole = (bytes - head) / stream_line * stream_line;
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  std::memcpy(target, source, head);
  if (whole > 0) orchard::streams().copy(source + head, target + head, whole);
  std::memcpy(target + head + whole, source + head + whole, bytes - head - whole);
}

// Writes adjacent results to their destination, converted to T; `narrowed` is a buffer of the same length.
template <class T>
void write_results(const Compute<T> *computed, T *narrowed, T *destination, int64_t count, bool is_streamed) {
  if (!is_streamed) return narrow(computed, destination, count);
  if constexpr (std::is_same_v<T, Compute<T>>) stream_row(computed, destination, count * sizeof(T));
  else {
    narrow(computed, narrowed, count);
    stream_row(narrowed, destination, count * sizeof(T));
  }
}

// The array in which up to `most` adjacent results of type T are computed: the destination if possible, else a buffer.
template <class T, int64_t most> class ResultRow {
public:
  using C = Compute<T>;

  explicit ResultRow(bool is_streamed) : is_streamed_(is_streamed) {}

  // Returns where to compute the results for a destination.
  C *begin(T *destination) {
    if constexpr (std::is_same_v<T, C>)
      if (!is_streamed_) return destination;
    return computed_;
  }

  // Writes the `count` results that were computed at `begin()`'s address to the destination.
  void end(T *destination, int64_t count) {
    if (!std::is_same_v<T, C> || is_streamed_) write_results(computed_, narrowed_, destination, count, is_streamed_);
  }

  // Must be called before other threads read results written with nontemporal stores.
  void finish() {
    if (is_streamed_) orchard::streams().finish();
  }

private:
  bool is_streamed_;
  alignas(64) C computed_[most];
  alignas(64) T narrowed_[std::is_same_v<T, C> ? 1 : most];
};

} // namespace ORCHARD_ISA
} // namespace orchard
