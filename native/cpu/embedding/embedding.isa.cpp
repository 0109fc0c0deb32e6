#include "embedding.h"

#include "../lanes.h"
#include "../row_blocks.h"
#include "../streamed.h"
#include "../wide_vector.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Adds a row times a factor to the sums.
template <class T> void add_row(const T *row, int64_t stride, double factor, double *sums, int64_t columns) {
  if (stride == 1)
    for (int64_t c = 0; c < columns; c++) sums[c] += factor * double(load(row[c]));
  else
    for (int64_t c = 0; c < columns; c++) sums[c] += factor * double(load(row[c * stride]));
}

template <class T> const T *row_of(const BagMatrix &matrix, int64_t row) {
  return reinterpret_cast<const T *>(matrix.first) + row * matrix.row;
}

template <class T> double factor_at(const char *factors, int64_t at) {
  return factors ? double(load(reinterpret_cast<const T *>(factors)[at])) : 1;
}

template <class T> void write(const double *sums, double share, char *out, int64_t columns, bool is_streamed) {
  ResultRow<T, bag_columns> results(is_streamed);
  T *row = reinterpret_cast<T *>(out);
  Compute<T> *to = results.begin(row);
  for (int64_t c = 0; c < columns; c++) to[c] = Compute<T>(sums[c] * share);
  results.end(row, columns);
}

// ---------------------------------------------------------------- bags

// Adds `count` rows, each multiplied by its factor unless all are 1, in order. Calls fetch(column) for each vector.
template <bool are_scaled, class Count, class C, class Fetch>
void add_each(Count count, const C *const *rows, const double *factors, double *sums, int64_t columns, Fetch fetch) {
  const auto add = [&](int64_t c, auto load_wide) {
    fetch(c);
    Vector<double> sum = load_vector(sums + c);
    for (int row = 0; row < count; row++) {
      if constexpr (are_scaled) sum += load_wide(rows[row] + c) * factors[row];
      else sum += load_wide(rows[row] + c);
    }
    store_vector(sum, sums + c);
  };
  int64_t c = 0;
  for (; c + lanes<double> <= columns; c += lanes<double>) add(c, [](const C *from) { return load_wide(from); });
  if (c < columns) add(c, [&](const C *from) { return load_some_wide(from, columns - c); });
}

// `factors` are null if all are 1.
template <class Count, class C, class Fetch>
void add_all(Count count, const C *const *rows, const double *factors, double *sums, int64_t columns, Fetch fetch) {
  if (factors) add_each<true>(count, rows, factors, sums, columns, fetch);
  else add_each<false>(count, rows, factors, sums, columns, fetch);
}

// Adds fewer rows than a block has.
template <class T>
void add_rest(const BagColumns &bag, const int64_t *numbers, int count, const double *factors, double *sums) {
  using C = Compute<T>;
  constexpr bool is_wide = std::is_same_v<T, C>;
  C widened[is_wide ? 1 : block_rows * bag_columns];
  const C *rows[block_rows];
  for (int row = 0; row < count; row++) {
    const T *from = row_of<T>(bag.table, numbers[row]);
    if constexpr (is_wide) rows[row] = from;
    else {
      widen(from, widened + row * bag_columns, bag.columns);
      rows[row] = widened + row * bag_columns;
    }
  }
  add_all(count, rows, factors, sums, bag.columns, [](int64_t) {});
}

using tuning::embedding::bag_rows;

// Adds the rows of up to `bag_rows` indices, from index `start` on. Returns how many are not padding.
template <class T> int64_t add_rows(const BagColumns &bag, int64_t start, double *sums) {
  int64_t end = std::min(start + bag_rows, bag.count), counted = 0, rows[bag_rows + block_rows];
  double factors[bag_rows];
  for (int64_t i = start; i < end; i++) {
    if (bag.indices[i] < 0) continue;
    factors[counted] = factor_at<T>(bag.factors, i);
    rows[counted++] = bag.indices[i];
  }
  int64_t known = counted;
  for (int64_t i = end; i < std::min(end + block_rows, bag.known); i++)
    if (bag.indices[i] >= 0) rows[known++] = bag.indices[i];
  const int64_t whole = counted / block_rows * block_rows;
  const auto factors_from = [&](int64_t first) { return bag.factors ? factors + first : nullptr; };
  for_each_row_block<T, bag_columns>(
      whole, bag.columns, [&](int64_t row) { return row_of<T>(bag.table, rows[row]); },
      [&](auto size, const RowBlock<Compute<T>> &block, int64_t first) {
        add_all(size, block.rows, factors_from(first), sums, bag.columns,
                [&](int64_t column) { block.template fetch_next<size>(column); });
      },
      known);
  if (whole < counted) add_rest<T>(bag, rows + whole, int(counted - whole), factors_from(whole), sums);
  return counted;
}

