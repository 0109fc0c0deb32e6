#include "label_rows.h"

#include "../short_sums.h"

namespace orchard::ORCHARD_ISA {
namespace {

static_assert(lanes<double> <= label_lanes, "excess of a row's arrays");

struct Numbers {
  double *values;
  int64_t count;
};

double *array(const LabelRow &row, int64_t at) { return row.space + at * label_row_length(row.classes); }

// Calls use(i, sum) with the sum over j of term(a[i] + b[j]), for each i. A vector has the sums of several i. Up to a
// whole number of vectors, numbers after those of `a` are written; their sums are not used.
template <class Term, class Use> inline void for_each_sum(const Numbers &a, const Numbers &b, Term term, Use use) {
  std::fill_n(a.values + a.count, -a.count & (lanes<double> - 1), 0.0);
  for (int64_t first = 0; first < a.count; first += lanes<double>) {
    const Vector<double> some = load_vector(a.values + first);
    const auto with_each = [&](int64_t j) { return term(Vector<double>(some + b.values[j])); };
    double sums[lanes<double>];
    store_vector(grouped_sum<double>(b.count, with_each), sums);
    const int64_t count = std::min<int64_t>(lanes<double>, a.count - first);
    for (int64_t lane = 0; lane < count; lane++) use(first + lane, sums[lane]);
  }
}

// The numbers 1 − x of the targets, and x of the classes that are no target.
struct Sides {
  double *is_target; // of each class: 1 or 0
  Numbers of_targets, of_others;

  template <class T>
  Sides(const LabelRow &row, const T *x)
      : is_target(array(row, 1)), of_targets{array(row, 2), row.count}, of_others{array(row, 3), 0} {
    std::fill_n(is_target, row.classes, 0.0);
    for (int64_t at = 0; at < row.count; at++) {
      is_target[row.targets[at]] = 1;
      of_targets.values[at] = 1 - double(x[row.targets[at]]);
    }
    for (int64_t j = 0; j < row.classes; j++) {
      of_others.values[of_others.count] = double(x[j]);
      of_others.count += is_target[j] == 0;
    }
  }
};

template <class T> double row_of(const LabelRow &row) {
  const T *x = static_cast<const T *>(row.scores);
  const double factor = 1 / double(row.classes);
  const Sides sides(row, x);
  if (!row.gradient) {
    double loss = 0;
    const auto shortfall = [](Vector<double> by) { return by <= 0.0 ? Vector<double>{} : by; }; // keeps NaN
    for_each_sum(sides.of_others, sides.of_targets, shortfall, [&](int64_t, double sum) { loss += sum; });
    return loss * factor;
  }
  double *slopes = array(row, 4);
  std::fill_n(slopes, row.classes, 0.0);
  const auto counted = [](Vector<double> by) { return by > 0.0 ? Vector<double>{} + 1.0 : Vector<double>{}; };
  for_each_sum(sides.of_targets, sides.of_others, counted,
               [&](int64_t at, double sum) { slopes[row.targets[at]] -= sum; });
  int64_t next = 0; // `of_others` has the classes in ascending order
  for_each_sum(sides.of_others, sides.of_targets, counted, [&](int64_t, double sum) {
    while (sides.is_target[next] != 0) next++;
    slopes[next++] = sum;
  });
  T *gradient = static_cast<T *>(row.gradient);
  for (int64_t j = 0; j < row.classes; j++) gradient[j] = T(row.scale * factor * slopes[j]);
  return 0;
}

} // namespace

extern const LabelRows label_rows = {row_of<double>, row_of<float>};

} // namespace orchard::ORCHARD_ISA
