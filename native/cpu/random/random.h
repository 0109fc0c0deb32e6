// Random numbers by place: each element is a function of the key, the counter and its number.
#pragma once

#include "../dtypes.h"
#include "philox.h"

namespace orchard {

enum class Kind : int { bits, uniform, normal, integers };
constexpr int kind_count = 4;

// What is drawn. uniform: low, high − low, high; normal: mean, standard deviation; integers: the least value and how many there are.
struct Draw {
  PhiloxStart start;
  double parameters[3];
  uint64_t least, choices;
};

// One row of multinomial.
struct Race {
  PhiloxStart start;
  const void *weights;
  int64_t stride;
  int64_t categories;
  uint32_t row;
};

// A permutation of [0, count) by a Feistel network: see src/ops/random/randperm.ts.
constexpr int feistel_rounds = 24;
struct Permutation {
  uint32_t keys[feistel_rounds];
  int left_bits, right_bits;
  uint64_t swaps; // 1: places 0 and 1 change before
  uint64_t count;
};

// Elements that are computed together.
constexpr int64_t tile_elements = 1024;

struct Randoms {
  // Elements [begin, begin + count) of the result to `out`; `begin` is a multiple of 4, count at most tile_elements. Null where a
  // dtype has no such numbers.
  void (*draw[kind_count][dtype_count])(const Draw &draw, int64_t begin, int64_t count, void *out);
  // mask[i] = (uniform number of element begin + i) < p[i]. By the dtype of p; null where it is no float.
  void (*bernoulli[dtype_count])(const PhiloxStart &start, const void *p, int64_t begin, int64_t count, Bool *mask);
  // keys[c] = exponential number of the category, divided by its weight; NaN where that is 0. False where a weight is negative or
  // not finite. By the dtype of the weights; null where it is no float.
  bool (*race[dtype_count])(const Race &race, uint32_t sample, double *keys);
  // out[i] = place of begin + i; count at most tile_elements.
  void (*permute)(const Permutation &permutation, int64_t begin, int64_t count, int64_t *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Randoms, randoms)
