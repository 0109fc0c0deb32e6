#include "random.h"

#include "normal.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

static_assert(tile_elements == 4 * tile_blocks);

// The random words of a tile, and a second set if numbers need 64 bits.
struct Tile {
  Words words, low;
  int64_t blocks;

  Tile(const PhiloxStart &start, int64_t begin, int64_t count, bool is_wide) : blocks((count + 3) / 4) {
    philox_tile(start, 0, begin / 4, blocks, words);
    if (is_wide) philox_tile(start, 1, begin / 4, blocks, low);
  }
};

// Indexed by the word within a block, then by block.
template <class Number> struct Numbers {
  Number lane[4][tile_blocks];

  void interleave(int64_t blocks, Number *out) const {
    for (int64_t j = 0; j < blocks; j++)
      for (int at = 0; at < 4; at++) out[4 * j + at] = lane[at][j];
  }
};

// ---------------------------------------------------------------- uniform

// Truncates a float32 to the dtype's precision, so that u is never rounded up to 1.
template <class T> inline float cut(float u) {
  if constexpr (std::is_same_v<T, Float16>) return float_of(bits_of(u) & 0xffffe000);
  else if constexpr (std::is_same_v<T, BFloat16>) return float_of(bits_of(u) & 0xffff0000);
  else return u;
}

template <class T> void uniform_numbers(const Tile &tile, Numbers<Compute<T>> &numbers) {
  for (int lane = 0; lane < 4; lane++)
    for (int64_t j = 0; j < tile.blocks; j++)
      if constexpr (std::is_same_v<T, double>)
        numbers.lane[lane][j] = uniform64(tile.words.lane[lane][j], tile.low.lane[lane][j]);
      else numbers.lane[lane][j] = cut<T>(float(int32_t(tile.words.lane[lane][j] >> 8)) * 0x1p-24f);
}

inline float affine(float x, float scale, float shift) { return fused(x, scale, shift); }
inline double affine(double x, double scale, double shift) { return x * scale + shift; }

// low + u · (high − low); if this rounds to high, the result is low.
template <class T> void draw_uniform(const Draw &draw, int64_t begin, int64_t count, void *out) {
  using Number = Compute<T>;
  Tile tile(draw.start, begin, count, std::is_same_v<T, double>);
  Numbers<Number> numbers;
  uniform_numbers<T>(tile, numbers);
  Number row[tile_elements];
  numbers.interleave(tile.blocks, row);
  Number low = Number(draw.low), scale = Number(draw.scale), high = Number(draw.high);
  T *result = static_cast<T *>(out);
  for (int64_t i = 0; i < count; i++) row[i] = affine(row[i], scale, low);
  narrow(row, result, count);
  if (low == 0 && high == 1) return;
  for (int64_t i = 0; i < count; i++) result[i] = load(result[i]) < high ? result[i] : store<T>(low);
}

// ---------------------------------------------------------------- normal

template <class T> void draw_normal(const Draw &draw, int64_t begin, int64_t count, void *out) {
  using Number = Compute<T>;
  constexpr bool is_wide = std::is_same_v<T, double>;
  Tile tile(draw.start, begin, count, is_wide);
  Numbers<Number> numbers;
  for (int lane = 0; lane < 4; lane += 2) {
    const uint32_t *first = tile.words.lane[lane], *second = tile.words.lane[lane + 1];
    Number *cosines = numbers.lane[lane], *sines = numbers.lane[lane + 1];
    for (int64_t j = 0; j < tile.blocks; j++) {
      Point<Number> pair;
      if constexpr (is_wide)
        pair = normal_pair64(first[j], tile.low.lane[lane][j], second[j], tile.low.lane[lane + 1][j]);
      else pair = normal_pair(first[j], second[j]);
      cosines[j] = pair.x;
      sines[j] = pair.y;
    }
  }
  Number row[tile_elements];
  numbers.interleave(tile.blocks, row);
  Number mean = Number(draw.mean), deviation = Number(draw.deviation);
  for (int64_t i = 0; i < count; i++) row[i] = affine(row[i], deviation, mean);
  narrow(row, static_cast<T *>(out), count);
}

// ---------------------------------------------------------------- integers

void draw_bits(const Draw &draw, int64_t begin, int64_t count, void *out) {
  Tile tile(draw.start, begin, count, false);
  for (int64_t i = 0; i < count; i++) static_cast<uint32_t *>(out)[i] = tile.words.lane[i % 4][i / 4];
}

// The upper 64 bits of (word · 2^32 + low) · choices.
inline uint64_t scaled(uint32_t word, uint32_t low, uint64_t choices) {
  uint64_t lower = choices & 0xffffffff, upper = choices >> 32;
  uint64_t middle = uint64_t(word) * lower + (uint64_t(low) * lower >> 32);
  uint64_t cross = uint64_t(low) * upper + (middle & 0xffffffff);
  return uint64_t(word) * upper + (middle >> 32) + (cross >> 32);
}

template <class T> void draw_integers(const Draw &draw, int64_t begin, int64_t count, void *out) {
  Tile tile(draw.start, begin, count, true);
  Compute<T> row[tile_elements];
  for (int64_t j = 0; j < tile.blocks; j++)
    for (int at = 0; at < 4; at++) {
      uint64_t value = draw.least + scaled(tile.words.lane[at][j], tile.low.lane[at][j], draw.choices);
      row[4 * j + at] = converted<Compute<T>>(int64_t(value));
    }
  narrow(row, static_cast<T *>(out), count);
}

// ---------------------------------------------------------------- bernoulli and multinomial

