// The functions "histogram", "evenHistogram", "bincount" and "integerExtent". Elements are divided into parts by the
// number of elements and bins only, and the parts' sums are added in order, so results do not depend on the number of
// threads.
#include "histogram.h"

#include "../indexing/indices.h"
#include "../memory.h"
#include "../parallel.h"
#include "extents.h"
#include "tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

using namespace orchard;

namespace {

using tuning::sorting::least_histogram_part;
using tuning::sorting::most_histogram_parts;

// Returns the number of parts. The sums of all parts together have at most as many numbers as there are elements.
int64_t parts_of(int64_t count, int64_t bins) {
  return std::clamp<int64_t>(std::min(count / least_histogram_part, count / bins), 1, most_histogram_parts);
}

// out[b] = Σ over parts of sums[part][b].
template <class Sum> void finish(const Sum *sums, int64_t parts, int64_t bins, DType dtype, char *out, int64_t stride) {
  const auto total = [&](int64_t bin) {
    Sum sum = sums[bin];
    for (int64_t part = 1; part < parts; part++) sum += sums[part * bins + bin];
    return sum;
  };
  const auto write = [&](auto type) {
    using T = typename decltype(type)::type;
    T *to = reinterpret_cast<T *>(out);
    for (int64_t bin = 0; bin < bins; bin++)
      to[bin * stride] = ORCHARD_ISA::store<T>(static_cast<Compute<T>>(total(bin)));
  };
  if constexpr (std::is_same_v<Sum, double>) {
    if (dtype == DType::float64) write(Type<double>{});
    else if (dtype == DType::float32) write(Type<float>{});
    else if (dtype == DType::float16) write(Type<Float16>{});
    else write(Type<BFloat16>{});
  } else write(Type<int64_t>{});
}

template <class Sum> void add_parts(AddToHistogram add, HistogramPart whole, DType dtype, char *out, int64_t stride) {
  const int64_t count = whole.end, parts = parts_of(count, whole.bins);
  Scratch<Sum> sums(scratch_product({parts, whole.bins}));
  std::fill_n(sums.data(), parts * whole.bins, Sum(0));
  BadIndex bad;
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) {
      HistogramPart stretch = whole;
      stretch.begin = count * part / parts, stretch.end = count * (part + 1) / parts;
      stretch.sums = sums.data() + part * whole.bins;
      if (const int64_t refused = add(stretch)) bad.set(refused);
    }
  });
  bad.check(whole.bins);
  finish(sums.data(), parts, whole.bins, dtype, out, stride);
}

// Adds all elements, in parts.
void add_all(DType dtype, DType out_dtype, const HistogramPart &whole, char *out, int64_t stride) {
  const AddToHistogram add = histograms().add[static_cast<int>(dtype)][static_cast<int>(out_dtype)];
  if (!add)
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected elements of floats or indices, and weights of floats or int64");
  if (out_dtype == DType::int64) add_parts<uint64_t>(add, whole, out_dtype, out, stride);
  else add_parts<double>(add, whole, out_dtype, out, stride);
}

