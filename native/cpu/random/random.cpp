#include "random.h"

#include "../block.h"
#include "../conversion/conversion.h"
#include "../memory.h"
#include "../parallel.h"

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace orchard;

namespace {

constexpr int64_t grain = 16; // tiles: about 30 µs

uint32_t word(BlockReader &reader) { return static_cast<uint32_t>(reader.whole()); }

uint64_t wide_word(BlockReader &reader) {
  uint64_t low = word(reader);
  return low | uint64_t(word(reader)) << 32;
}

PhiloxStart philox_start(BlockReader &reader) {
  PhiloxStart start;
  for (uint32_t &part : start.key) part = word(reader);
  for (uint32_t &part : start.counter) part = word(reader);
  return start;
}

template <class Function> Function *checked(Function *function, const char *what, DType dtype) {
  if (!function)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string(what) + " has no numbers of dtype " + dtype_names[static_cast<int>(dtype)]);
  return function;
}

// Calls body(begin, count) for tiles of the elements.
template <class Body> void for_tiles(int64_t count, Body &&body) {
  int64_t tiles = (count + tile_elements - 1) / tile_elements;
  parallel_for(tiles, grain, [&](int64_t first, int64_t last) {
    for (int64_t tile = first; tile < last; tile++) {
      int64_t begin = tile * tile_elements;
      body(begin, std::min(tile_elements, count - begin));
    }
  });
}

constexpr int max_rank = 8;

// Copies elements out of strided memory.
struct Gather {
  int rank;
  int64_t shape[max_rank], strides[max_rank];
  int64_t size;

  Gather(BlockReader &reader, DType dtype) : rank(static_cast<int>(reader.whole())), size(dtype_sizes[static_cast<int>(dtype)]) {
    if (rank < 0 || rank > max_rank) fail(ORCHARD_CPU_INVALID_ARGUMENT, "the rank must be 0 to 8, and is " + std::to_string(rank));
    for (int axis = 0; axis < rank; axis++) shape[axis] = reader.whole();
    for (int axis = 0; axis < rank; axis++) strides[axis] = reader.whole();
  }

  bool is_dense() const { return rank == 1 && strides[0] == 1; }

  void run(const char *from, int64_t begin, int64_t count, char *to) const {
    for (int64_t i = 0; i < count; i++) {
      int64_t rest = begin + i, place = 0;
      for (int axis = rank - 1; axis >= 0; axis--) {
        place += rest % shape[axis] * strides[axis];
        rest /= shape[axis];
      }
      std::memcpy(to + i * size, from + place * size, static_cast<size_t>(size));
    }
  }
};

// The winner of a race: the smallest key, the first of equal ones; −1 where nobody takes part.
int64_t winner(const double *keys, int64_t count) {
  int64_t best = -1;
  for (int64_t c = 0; c < count; c++)
    if (keys[c] == keys[c] && (best < 0 || keys[c] < keys[best])) best = c;
  return best;
}

// The first winners, in order; −1 where there are no more.
void winners(const double *keys, int64_t count, int64_t *order, int64_t wanted, int64_t *out) {
  int64_t *end = order;
  for (int64_t c = 0; c < count; c++)
    if (keys[c] == keys[c]) *end++ = c;
  int64_t found = std::min<int64_t>(wanted, end - order);
  std::partial_sort(order, order + found, end, [&](int64_t a, int64_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  std::copy(order, order + found, out);
  std::fill(out + found, out + wanted, int64_t(-1));
}

} // namespace

int32_t orchard_cpu_random(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t kind = reader.whole();
    if (kind < 0 || kind >= kind_count) fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no distribution " + std::to_string(kind));
    int64_t count = reader.whole();
    DType dtype = reader.dtype();
    char *result = element(out, dtype, reader.whole());
    Draw draw{philox_start(reader), {}, 0, 0};
    if (Kind(kind) == Kind::integers) {
      draw.least = wide_word(reader);
      draw.choices = wide_word(reader);
    } else {
      for (double &parameter : draw.parameters) parameter = reader.real();
    }
    auto *row = checked(randoms().draw[kind][static_cast<int>(dtype)], "this distribution", dtype);
    for_tiles(count, [&](int64_t begin, int64_t length) { row(draw, begin, length, element(result, dtype, begin)); });
  });
}

