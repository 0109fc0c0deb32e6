// The division of elements among threads into equal pieces.
#pragma once

#include <algorithm>
#include <cstdint>

namespace orchard {

// Divides elements into the fewest equal pieces of at most about `most` elements, and returns the size of a piece, a
// multiple of `unit`. With pieces of a fixed size, a short last one leaves other threads idle: two threads need as long
// for 40,000 elements in pieces of 32,768 as for 65,536. The number of pieces is a multiple of the number of threads,
// if each thread gets only a few: 8 threads need as long for 9 pieces as for 16. Since the pieces depend on the number
// of threads, results must not depend on the pieces.
inline int64_t equal_pieces(int64_t count, int64_t most, int64_t unit, int64_t threads) {
  constexpr int64_t few = 4;
  int64_t pieces = std::max<int64_t>(1, (count + most - 1) / most);
  if (pieces > threads && pieces < few * threads) pieces = (pieces + threads - 1) / threads * threads;
  const int64_t elements = (count + pieces - 1) / pieces;
  return std::max(unit, (elements + unit - 1) / unit * unit);
}

} // namespace orchard
