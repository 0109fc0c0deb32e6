// The functions "random", "bernoulli", "multinomial" and "permutation".
#include "random.h"

#include "../conversion/conversion.h"
#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "../tuning.h"

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace orchard;

namespace {

using tuning::random::task_tiles;

ORCHARD_EXPORT_NAMES(Distribution)

PhiloxStart start_of(const Word (&key)[2], const Word (&counter)[4]) {
  PhiloxStart start;
  for (int i = 0; i < 2; i++) start.key[i] = key[i];
  for (int i = 0; i < 4; i++) start.counter[i] = counter[i];
  return start;
}

template <class Function> Function *checked(Function *function, const char *what, DType dtype) {
  if (!function)
    fail(ORCHARD_CPU_UNSUPPORTED,
         std::string(what) + " has no numbers of dtype " + dtype_names[static_cast<int>(dtype)]);
  return function;
}

// Calls body(begin, count) for each tile of the elements.
template <class Body> void for_tiles(int64_t count, Body &&body) {
  int64_t tiles = (count + tile_elements - 1) / tile_elements;
  parallel_for(tiles, task_tiles, [&](int64_t first, int64_t last) {
    for (int64_t tile = first; tile < last; tile++) {
      int64_t begin = tile * tile_elements;
      body(begin, std::min(tile_elements, count - begin));
    }
  });
}

bool is_dense(const Nest<1> &nest) { return nest.rank == 1 && nest.strides[0][0] == 1; }

// Copies elements of `bytes` bytes from strided to adjacent memory.
void gather(const Nest<1> &nest, const char *from, int64_t begin, int64_t count, int64_t bytes, char *to) {
  int64_t stride = nest.run_stride(0);
  for_each_run(nest, begin, begin + count, [&](const int64_t (&offsets)[1], int64_t first, int64_t length) {
    for (int64_t i = 0; i < length; i++)
      std::memcpy(to + (first - begin + i) * bytes, from + (offsets[0] + i * stride) * bytes,
                  static_cast<size_t>(bytes));
  });
}

// Returns the index of the smallest key, the first of equal ones; −1 if all keys are NaN.
int64_t winner(const double *keys, int64_t count) {
  int64_t best = -1;
  for (int64_t c = 0; c < count; c++)
    if (keys[c] == keys[c] && (best < 0 || keys[c] < keys[best])) best = c;
  return best;
}

// Writes the indices of the smallest keys in ascending order of the keys, and −1 once there are no more.
void winners(const double *keys, int64_t count, int64_t *order, int64_t samples, int64_t *out) {
  int64_t *end = order;
  for (int64_t c = 0; c < count; c++)
    if (keys[c] == keys[c]) *end++ = c;
  int64_t found = std::min<int64_t>(samples, end - order);
  std::partial_sort(order, order + found, end,
                    [&](int64_t a, int64_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  std::copy(order, order + found, out);
  std::fill(out + found, out + samples, int64_t(-1));
}

void random(const RandomBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Distribution distribution = block.distribution;
  const Draw draw{start_of(block.key, block.counter),
                  block.low,
                  block.scale,
                  block.high,
                  block.mean,
                  block.deviation,
                  block.least,
                  block.choices};
  const int64_t count = block.count;
  char *out = operands.result(0, dtype, block.offset, Extent(count));
  auto *row =
      checked(randoms().draw[static_cast<int>(distribution)][static_cast<int>(dtype)], "this distribution", dtype);
  for_tiles(count, [&](int64_t begin, int64_t length) { row(draw, begin, length, element(out, dtype, begin)); });
}

// out[i] = whether the uniform number of element i is less than p[i].
void bernoulli(const BernoulliBlock &block, Operands operands) {
  const DType from = block.p_dtype, dtype = block.dtype;
  const PhiloxStart start = start_of(block.key, block.counter);
  const Nest<1> nest = block.nest;
  const char *p = operands.input(0, from, block.p_offset, nest.extent(0));
  char *out = operands.result(1, dtype, block.offset, Extent(nest.count()));
  auto *row = checked(randoms().bernoulli[static_cast<int>(from)], "bernoulli", from);
  ConvertRow convert = conversions().rows[static_cast<int>(DType::boolean)][static_cast<int>(dtype)];
  for_tiles(nest.count(), [&](int64_t begin, int64_t length) {
    double dense[tile_elements];
    Bool mask[tile_elements];
    const void *tile = element(p, from, begin);
    if (!is_dense(nest)) {
      gather(nest, p, begin, length, dtype_sizes[static_cast<int>(from)], reinterpret_cast<char *>(dense));
      tile = dense;
    }
    row(start, tile, begin, length, mask);
    const void *inputs[] = {mask};
    convert(inputs, element(out, dtype, begin), length);
  });
}

// out[row, i] = the category with the smallest key in draw i of a row, or without replacement the one with the i-th
// smallest key of a single draw. Throws Failure if a weight is negative or not finite, or if a row has too few weights
// above 0; then the result may be partly written.
void multinomial(const MultinomialBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const PhiloxStart start = start_of(block.key, block.counter);
  const int64_t rows = block.rows, categories = uint32_t(block.categories), samples = uint32_t(block.samples);
  const int64_t row_stride = block.row_stride, stride = block.stride;
  const bool replacement = block.replacement;
  const char *weights =
      operands.input(0, dtype, block.weights_offset, Extent().along(rows, row_stride).along(categories, stride));
  int64_t *out = operands.results<int64_t>(1, block.offset, Extent(samples).along(rows, samples));
  auto *race = checked(randoms().race[static_cast<int>(dtype)], "multinomial", dtype);
  if (rows == 0 || samples == 0) return;
  const int64_t draws = replacement ? samples : 1; // draws per row
  const int64_t chunk = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, categories));
  std::atomic<bool> is_valid{true}, has_enough{true}, has_memory{true};
  parallel_for(rows * draws, chunk, [&](int64_t begin, int64_t end) {
    try {
      Scratch<double> keys(static_cast<size_t>(categories));
      Scratch<int64_t> order(static_cast<size_t>(replacement ? 0 : categories));
      for (int64_t at = begin; at < end; at++) {
        int64_t row = at / draws, sample = at % draws;
        Race one{start, element(weights, dtype, row * row_stride), stride, categories, static_cast<uint32_t>(row)};
        if (!race(one, static_cast<uint32_t>(sample), keys.data())) is_valid = false;
        int64_t *target = out + (replacement ? at : row * samples);
        if (replacement) *target = winner(keys.data(), categories);
        else winners(keys.data(), categories, order.data(), samples, target);
        if (target[replacement ? 0 : samples - 1] < 0) has_enough = false;
      }
    } catch (...) {
      has_memory = false;
    }
  });
  if (!has_memory) fail(ORCHARD_CPU_OUT_OF_MEMORY, "there is no memory for " + std::to_string(categories) + " keys");
  if (!is_valid)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected finite weights of at least 0, got a negative, infinite or NaN one");
  if (!has_enough)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected as many weights above 0 in a row as samples, got fewer");
}

// The network permutes a range of numbers. Applying it repeatedly to a number of [0, count) leads back into [0, count).
// The range has at most four times as many numbers, so few steps are needed.
void check_network(const Permutation &permutation) {
  constexpr uint64_t fewest = 64;
  const int bits = permutation.left_bits + permutation.right_bits;
  bool is_network = permutation.left_bits <= 32 && permutation.right_bits <= 32 && bits < 63;
  is_network = is_network && uint64_t(1) << bits >= permutation.count &&
               uint64_t(1) << bits <= std::max(fewest, 4 * permutation.count);
  if (!is_network || (permutation.swaps && permutation.count < 2))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected a network for " + std::to_string(permutation.count) +
                                           " numbers, got one of " + std::to_string(permutation.left_bits) + " and " +
                                           std::to_string(permutation.right_bits) + " bits");
}

void permutation(const PermutationBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  auto bits = [](uint32_t given) { return static_cast<int>(std::min(given, uint32_t(64))); };
  Permutation permutation{
      {}, bits(block.left_bits), bits(block.right_bits), block.swaps ? 1u : 0u, static_cast<uint64_t>(count)};
  for (int round = 0; round < feistel_rounds; round++) permutation.keys[round] = block.keys[round];
  char *out = operands.result(0, dtype, block.offset, Extent(count));
  check_network(permutation);
  ConvertRow convert = conversions().rows[static_cast<int>(DType::int64)][static_cast<int>(dtype)];
  for_tiles(count, [&](int64_t begin, int64_t length) {
    int64_t indices[tile_elements];
    randoms().permute(permutation, begin, length, indices);
    const void *inputs[] = {indices};
    convert(inputs, element(out, dtype, begin), length);
  });
}

ORCHARD_FUNCTION("random", random, RandomBlock, 1)
ORCHARD_FUNCTION("bernoulli", bernoulli, BernoulliBlock, 2)
ORCHARD_FUNCTION("multinomial", multinomial, MultinomialBlock, 2)
ORCHARD_FUNCTION("permutation", permutation, PermutationBlock, 1)

} // namespace
