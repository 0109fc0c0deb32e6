// From scaled products to scores: steps (2) to (5) of src/ops/attention/problem.ts on a tile s[key][query], whose lines are one key's.
#pragma once

#include "../elementwise/math.h"
#include "attention.h"

namespace orchard::ORCHARD_ISA {

// Keys `j` to `j + keys` and queries `i` to `i + queries` of a head, counted inside the sequence.
struct TilePlace {
  const AttentionSequence &sequence;
  int64_t head, i, queries, j, keys;
};

// A column of a mask or a bias: what all queries of a tile have for one key.
template <class E> struct Column {
  const E *data;
  int64_t row;

  Column(const AttentionOperand &operand, const TilePlace &place, int64_t key)
      : data(reinterpret_cast<const E *>(operand.data) + operand.at(place.sequence.batch, place.head, place.sequence.query_start + place.i,
                                                                    place.sequence.key_start + place.j + key)),
        row(operand.row) {}
};

// S is what a bias is stored in.
template <class S, int width> class Scores {
  using T = Compute<S>;
  using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

public:
  explicit Scores(const AttentionProblem &problem) : p_(problem) {}

  // s: scaled products in, scores out, −∞ where a query does not attend. slopes: where given, gets the softcap's slope at each score.
  void apply(const TilePlace &place, T *s, T *slopes) const {
    if (p_.softcap != 0) cap(place, s, slopes);
    if (p_.bias.data) add_bias(place, s);
    if (p_.slopes.data) add_slopes(place, s);
    if (p_.mask.data) mask(place, s);
    keep_band(place, s);
  }

private:
  void cap(const TilePlace &place, T *s, T *slopes) const {
    const T softcap = T(p_.softcap);
    int64_t count = place.keys * width;
    for (int64_t at = 0; at < count; at++) {
      T bounded = tanh(s[at] / softcap);
      s[at] = softcap * bounded;
      if (slopes) slopes[at] = T(1) - bounded * bounded;
    }
  }

  void add_bias(const TilePlace &place, T *s) const {
    for (int64_t key = 0; key < place.keys; key++, s += width) {
      Column<S> bias(p_.bias, place, key);
      T added[width] = {};
      if (bias.row == 0) std::fill_n(added, width, load(*bias.data));
      else
        for (int64_t lane = 0; lane < place.queries; lane++) added[lane] = load(bias.data[lane * bias.row]);
      for (int lane = 0; lane < width; lane++) s[lane] = added[lane] == minus_infinity ? minus_infinity : s[lane] + added[lane];
    }
  }

  void add_slopes(const TilePlace &place, T *s) const {
    const T slope = T(reinterpret_cast<const Statistic *>(p_.slopes.data)[p_.slopes.at(place.sequence.index, place.head, 0)]);
    int64_t distance = place.j - place.i - p_.shift(place.sequence);
    for (int64_t key = 0; key < place.keys; key++, s += width)
      for (int lane = 0; lane < width; lane++) s[lane] -= slope * T(std::abs(distance + key - lane));
  }

  void mask(const TilePlace &place, T *s) const {
    for (int64_t key = 0; key < place.keys; key++, s += width) {
      Column<uint8_t> allowed(p_.mask, place, key);
      if (allowed.row == 0 && *allowed.data) continue;
      if (allowed.row == 0) std::fill_n(s, width, minus_infinity);
      else
        for (int64_t lane = 0; lane < place.queries; lane++) s[lane] = allowed.data[lane * allowed.row] ? s[lane] : minus_infinity;
    }
  }

  // −left ≤ j − i − shift ≤ right: of a key's line the lanes [first, end) attend.
  void keep_band(const TilePlace &place, T *s) const {
    int64_t distance = place.j - place.i - p_.shift(place.sequence);
    bool holds_all = distance + place.keys - 1 <= p_.right && distance - width + 1 >= -p_.left;
    for (int64_t key = 0; !holds_all && key < place.keys; key++, s += width) {
      int64_t first = std::clamp<int64_t>(distance + key - p_.right, 0, width);
      int64_t end = std::clamp<int64_t>(distance + key + p_.left + 1, 0, width);
      std::fill(s, s + first, minus_infinity);
      std::fill(s + std::max(first, end), s + width, minus_infinity);
    }
  }

  const AttentionProblem &p_;
};

} // namespace orchard::ORCHARD_ISA
