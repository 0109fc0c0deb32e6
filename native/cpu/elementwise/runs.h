// Copies of runs of elements between dense and strided memory.
#pragma once

#include <cstdint>
#include <cstring>

namespace orchard {
namespace {

// Copies a few bytes inline, where a call of memcpy would cost more; the first and the last part overlap.
template <class Part> inline void copy_two(char *to, const char *from, int64_t bytes) {
  Part first, last;
  std::memcpy(&first, from, sizeof(Part));
  std::memcpy(&last, from + bytes - sizeof(Part), sizeof(Part));
  std::memcpy(to, &first, sizeof(Part));
  std::memcpy(to + bytes - sizeof(Part), &last, sizeof(Part));
}
inline void copy_dense(char *to, const char *from, int64_t bytes) {
  struct Part16 {
    char bytes[16];
  };
  struct Part32 {
    char bytes[32];
  };
  if (bytes > 64) std::memcpy(to, from, bytes);
  else if (bytes >= 32) copy_two<Part32>(to, from, bytes);
  else if (bytes >= 16) copy_two<Part16>(to, from, bytes);
  else if (bytes >= 8) copy_two<uint64_t>(to, from, bytes);
  else if (bytes >= 4) copy_two<uint32_t>(to, from, bytes);
  else
    for (int64_t byte = 0; byte < bytes; byte++) to[byte] = from[byte];
}

template <class T> void copy_strided(const char *source, int64_t stride, char *dense, int64_t count) {
  const T *in = reinterpret_cast<const T *>(source);
  T *out = reinterpret_cast<T *>(dense);
  if (count <= 4) { // the vectorized loop below costs more
    if (count > 3) out[3] = in[3 * stride];
    if (count > 2) out[2] = in[2 * stride];
    if (count > 1) out[1] = in[stride];
    out[0] = in[0];
    return;
  }
  if (stride == 0) {
    const T repeated = in[0]; // a loop that loads it again is not vectorized
    for (int64_t i = 0; i < count; i++) out[i] = repeated;
    return;
  }
  for (int64_t i = 0; i < count; i++) out[i] = in[i * stride];
}

// Copies `runs` runs of `length` elements: `from` has the first one, and the next one is `across` elements on.
template <int length, class T> void copy_runs_of(const T *from, int64_t across, int64_t stride, int64_t runs, T *to) {
  for (int64_t run = 0; run < runs; run++)
    for (int i = 0; i < length; i++) to[run * length + i] = from[run * across + i * stride];
}

constexpr int64_t longest_copied_run = 4;

template <class T> void copy_runs(const T *from, int64_t across, int64_t stride, int64_t runs, T *to, int64_t length) {
  switch (length) {
  case 2: return copy_runs_of<2>(from, across, stride, runs, to);
  case 3: return copy_runs_of<3>(from, across, stride, runs, to);
  default: return copy_runs_of<4>(from, across, stride, runs, to);
  }
}

// Does the same for runs of adjacent elements of any length.
template <class T> void copy_dense_runs(const T *from, int64_t across, int64_t runs, T *to, int64_t length) {
  const int64_t bytes = length * int64_t(sizeof(T));
  for (int64_t run = 0; run < runs; run++)
    copy_dense(reinterpret_cast<char *>(to + run * length), reinterpret_cast<const char *>(from + run * across), bytes);
}

template <class T> void copy_to_strided(const char *dense, char *target, int64_t stride, int64_t count) {
  const T *in = reinterpret_cast<const T *>(dense);
  T *out = reinterpret_cast<T *>(target);
  for (int64_t i = 0; i < count; i++) out[i * stride] = in[i];
}

} // namespace
} // namespace orchard