template <class T>
void bernoulli_tile(const PhiloxStart &start, const void *p, int64_t begin, int64_t count, Bool *mask) {
  using Number = Compute<T>;
  Tile tile(start, begin, count, std::is_same_v<T, double>);
  Numbers<Number> numbers;
  uniform_numbers<std::conditional_t<std::is_same_v<T, double>, double, float>>(tile, numbers);
  Number row[tile_elements], limits[tile_elements];
  numbers.interleave(tile.blocks, row);
  widen(static_cast<const T *>(p), limits, count);
  for (int64_t i = 0; i < count; i++) mask[i] = {uint8_t(row[i] < limits[i])};
}

template <class T> bool race_row(const Race &race, uint32_t sample, double *keys) {
  using Number = Compute<T>;
  const T *weights = static_cast<const T *>(race.weights);
  bool is_valid = true;
  for (int64_t c = 0; c < race.categories; c += 4) {
    const PhiloxStart &start = race.start;
    PhiloxBlock block = philox(uint32_t(c / 4), sample, race.row, start.counter[3], start.key[0], start.key[1]);
    for (int64_t at = 0; at < std::min<int64_t>(4, race.categories - c); at++) {
      Number weight = load(weights[(c + at) * race.stride]);
      is_valid = is_valid && weight >= 0 && weight <= std::numeric_limits<Number>::max();
      keys[c + at] =
          weight > 0 ? double(Number(exponential(block.word[at])) / weight) : std::numeric_limits<double>::quiet_NaN();
    }
  }
  return is_valid;
}

// ---------------------------------------------------------------- permutations

// The finalizer of MurmurHash3 (Appleby).
inline uint32_t mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6b;
  x = (x ^ x >> 13) * 0xc2b2ae35;
  return x ^ x >> 16;
}

// Numbers whose rounds are computed in step: a round takes many cycles, but its vectors do not wait for each other.
constexpr int64_t in_step = 64;
static_assert(tile_elements % in_step == 0);

// Index is an unsigned integer that holds the network's numbers.
template <class Index> void feistel(const Permutation &permutation, Index *indices) {
  const uint32_t left_mask = uint32_t((uint64_t(1) << permutation.left_bits) - 1);
  const uint32_t right_mask = uint32_t((uint64_t(1) << permutation.right_bits) - 1);
  uint32_t left[in_step], right[in_step];
  for (int64_t i = 0; i < in_step; i++) {
    left[i] = uint32_t(indices[i] >> permutation.right_bits);
    right[i] = uint32_t(indices[i]) & right_mask;
  }
  for (int round = 0; round < feistel_rounds; round += 2) {
    const uint32_t first = permutation.keys[round], second = permutation.keys[round + 1];
    for (int64_t i = 0; i < in_step; i++) left[i] = (left[i] ^ mixed(right[i] + first)) & left_mask;
    for (int64_t i = 0; i < in_step; i++) right[i] = (right[i] ^ mixed(left[i] + second)) & right_mask;
  }
  for (int64_t i = 0; i < in_step; i++) indices[i] = Index(left[i]) << permutation.right_bits | right[i];
}

// Applies the network to each element until the result is in [0, count).
template <class Index>
void permute_tile_of(const Permutation &permutation, int64_t begin, int64_t count, int64_t *out) {
  Index indices[tile_elements] = {}; // the last block is computed whole
  int32_t targets[tile_elements];
  for (int64_t i = 0; i < count; i++) {
    indices[i] = Index(begin + i < 2 ? uint64_t(begin + i) ^ permutation.swaps : uint64_t(begin + i));
    targets[i] = int32_t(i);
  }
  for (int64_t open = count; open > 0;) {
    for (int64_t i = 0; i < open; i += in_step) feistel(permutation, indices + i);
    int64_t left = 0;
    for (int64_t i = 0; i < open; i++) {
      if (indices[i] < permutation.count) {
        out[targets[i]] = int64_t(indices[i]);
      } else {
        indices[left] = indices[i];
        targets[left++] = targets[i];
      }
    }
    open = left;
  }
}

void permute_tile(const Permutation &permutation, int64_t begin, int64_t count, int64_t *out) {
  if (permutation.left_bits + permutation.right_bits < 32) permute_tile_of<uint32_t>(permutation, begin, count, out);
  else permute_tile_of<uint64_t>(permutation, begin, count, out);
}

// ---------------------------------------------------------------- the table

template <class T> constexpr bool is_float = std::is_floating_point_v<Compute<T>>;

using DrawTile = void (*)(const Draw &draw, int64_t begin, int64_t count, void *out);

// Returns null if the distribution does not support the dtype.
template <class T> constexpr DrawTile draw_of(Distribution distribution) {
  switch (distribution) {
  case Distribution::integers: return draw_integers<T>;
  case Distribution::bits:
    if constexpr (std::is_same_v<T, uint32_t>) return draw_bits;
    break;
  case Distribution::uniform:
    if constexpr (is_float<T>) return draw_uniform<T>;
    break;
  case Distribution::normal:
    if constexpr (is_float<T>) return draw_normal<T>;
    break;
  case Distribution::count: break;
  }
  return nullptr;
}

template <int... dtype> constexpr Randoms all(std::integer_sequence<int, dtype...>) {
  Randoms table{};
  auto add = [&table](auto type, int at) {
    using T = typename decltype(type)::type;
    for (int kind = 0; kind < int(Distribution::count); kind++) table.draw[kind][at] = draw_of<T>(Distribution(kind));
    if constexpr (is_float<T>) {
      table.bernoulli[at] = bernoulli_tile<T>;
      table.race[at] = race_row<T>;
    }
  };
  (add(Type<Storage<DType(dtype)>>{}, dtype), ...);
  table.permute = permute_tile;
  return table;
}

} // namespace

extern const Randoms randoms = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
