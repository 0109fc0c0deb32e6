#include "histogram.h"

#include "tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::sorting::histogram_block;

// Finds the last edge that is not greater than x, for x from the first edge to the last.
template <class T> class Bins {
  using C = Compute<T>;

public:
  // Whether `find_block` supports the bins: their numbers are exact in C, and most elements are surely in one bin.
  bool has_blocks() const { return is_even_ && bins_ < (1 << 24) && scale_ > C(0) && margin() < C(0.25); }

  // Finds the bins of `histogram_block` elements from their distance to the first edge, without reading edges. Gives
  // `outside`, or `unsure` for an element so close to an edge that rounding may lead to the wrong bin.
  void find_block(const T *x, int64_t stride, int32_t *bins) const {
    const C first = first_, last = last_, scale = scale_, least = margin(), most = C(1) - least;
    for (int64_t i = 0; i < histogram_block; i++) {
      const C value = load(x[i * stride]);
      const bool is_inside = (value >= first) & (value <= last);
      const C distance = is_inside ? (value - first) * scale : C(0);
      const int32_t bin = int32_t(distance);
      const C rest = distance - C(bin);
      const bool is_sure = (rest > least) & (rest < most);
      const int32_t found = is_sure ? bin : unsure;
      bins[i] = is_inside ? found : outside;
    }
  }
  static constexpr int32_t outside = -1, unsure = -2;

  explicit Bins(const HistogramPart &part)
      : edges_(static_cast<const T *>(part.edges)), stride_(part.edge_stride), bins_(part.bins), first_(edge(0)),
        last_(edge(part.bins)), is_even_(part.is_even),
        scale_(last_ > first_ && last_ - first_ <= std::numeric_limits<C>::max() ? C(part.bins) / (last_ - first_)
                                                                                 : C(0)) {}

  // Returns -1 if x is outside all bins.
  int64_t find(T value) const {
    const C x = load(value);
    if (!(x >= first_ && x <= last_)) return -1;
    if (x == last_) return bins_ - 1;
    return is_even_ ? find_near(x) : find_by_halves(x);
  }

private:
  // A bound of the rounding errors of a distance, in bins: those of the two operations and of `scale_` are at most
  // 2 ε times the number of bins, and those of the stored edges 2 ε times the largest edge.
  C margin() const {
    const C largest = std::max(std::abs(first_), std::abs(last_));
    return C(4) * std::numeric_limits<C>::epsilon() * (C(bins_) + largest * scale_);
  }
  C edge(int64_t at) const { return load(edges_[at * stride_]); }

  // Computes the bin from the distance to the first edge, then corrects it: rounding may be off by one bin.
  int64_t find_near(C x) const {
    const C distance = (x - first_) * scale_;
    int64_t bin = distance < C(bins_) ? static_cast<int64_t>(distance) : bins_ - 1;
    while (bin > 0 && x < edge(bin)) bin--;
    while (bin + 1 < bins_ && x >= edge(bin + 1)) bin++;
    return bin;
  }
  int64_t find_by_halves(C x) const {
    int64_t begin = 0, count = bins_; // the last edge not greater than x is among these
    while (count > 1) {
      const int64_t half = count / 2;
      begin += edge(begin + half) <= x ? half : 0;
      count -= half;
    }
    return begin;
  }

  const T *edges_;
  int64_t stride_, bins_;
  C first_, last_;
  bool is_even_;
  C scale_;
};

template <class W> using SumOf = std::conditional_t<std::is_floating_point_v<Compute<W>>, double, uint64_t>;

// Counts the elements of whole blocks; returns the number of the first element after them.
template <class T, class Sum>
int64_t count_blocks(const HistogramPart &part, const Bins<T> &bins, const T *x, Sum *sums) {
  int32_t found[histogram_block];
  int64_t at = part.begin;
  for (; at + histogram_block <= part.end; at += histogram_block) {
    const T *block = x + at * part.x_stride;
    bins.find_block(block, part.x_stride, found);
    for (int64_t i = 0; i < histogram_block; i++)
      if (found[i] >= 0) sums[found[i]] += Sum(1);
      else if (found[i] == Bins<T>::unsure) sums[bins.find(block[i * part.x_stride])] += Sum(1);
  }
  return at;
}

template <class T, class W> int64_t add(const HistogramPart &part) {
  const T *x = static_cast<const T *>(part.x);
  const W *weights = static_cast<const W *>(part.weights);
  SumOf<W> *sums = static_cast<SumOf<W> *>(part.sums);
  const auto add_by = [&](int64_t begin, auto find) {
    for (int64_t at = begin; at < part.end; at++) {
      const int64_t bin = find(x[at * part.x_stride]);
      if (bin < 0) continue;
      sums[bin] += weights ? static_cast<SumOf<W>>(load(weights[at * part.weight_stride])) : SumOf<W>(1);
    }
  };
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    const Bins<T> bins(part);
    const int64_t counted = !weights && bins.has_blocks() ? count_blocks(part, bins, x, sums) : part.begin;
    add_by(counted, [&](T value) { return bins.find(value); });
    return 0;
  } else {
    int64_t refused = 0;
    add_by(part.begin, [&](T value) -> int64_t {
      const int64_t bin = value;
      if (uint64_t(bin) < uint64_t(part.bins)) return bin;
      refused = bin;
      return -1;
    });
    return refused;
  }
}

template <DType x, DType weight> constexpr void set(Histograms &table) {
  table.add[static_cast<int>(x)][static_cast<int>(weight)] = add<Storage<x>, Storage<weight>>;
}
template <DType x> constexpr void set_float(Histograms &table) {
  set<x, x>(table);
  set<x, DType::int64>(table);
}
template <DType x> constexpr void set_integer(Histograms &table) {
  set<x, DType::int64>(table);
  set<x, DType::float64>(table);
  set<x, DType::float32>(table);
  set<x, DType::float16>(table);
  set<x, DType::bfloat16>(table);
}
constexpr Histograms all() {
  Histograms table{};
  set_float<DType::float64>(table);
  set_float<DType::float32>(table);
  set_float<DType::float16>(table);
  set_float<DType::bfloat16>(table);
  set<DType::float16, DType::float32>(table);
  set<DType::bfloat16, DType::float32>(table);
  set_integer<DType::int64>(table);
  set_integer<DType::int32>(table);
  return table;
}

} // namespace

extern const Histograms histograms = all();

} // namespace orchard::ORCHARD_ISA