// Adds rows of adjacent elements that are shorter than a vector, with their sums in registers.
template <class T, int columns = lanes<double> - 1> int64_t add_narrow_rows(const BagColumns &bag, double *sums) {
  if constexpr (columns > 1)
    if (bag.columns < columns) return add_narrow_rows<T, columns - 1>(bag, sums);
  double totals[columns] = {};
  int64_t counted = 0;
  for (int64_t i = 0; i < bag.count; i++) {
    if (bag.indices[i] < 0) continue;
    const T *row = row_of<T>(bag.table, bag.indices[i]);
    const double factor = factor_at<T>(bag.factors, i);
    for (int c = 0; c < columns; c++) totals[c] += factor * double(load(row[c]));
    counted++;
  }
  for (int c = 0; c < columns; c++) sums[c] = totals[c];
  return counted;
}

// Adds rows whose elements are not adjacent.
template <class T> int64_t add_strided_rows(const BagColumns &bag, double *sums) {
  int64_t counted = 0;
  for (int64_t i = 0; i < bag.count; i++) {
    if (bag.indices[i] < 0) continue;
    add_row(row_of<T>(bag.table, bag.indices[i]), bag.table.column, factor_at<T>(bag.factors, i), sums, bag.columns);
    counted++;
  }
  return counted;
}

template <class T> void add_bag(const BagColumns &bag) {
  alignas(64) double sums[bag_columns];
  std::fill_n(sums, bag.columns, 0.0);
  int64_t counted = 0;
  if (bag.table.column != 1) counted = add_strided_rows<T>(bag, sums);
  else if (bag.columns > 0 && bag.columns < lanes<double>) counted = add_narrow_rows<T>(bag, sums);
  else
    for (int64_t start = 0; start < bag.count; start += bag_rows) counted += add_rows<T>(bag, start, sums);
  write<T>(sums, bag.mode == BagMode::mean && counted > 0 ? 1 / double(counted) : 1, bag.out, bag.columns,
           bag.is_streamed);
}

// Finds the first of equal maxima. NaN counts as the largest.
template <class T> void find_largest(const BagColumns &bag) {
  T *out = reinterpret_cast<T *>(bag.out);
  std::fill_n(bag.best, bag.columns, -1);
  for (int64_t c = 0; c < bag.columns; c++) out[c] = store<T>(Compute<T>(0));
  for (int64_t i = 0; i < bag.count; i++) {
    if (bag.indices[i] < 0) continue;
    const T *row = row_of<T>(bag.table, bag.indices[i]);
    for (int64_t c = 0; c < bag.columns; c++) {
      Compute<T> number = load(row[c * bag.table.column]), there = load(out[c]);
      if (bag.best[c] >= 0 && !(number > there || (number != number && there == there))) continue;
      out[c] = row[c * bag.table.column];
      bag.best[c] = bag.position + i;
    }
  }
}

template <class T> void bag(const BagColumns &task) {
  switch (task.mode) {
  case BagMode::sum:
  case BagMode::mean: return add_bag<T>(task);
  case BagMode::max: return find_largest<T>(task);
  case BagMode::count: break;
  }
}

// ---------------------------------------------------------------- gradients

template <class T> void row(const RowColumns &task) {
  double sums[bag_columns];
  std::fill_n(sums, task.columns, 0.0);
  for (int64_t k = 0; k < task.count; k++) {
    int64_t number = task.numbers[k], bag = task.bags[number];
    const T *gradient = row_of<T>(task.gradients, bag);
    if (task.mode != BagMode::max) {
      double factor = task.mode == BagMode::mean ? task.shares[bag] : factor_at<T>(task.factors, number);
      add_row(gradient, task.gradients.column, factor, sums, task.columns);
      continue;
    }
    const int64_t *best = task.best + bag * task.width;
    for (int64_t c = 0; c < task.columns; c++)
      if (best[c] == number) sums[c] += double(load(gradient[c * task.gradients.column]));
  }
  write<T>(sums, 1, task.out, task.columns, task.is_streamed);
}

template <class T> void factor(const BagMatrix &table, const BagMatrix &gradients, int64_t width, char *out) {
  const T *a = row_of<T>(table, 0), *b = row_of<T>(gradients, 0);
  double product = summed(
      width, [&](int64_t c) { return double(load(a[c * table.column])) * double(load(b[c * gradients.column])); });
  *reinterpret_cast<T *>(out) = store<T>(Compute<T>(product));
}

template <class T> constexpr EmbeddingKernel kernel() { return {bag<T>, row<T>, factor<T>}; }

} // namespace

extern const Embeddings embeddings = {{kernel<double>(), kernel<float>(), kernel<Float16>(), kernel<BFloat16>()}};

} // namespace orchard::ORCHARD_ISA
