#include "row_pairs.h"

#include "../few_lanes.h"
#include "../lanes.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::distance::pair_part, tuning::distance::pairs_together;
using tuning::distance::shortest_with_lanes;

template <class T>
void sum_short(RowPair function, const T *a, const T *b, int64_t count, double eps, RowPairSums &sums) {
  if (function == RowPair::distance) {
    sums.squares = few_summed(count, [=](int64_t i) {
      const double apart = double(load(a[i])) - double(load(b[i])) + eps;
      return apart * apart;
    });
    return;
  }
  sums.of_a = few_summed(count, [=](int64_t i) { return double(load(a[i])) * double(load(a[i])); });
  sums.of_b = few_summed(count, [=](int64_t i) { return double(load(b[i])) * double(load(b[i])); });
  sums.products = few_summed(count, [=](int64_t i) { return double(load(a[i])) * double(load(b[i])); });
}

// Three sums in one pass, each with lanes as in `summed`.
template <class T> void sum_products(const T *a, const T *b, int64_t count, RowPairSums &sums) {
  double of_a[sum_lanes] = {}, of_b[sum_lanes] = {}, products[sum_lanes] = {};
  const auto add = [&](int lane, int64_t i) {
    const double x = double(load(a[i])), y = double(load(b[i]));
    of_a[lane] += x * x;
    of_b[lane] += y * y;
    products[lane] += x * y;
  };
  int64_t i = 0;
  for (; i + sum_lanes <= count; i += sum_lanes)
    for (int lane = 0; lane < sum_lanes; lane++) add(lane, i + lane);
  for (int lane = 0; i < count; i++, lane++) add(lane, i);
  sums.of_a = lanes_summed(of_a);
  sums.of_b = lanes_summed(of_b);
  sums.products = lanes_summed(products);
}

template <class T>
void sum_row_pair(RowPair function, const void *first, const void *second, int64_t count, int64_t step_a,
                  int64_t step_b, double eps, RowPairSums &sums) {
  const T *a = static_cast<const T *>(first), *b = static_cast<const T *>(second);
  const auto squares = [eps](const T *x, const T *y, int64_t length) {
    return summed(length, [=](int64_t i) {
      const double difference = double(load(x[i])) - double(load(y[i])) + eps;
      return difference * difference;
    });
  };
  const auto sum_adjacent = [&](const T *x, const T *y, int64_t length, RowPairSums &total) {
    if (length < shortest_with_lanes) return sum_short(function, x, y, length, eps, total);
    switch (function) {
    case RowPair::distance: total.squares = squares(x, y, length); break;
    case RowPair::similarity:
    case RowPair::embedding: sum_products(x, y, length, total); break;
    case RowPair::count: break;
    }
  };
  sums = {};
  if (step_a == 1 && step_b == 1) return sum_adjacent(a, b, count, sums);
  T copied_a[pair_part], copied_b[pair_part];
  for (int64_t start = 0; start < count; start += pair_part) {
    const int64_t length = std::min(pair_part, count - start);
    for (int64_t i = 0; i < length; i++) {
      copied_a[i] = a[(start + i) * step_a];
      copied_b[i] = b[(start + i) * step_b];
    }
    RowPairSums of_part{};
    sum_adjacent(copied_a, copied_b, length, of_part);
    sums.squares += of_part.squares;
    sums.of_a += of_part.of_a;
    sums.of_b += of_part.of_b;
    sums.products += of_part.products;
  }
}

template <class T> void sum_pair_columns(RowPair function, const PairColumns &pairs, double eps, RowPairSums *results) {
  double squares[pairs_together] = {}, of_a[pairs_together] = {}, of_b[pairs_together] = {};
  double products[pairs_together] = {};
  const int64_t count = pairs.count;
  for (int64_t k = 0; k < pairs.length; k++) {
    const T *a = static_cast<const T *>(pairs.a) + k * pairs.pitches[0];
    const T *b = static_cast<const T *>(pairs.b) + k * pairs.pitches[1];
    if (function == RowPair::distance)
      for (int64_t j = 0; j < count; j++) {
        const double apart = double(load(a[j])) - double(load(b[j])) + eps;
        squares[j] += apart * apart;
      }
    else
      for (int64_t j = 0; j < count; j++) {
        const double x = double(load(a[j])), y = double(load(b[j]));
        of_a[j] += x * x;
        of_b[j] += y * y;
        products[j] += x * y;
      }
  }
  for (int64_t j = 0; j < count; j++) results[j] = {squares[j], of_a[j], of_b[j], products[j]};
}

} // namespace

extern const RowPairs row_pairs = {
    {sum_row_pair<double>, sum_row_pair<float>, sum_row_pair<Float16>, sum_row_pair<BFloat16>},
    {sum_pair_columns<double>, sum_pair_columns<float>, sum_pair_columns<Float16>, sum_pair_columns<BFloat16>}};

} // namespace orchard::ORCHARD_ISA
