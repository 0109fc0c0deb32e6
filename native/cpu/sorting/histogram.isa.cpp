#include "histogram.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

// Finds the last edge that is not greater than x, for x from the first edge to the last.
template <class T> class Bins {
  using C = Compute<T>;

public:
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

template <class T, class W> int64_t add(const HistogramPart &part) {
  const T *x = static_cast<const T *>(part.x);
  const W *weights = static_cast<const W *>(part.weights);
  SumOf<W> *sums = static_cast<SumOf<W> *>(part.sums);
  const auto add_by = [&](auto find) {
    for (int64_t at = part.begin; at < part.end; at++) {
      const int64_t bin = find(x[at * part.x_stride]);
      if (bin < 0) continue;
      sums[bin] += weights ? static_cast<SumOf<W>>(load(weights[at * part.weight_stride])) : SumOf<W>(1);
    }
  };
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    const Bins<T> bins(part);
    add_by([&](T value) { return bins.find(value); });
    return 0;
  } else {
    int64_t refused = 0;
    add_by([&](T value) -> int64_t {
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