int32_t orchard_cpu_bernoulli(const double *block, const void *p, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t count = reader.whole();
    DType dtype = reader.dtype();
    char *result = element(out, dtype, reader.whole());
    PhiloxStart start = philox_start(reader);
    DType from = reader.dtype();
    const char *limits = element(p, from, reader.whole());
    Gather gather(reader, from);
    auto *row = checked(randoms().bernoulli[static_cast<int>(from)], "bernoulli", from);
    ConvertRow convert = conversions().rows[static_cast<int>(DType::boolean)][static_cast<int>(dtype)];
    for_tiles(count, [&](int64_t begin, int64_t length) {
      double dense[tile_elements];
      Bool mask[tile_elements];
      const void *tile = element(limits, from, begin);
      if (!gather.is_dense()) {
        gather.run(limits, begin, length, reinterpret_cast<char *>(dense));
        tile = dense;
      }
      row(start, tile, begin, length, mask);
      const void *from[] = {mask};
      convert(from, element(result, dtype, begin), length);
    });
  });
}

int32_t orchard_cpu_multinomial(const double *block, const void *weights, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t rows = reader.whole(), categories = reader.whole(), samples = reader.whole();
    bool replacement = reader.whole() != 0;
    int64_t *result = static_cast<int64_t *>(out) + reader.whole();
    PhiloxStart start = philox_start(reader);
    DType dtype = reader.dtype();
    const char *first = element(weights, dtype, reader.whole());
    int64_t row_stride = reader.whole(), stride = reader.whole();
    auto *race = checked(randoms().race[static_cast<int>(dtype)], "multinomial", dtype);
    int64_t draws = replacement ? samples : 1; // races in a row
    int64_t chunk = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, categories));
    std::atomic<bool> is_valid{true}, has_enough{true}, has_memory{true};
    parallel_for(rows * draws, chunk, [&](int64_t begin, int64_t end) {
      try {
        Scratch<double> keys(static_cast<size_t>(categories));
        Scratch<int64_t> order(static_cast<size_t>(replacement ? 0 : categories));
        for (int64_t at = begin; at < end; at++) {
          int64_t row = at / draws, sample = at % draws;
          Race one{start, element(first, dtype, row * row_stride), stride, categories, static_cast<uint32_t>(row)};
          if (!race(one, static_cast<uint32_t>(sample), keys.data())) is_valid = false;
          int64_t *target = result + (replacement ? at : row * samples);
          if (replacement) *target = winner(keys.data(), categories);
          else winners(keys.data(), categories, order.data(), samples, target);
          if (target[replacement ? 0 : samples - 1] < 0) has_enough = false;
        }
      } catch (...) {
        has_memory = false;
      }
    });
    if (!has_memory) fail(ORCHARD_CPU_OUT_OF_MEMORY, "there is no memory for " + std::to_string(categories) + " keys");
    if (!is_valid) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a weight is negative, infinite or NaN");
    if (!has_enough) fail(ORCHARD_CPU_INVALID_ARGUMENT, "a row has too few weights above 0 for the samples that are wanted");
  });
}

int32_t orchard_cpu_permutation(const double *block, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    int64_t count = reader.whole();
    DType dtype = reader.dtype();
    char *result = element(out, dtype, reader.whole());
    Permutation permutation{{}, static_cast<int>(reader.whole()), static_cast<int>(reader.whole()),
                            static_cast<uint64_t>(reader.whole()), static_cast<uint64_t>(count)};
    for (uint32_t &key : permutation.keys) key = word(reader);
    ConvertRow convert = conversions().rows[static_cast<int>(DType::int64)][static_cast<int>(dtype)];
    for_tiles(count, [&](int64_t begin, int64_t length) {
      int64_t places[tile_elements];
      randoms().permute(permutation, begin, length, places);
      const void *from[] = {places};
      convert(from, element(result, dtype, begin), length);
    });
  });
}
