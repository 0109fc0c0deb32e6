// Turns scaled products into scores: steps (2) to (5) of src/ops/attention/problem.ts on a tile s[key][query]. Each
// line of the tile is one key.
#pragma once

#include "../elementwise/math.h"
#include "panels.h"

namespace orchard::ORCHARD_ISA {

// Keys `j` to `j + keys` and queries `i` to `i + queries` of one head. Indices are relative to the sequence.
struct TilePairs {
  const AttentionSequence &sequence;
  int64_t head, i, queries, j, keys;
};

// Returns the tile's keys within the band of at least one of `count` queries from `query` on.
inline AttentionRange keys_of(const AttentionProblem &problem, const TilePairs &pairs, int64_t query, int64_t count) {
  AttentionRange range = problem.keys_of(pairs.sequence, pairs.i + query, pairs.i + query + count - 1);
  return {std::clamp<int64_t>(range.first - pairs.j, 0, pairs.keys),
          std::clamp<int64_t>(range.end - pairs.j, 0, pairs.keys)};
}

// Returns the tile's queries whose band includes at least one of `count` keys from `key` on.
inline AttentionRange queries_of(const AttentionProblem &problem, const TilePairs &pairs, int64_t key, int64_t count) {
  AttentionRange range = problem.queries_of(pairs.sequence, pairs.j + key, pairs.j + key + count - 1);
  return {std::clamp<int64_t>(range.first - pairs.i, 0, pairs.queries),
          std::clamp<int64_t>(range.end - pairs.i, 0, pairs.queries)};
}

// Returns a tile of a mask or a bias: its rows are queries, its columns are keys.
template <class E> inline Rows<E> rows_of(const AttentionOperand &operand, const TilePairs &pairs) {
  int64_t offset = operand.at(pairs.sequence.batch, pairs.head, pairs.sequence.query_start + pairs.i,
                              pairs.sequence.key_start + pairs.j);
  return {reinterpret_cast<E *>(operand.data) + offset, operand.row, operand.column, pairs.keys};
}

// S is the dtype of the bias.
template <class S, int width> class Scores {
  using T = Compute<S>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

public:
  explicit Scores(const AttentionProblem &problem) : p_(problem) {}

  // Replaces the scaled products in `s` by scores: −∞ where a query does not attend. Unless `cap_derivatives` is null,
  // it is set to the softcap's derivative at each score.
  void apply(const TilePairs &pairs, T *s, T *cap_derivatives) const {
    if (p_.softcap != 0) cap(pairs, s, cap_derivatives);
    if (p_.bias.data) add_bias(pairs, s);
    if (p_.slopes.data) add_slopes(pairs, s);
    if (p_.mask.data) mask(pairs, s);
    keep_band(pairs, s);
  }

private:
  void cap(const TilePairs &pairs, T *s, T *cap_derivatives) const {
    const T softcap = T(p_.softcap);
    int64_t count = pairs.keys * width;
    for (int64_t at = 0; at < count; at++) {
      T bounded = tanh(s[at] / softcap);
      s[at] = softcap * bounded;
      if (cap_derivatives) cap_derivatives[at] = T(1) - bounded * bounded;
    }
  }

  // A block has as many keys as a vector has lanes; each line is one key.
  static constexpr int64_t block = lanes<T>;
  struct Lines {
    alignas(64) T numbers[block * width];
  };

  // Fills the lines from one row that is broadcast to all queries: one number per line.
  template <class E, class Number> static void fill_lines(Rows<E> rows, Lines &lines, Number number) {
    for (int64_t key = 0; key < rows.length; key++)
      std::fill_n(lines.numbers + key * width, width, number(rows.data[key * rows.column]));
  }

  // Calls use(lines, s) for each block of keys. lines.numbers[key][query] is number(element of the tile).
  template <class E, class Number, class Use>
  static void for_each_block(Rows<E> tile, int64_t queries, T *s, Number number, Use use) {
    Lines lines;
    for (int64_t key = 0; key < tile.length; key += block) {
      Rows<E> rows{tile.data + key * tile.column, tile.row, tile.column, std::min(block, tile.length - key)};
      if (rows.row == 0) fill_lines(rows, lines, number);
      else turn(rows, queries, lines, number);
      for (int64_t at = 0; at < rows.length * width; at++)
        s[key * width + at] = use(lines.numbers[at], s[key * width + at]);
    }
  }

  // Transposes rows, each read contiguously, into lines.
  template <class E, class Number> static void turn(Rows<E> rows, int64_t queries, Lines &lines, Number number) {
    alignas(64) T numbers[width * block] = {};
    for (int64_t query = 0; query < queries; query++) {
      const E *row = rows.data + query * rows.row;
      T *to = numbers + query * block;
      if (rows.column == 1 && rows.length == block)
        for (int64_t key = 0; key < block; key++) to[key] = number(row[key]);
      else
        for (int64_t key = 0; key < rows.length; key++) to[key] = number(row[key * rows.column]);
    }
    if constexpr (width % block == 0) turn_rows<width>(numbers, block, lines.numbers);
    else std::copy_n(numbers, block, lines.numbers); // a single query: the row is the result
  }

  void add_bias(const TilePairs &pairs, T *s) const {
    for_each_block(
        rows_of<S>(p_.bias, pairs), pairs.queries, s, [](S bias) { return load(bias); },
        [](T bias, T score) { return bias == minus_infinity ? minus_infinity : score + bias; });
  }

  void add_slopes(const TilePairs &pairs, T *s) const {
    const T slope =
        T(reinterpret_cast<const Statistic *>(p_.slopes.data)[p_.slopes.at(pairs.sequence.index, pairs.head, 0)]);
    int64_t distance = pairs.j - pairs.i - p_.shift(pairs.sequence);
    for (int64_t key = 0; key < pairs.keys; key++, s += width)
      for (int lane = 0; lane < width; lane++) s[lane] -= slope * T(std::abs(distance + key - lane));
  }

  void mask(const TilePairs &pairs, T *s) const {
    for_each_block(
        rows_of<uint8_t>(p_.mask, pairs), pairs.queries, s,
        [](uint8_t allowed) { return allowed ? T(0) : minus_infinity; },
        [](T penalty, T score) { return penalty == T(0) ? score : minus_infinity; });
  }

  // Masks scores outside the band −left ≤ j − i − shift ≤ right: in a key's line, lanes [first, end) attend.
  void keep_band(const TilePairs &pairs, T *s) const {
    int64_t distance = pairs.j - pairs.i - p_.shift(pairs.sequence);
    bool holds_all = distance + pairs.keys - 1 <= p_.right && distance - width + 1 >= -p_.left;
    for (int64_t key = 0; !holds_all && key < pairs.keys; key++, s += width) {
      int first = int(std::clamp<int64_t>(distance + key - p_.right, 0, width));
      int end = int(std::clamp<int64_t>(distance + key + p_.left + 1, 0, width));
      if (first == 0 && end == width) continue;
      for (int lane = 0; lane < width; lane++) s[lane] = lane >= first && lane < end ? s[lane] : minus_infinity;
    }
  }

  const AttentionProblem &p_;
};

} // namespace orchard::ORCHARD_ISA
