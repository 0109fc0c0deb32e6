// Stateless random numbers: each element is a function of the key, the counter and its index.
#pragma once

#include "../../.build/generated/permutation_block.h"

// The results of all functions are dense. Each distribution uses some of the parameters; the others are 0.
// - low, scale, high: of uniform numbers; scale = high − low
// - mean, deviation: of normal numbers
// - least, choices: of integers: the smallest one, and their number
#include "../../.build/generated/random_block.h"

// The nest is over p, which has the shape of the result.
#include "../../.build/generated/bernoulli_block.h"

// Only the last word of the counter is used.
// - dtype: of the weights
// - row_stride, stride: of the weights
#include "../../.build/generated/multinomial_block.h"

#include "../nest.h"
#include "../tuning.h"
#include "philox.h"

namespace orchard {

// The number of rounds of a Feistel network; see src/random/permutation.ts.
constexpr int feistel_rounds = std::extent_v<decltype(PermutationBlock::keys)>;

// The parameters of a draw from a distribution, as in the block.
struct Draw {
  PhiloxStart start;
  double low, scale, high;
  double mean, deviation;
  uint64_t least, choices;
};

// The parameters for one row of multinomial.
struct Race {
  PhiloxStart start;
  const void *weights;
  int64_t stride;
  int64_t categories;
  uint32_t row;
};

// A permutation of [0, count).
struct Permutation {
  uint32_t keys[feistel_rounds];
  int left_bits, right_bits;
  uint64_t swaps; // 1 if elements 0 and 1 are swapped first
  uint64_t count;
};

using tuning::random::tile_elements;

struct Randoms {
  // Writes elements [begin, begin + count) of the result to `out`. `begin` is a multiple of 4, and `count` is at most
  // tile_elements. Null if the distribution does not support the dtype.
  void (*draw[static_cast<int>(Distribution::count)][dtype_count])(const Draw &draw, int64_t begin, int64_t count,
                                                                   void *out);
  // mask[i] = (uniform number of element begin + i) < p[i]. Indexed by the dtype of p; null for non-float dtypes.
  void (*bernoulli[dtype_count])(const PhiloxStart &start, const void *p, int64_t begin, int64_t count, Bool *mask);
  // keys[c] = the category's exponential random number divided by its weight; NaN if the weight is 0. Returns false if
  // a weight is negative or not finite. Indexed by the dtype of the weights; null for non-float dtypes.
  bool (*race[dtype_count])(const Race &race, uint32_t sample, double *keys);
  // out[i] = the number to which the permutation maps begin + i; `count` is at most tile_elements.
  void (*permute)(const Permutation &permutation, int64_t begin, int64_t count, int64_t *out);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Randoms, randoms)