void check_sizes(int64_t count, int64_t bins) {
  if (count < 0 || bins < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least one bin");
}

void histogram(const HistogramBlock &block, Operands operands) {
  const DType dtype = block.dtype, out_dtype = block.out_dtype;
  const int64_t count = block.count, bins = block.bins;
  check_sizes(count, bins);
  const auto extent = [&](int64_t elements, HistogramOperand operand) {
    return Extent().along(elements, block.strides[operand]);
  };
  const char *x = operands.input(histogram_x, dtype, block.offsets[histogram_x], extent(count, histogram_x));
  const char *edges =
      operands.input(histogram_edges, dtype, block.offsets[histogram_edges], extent(bins + 1, histogram_edges));
  const char *weights = block.has_weights
                            ? operands.input(histogram_weights, out_dtype, block.offsets[histogram_weights],
                                             extent(count, histogram_weights))
                            : nullptr;
  char *out = operands.result(histogram_out, out_dtype, block.offsets[histogram_out], extent(bins, histogram_out));
  if (dtype == DType::int64 || dtype == DType::int32) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected elements of floats");
  add_all(dtype, out_dtype,
          {x, edges, weights, block.strides[histogram_x], block.strides[histogram_edges],
           block.strides[histogram_weights], 0, count, bins, block.is_even, nullptr},
          out, block.strides[histogram_out]);
}

void bincount(const BincountBlock &block, Operands operands) {
  const DType dtype = block.dtype, out_dtype = block.out_dtype;
  const int64_t count = block.count, bins = block.bins;
  check_sizes(count, bins);
  const char *x = operands.input(0, dtype, block.offsets[0], Extent().along(count, block.strides[0]));
  const char *weights = block.has_weights
                            ? operands.input(1, out_dtype, block.offsets[1], Extent().along(count, block.strides[1]))
                            : nullptr;
  char *out = operands.result(2, out_dtype, block.offsets[2], Extent().along(bins, block.strides[2]));
  if (dtype != DType::int64 && dtype != DType::int32) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected indices");
  add_all(dtype, out_dtype,
          {x, nullptr, weights, block.strides[0], 0, block.strides[1], 0, count, bins, false, nullptr}, out,
          block.strides[2]);
}

// ---------------------------------------------------------------- intervals of equal width

// The smallest and the largest element; NaN if there is a NaN. There may be none, as for the interval from 0 to 1.
template <class T> std::pair<double, double> extent_of(const T *x, int64_t count, int64_t stride) {
  if (count == 0) return {0, 1};
  Compute<T> least = ORCHARD_ISA::load(x[0]), most = least;
  bool has_nan = false;
  for (int64_t i = 0; i < count; i++) {
    const Compute<T> value = ORCHARD_ISA::load(x[i * stride]);
    least = value < least ? value : least;
    most = value > most ? value : most;
    has_nan |= value != value;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return has_nan ? std::pair(nan, nan) : std::pair(double(least), double(most));
}

template <class T> void count_evenly(const EvenHistogramBlock &block, const Operands &operands) {
  const DType dtype = block.dtype;
  const int64_t count = block.count, bins = block.bins, stride = block.stride;
  check_sizes(count, bins);
  const T *x = operands.inputs<T>(0, block.offset, Extent().along(count, stride));
  T *hist = operands.results<T>(1, 0, Extent(bins));
  T *edges = operands.results<T>(2, 0, Extent(bins + 1));
  double *bounds = operands.results<double>(3, 0, Extent(2));
  auto [first, last] =
      block.has_range ? std::pair<double, double>(block.first, block.last) : extent_of(x, count, stride);
  bounds[0] = first, bounds[1] = last;
  if (!(std::isfinite(first) && std::isfinite(last) && first <= last)) return;
  const double margin = first < last ? 0 : double(block.margin), from = first - margin, to = last + margin;
  for (int64_t bin = 0; bin <= bins; bin++) {
    const double edge = bin == bins ? to : from + (to - from) * double(bin) / double(bins);
    edges[bin] = ORCHARD_ISA::store<T>(static_cast<Compute<T>>(edge));
  }
  Scratch<int64_t> counts(bins);
  add_all(dtype, DType::int64, {x, edges, nullptr, stride, 1, 0, 0, count, bins, true, nullptr},
          reinterpret_cast<char *>(counts.data()), 1);
  for (int64_t bin = 0; bin < bins; bin++)
    hist[bin] = ORCHARD_ISA::store<T>(static_cast<Compute<T>>(counts.data()[bin]));
}

void even_histogram(const EvenHistogramBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  if (dtype == DType::float64) count_evenly<double>(block, operands);
  else if (dtype == DType::float32) count_evenly<float>(block, operands);
  else if (dtype == DType::float16) count_evenly<Float16>(block, operands);
  else if (dtype == DType::bfloat16) count_evenly<BFloat16>(block, operands);
  else fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected elements of floats");
}

void integer_extent(const IntegerExtentBlock &block, Operands operands) {
  const int64_t count = block.count, stride = block.stride;
  double *found = operands.results<double>(1, 0, Extent(2));
  if (count < 1) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected at least one integer");
  with_indices(operands, 0, block.dtype, block.offset, Extent().along(count, stride), [&](auto *x) {
    auto least = x[0], most = x[0];
    for (int64_t i = 0; i < count; i++) {
      const auto value = x[i * stride];
      least = value < least ? value : least;
      most = value > most ? value : most;
    }
    found[0] = double(least), found[1] = double(most);
  });
}

ORCHARD_FUNCTION("evenHistogram", even_histogram, EvenHistogramBlock, 4)
ORCHARD_FUNCTION("integerExtent", integer_extent, IntegerExtentBlock, 2)
ORCHARD_FUNCTION("histogram", histogram, HistogramBlock, 4)
ORCHARD_FUNCTION("bincount", bincount, BincountBlock, 3)

} // namespace
