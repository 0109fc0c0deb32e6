// Long sums of a small result: k is divided into parts, which threads compute separately and which are added in order.
// The parts depend on the sizes only, so results do not depend on the number of threads.
#pragma once

#include "../memory.h"
#include "all_or_failure.h"
#include "finish.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {

// Returns the number of parts of k; 1 if the product is not divided.
template <class S> int64_t parts_of(const MatrixProduct &p) {
  using namespace tuning::matmul;
  if (!std::is_floating_point_v<S> || p.operations() < least_operations_of_split || p.m * p.n > most_numbers_of_split)
    return 1;
  const int64_t depth = std::max(least_depth_of_part, int64_t(operations_of_part / 2 / double(p.m * p.n)));
  return std::clamp<int64_t>(p.k / depth, 1, most_parts);
}

// `multiply` computes a part, a product without an input.
template <class S, class Multiply> void multiply_parts(const MatrixProduct &p, int64_t parts, Multiply multiply) {
  const int64_t depth = (p.k - 1) / parts + 1, size = p.m * p.n;
  Scratch<S> sums(scratch_product({parts, size}));
  parallel_for_failing(parts, 1, [&](int64_t part, int64_t) {
    const int64_t first = part * depth;
    MatrixProduct own = p;
    own.k = std::clamp<int64_t>(p.k - first, 0, depth), own.alpha = 1, own.beta = 0, own.epilogue = nullptr;
    own.a.data = reinterpret_cast<char *>(const_cast<S *>(element_of<S>(p.a, 0, first)));
    own.b.data = reinterpret_cast<char *>(const_cast<S *>(element_of<S>(p.b, first, 0)));
    own.out = {reinterpret_cast<char *>(sums.data() + part * size), p.n, 1};
    multiply(own);
  });
  for (int64_t part = 1; part < parts; part++)
    for (int64_t i = 0; i < size; i++) sums.data()[i] += sums.data()[part * size + i];
  for (int64_t row = 0; row < p.m; row++) finish_row<S>(p, row, 0, p.n, sums.data() + row * p.n);
}

} // namespace orchard::ORCHARD_ISA
