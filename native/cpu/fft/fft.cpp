// The functions "fft" and "realFft".
#include "fft.h"

#include "../linalg/batches.h"
#include "../parallel.h"
#include "transform.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::fft::most_lane_numbers;
using tuning::fft::numbers_of_chunk;
using tuning::fft::numbers_of_task;

void check_dtype(const char *name, DType dtype) {
  if (dtype != DType::float64 && dtype != DType::float32)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("there is no ") + name + " of " + dtype_names[static_cast<int>(dtype)]);
}

void check_sizes(std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes)
    if (size < 0) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected sizes of at least 0, got " + std::to_string(size));
}

// The numbers of elements before, along and after an axis, and the direction of its transform.
template <class T> struct AxisTransform {
  int64_t outer, length, inner;
  bool inverse;
  T scale;
};

// Whether a vector holds an element of several matrices instead of several adjacent columns: if there are few columns,
// and the matrices fit into a cache as vectors.
template <class T> bool columns_of_matrices(const AxisTransform<T> &axis, int64_t lanes) {
  const int64_t outer = axis.outer, inner = axis.inner, groups = (outer + lanes - 1) / lanes;
  return axis.length * inner <= most_lane_numbers && 3 * groups * inner < 2 * outer * ((inner + lanes - 1) / lanes);
}

// Transforms columns in blocks of adjacent ones. Long columns would not fit into a cache as vectors: they are copied to
// rows first.
template <class T> void transform_columns(const AxisTransform<T> &axis, const T *x, T *out) {
  const int64_t outer = axis.outer, n = axis.length, inner = axis.inner;
  const auto plan = plan_of<T>(n);
  const FftKernels<T> &kernels = fft_kernels<T>();
  const int64_t lanes = kernels.lanes, blocks = (inner + lanes - 1) / lanes;
  const T scale = axis.scale;
  const bool inverse = axis.inverse;
  if (plan->passes && columns_of_matrices(axis, lanes)) {
    const int64_t groups = (outer + lanes - 1) / lanes, numbers = 2 * n * inner;
    ScratchParts<T> works(std::min<int64_t>(thread_count(), groups), scratch_product({n, 2 * inner + 4, lanes}));
    parallel_for(groups, std::max<int64_t>(1, numbers_of_task / (n * inner * lanes)), [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes;
        kernels.planes(*plan->passes,
                       {x + first * numbers, out + first * numbers, numbers, numbers, std::min(lanes, outer - first),
                        inverse, scale},
                       inner, work.data());
      }
    });
    return;
  }
  if (plan->passes) {
    ScratchParts<T> works(thread_count(), scratch_product({n, 4, lanes}));
    const int64_t grain = std::max<int64_t>(1, numbers_of_task / (n * lanes));
    parallel_for(scratch_product({outer, blocks}), grain, [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t at = begin; at < end; at++) {
        const int64_t first = at % blocks * lanes, place = 2 * (at / blocks * n * inner + first);
        kernels.columns(*plan->passes,
                        {x + place, out + place, 2 * inner, 2 * inner, std::min(lanes, inner - first), inverse, scale},
                        work.data());
      }
    });
    return;
  }
  const int64_t width = std::min(lanes, inner);
  Scratch<T> rows(scratch_product({4, n, width}));
  T *in = rows.data(), *results = in + 2 * n * width;
  for (int64_t at = 0; at < outer * blocks; at++) {
    const int64_t first = at % blocks * lanes, place = 2 * (at / blocks * n * inner + first);
    const int64_t count = std::min(width, inner - first);
    for (int64_t j = 0; j < n; j++)
      for (int64_t c = 0; c < count; c++) std::copy_n(x + place + 2 * (j * inner + c), 2, in + 2 * (c * n + j));
    transform_rows<T>(*plan, {in, results, 2 * n, 2 * n, count, inverse, scale});
    for (int64_t j = 0; j < n; j++)
      for (int64_t c = 0; c < count; c++) std::copy_n(results + 2 * (c * n + j), 2, out + place + 2 * (j * inner + c));
  }
}

template <class T> void transform_axis(const AxisTransform<T> &axis, const T *x, T *out) {
  if (axis.inner > 1) return transform_columns(axis, x, out);
  const int64_t n = axis.length;
  transform_rows<T>(*plan_of<T>(n), {x, out, 2 * n, 2 * n, axis.outer, axis.inverse, axis.scale});
}

// Passes after the first work in place.
template <class T> void run_fft(const FftBlock &block, Operands operands) {
  const int64_t numbers = scratch_product({block.outer[0], block.length[0], block.inner[0]});
  const int64_t passes = block.passes;
  const T *x = operands.inputs<T>(0, block.offsets[0], Extent(block.is_real ? numbers : 2 * numbers));
  T *out = operands.results<T>(1, block.offsets[1], Extent(2 * numbers));
  if (numbers == 0) return;
  if (block.is_real) {
    parallel_for(numbers, numbers_of_task, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[2 * i] = x[i], out[2 * i + 1] = 0;
    });
    x = out;
  }
  for (int64_t pass = 0; pass < passes; pass++) {
    const T scale = pass == 0 ? T(double(block.scale)) : T(1);
    const AxisTransform<T> axis = {block.outer[pass], block.length[pass], block.inner[pass], block.inverse, scale};
    transform_axis<T>(axis, pass == 0 ? x : out, out);
  }
}

void fft(const FftBlock &block, Operands operands) {
  check_dtype("fft", block.dtype);
  const int64_t passes = block.passes;
  if (passes < 1 || passes > int(std::extent_v<decltype(FftBlock::outer)>))
    fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected 1 to 8 axes, got " + std::to_string(passes));
  for (int64_t pass = 0; pass < passes; pass++) {
    check_sizes({block.outer[pass], block.length[pass], block.inner[pass]});
    if (scratch_product({block.outer[pass], block.length[pass], block.inner[pass]}) !=
        scratch_product({block.outer[0], block.length[0], block.inner[0]}))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected as many elements along each axis");
  }
  if (block.dtype == DType::float64) run_fft<double>(block, operands);
  else run_fft<float>(block, operands);
}

// Even lengths are transformed as half as many complex numbers; odd ones as complex numbers.
template <class T> class RealRows {
public:
  RealRows(const RealFftBlock &block, const T *x, T *out)
      : x_(x), out_(out), rows_(block.rows), n_(block.length), m_(n_ / 2 + 1), inverse_(block.inverse),
        scale_(T(double(block.scale))) {}

  // Short rows: as many at once as a vector has lanes.
  bool in_lanes(bool to_real) const {
    const auto plan = plan_of<T>(n_ % 2 == 0 ? n_ / 2 : n_);
    if (!plan->passes || (plan->split && rows_ <= kernels_.lanes / 4)) return false;
    const RealPasses<T> real = {plan->passes.get(), plan->half_roots.data(), n_};
    const int64_t lanes = kernels_.lanes, groups = (rows_ + lanes - 1) / lanes;
    const int64_t in = to_real ? 2 * m_ : n_, out = to_real ? n_ : 2 * m_;
    ScratchParts<T> works(std::min<int64_t>(thread_count(), groups), scratch_product({plan->length + 1, 4, lanes}));
    parallel_for(groups, std::max<int64_t>(1, numbers_of_task / (n_ * lanes)), [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part work(works);
      for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * lanes;
        const Lines<T> lines = {x_ + first * in, out_ + first * out, in, out, std::min(lanes, rows_ - first), inverse_,
                                scale_};
        (to_real ? kernels_.rows_of_spectra : kernels_.spectra_of_rows)(real, lines, work.data());
      }
    });
    return true;
  }

  void to_spectrum() const {
    if (in_lanes(false)) return;
    if (n_ % 2 == 0) {
      const int64_t h = n_ / 2;
      const auto plan = plan_of<T>(h);
      transform_rows<T>(*plan, {x_, out_, n_, 2 * m_, rows_, false, scale_});
      each(rows_, [&](int64_t row) { kernels_.unpack(plan->half_roots.data(), h, inverse_, out_ + row * 2 * m_); });
      return;
    }
    in_chunks([&](int64_t first, int64_t count, T *wide, T *results) {
      each(count, [&](int64_t row) {
        for (int64_t j = 0; j < n_; j++) {
          wide[2 * (row * n_ + j)] = x_[(first + row) * n_ + j];
          wide[2 * (row * n_ + j) + 1] = 0;
        }
      });
      transform_rows<T>(*plan_of<T>(n_), {wide, results, 2 * n_, 2 * n_, count, inverse_, scale_});
      each(count, [&](int64_t row) {
        T *to = out_ + (first + row) * 2 * m_;
        std::copy_n(results + row * 2 * n_, 2 * m_, to);
        to[1] = 0;
      });
    });
  }

  void to_real() const {
    if (in_lanes(true)) return;
    const auto plan = plan_of<T>(n_ % 2 == 0 ? n_ / 2 : n_);
    in_chunks([&](int64_t first, int64_t count, T *wide, T *results) {
      const int64_t length = plan->length;
      each(count, [&](int64_t row) {
        const T *from = x_ + (first + row) * 2 * m_;
        T *to = wide + row * 2 * length;
        if (n_ % 2 == 0) return kernels_.pack(plan->half_roots.data(), length, inverse_, from, to);
        to[0] = from[0];
        to[1] = 0;
        for (int64_t k = 1; k < m_; k++) {
          to[2 * k] = to[2 * (n_ - k)] = from[2 * k];
          to[2 * k + 1] = from[2 * k + 1];
          to[2 * (n_ - k) + 1] = -from[2 * k + 1];
        }
      });
      if (n_ % 2 == 0) return transform_rows<T>(*plan, {wide, out_ + first * n_, n_, n_, count, true, scale_});
      transform_rows<T>(*plan, {wide, results, 2 * n_, 2 * n_, count, inverse_, scale_});
      each(count, [&](int64_t row) {
        for (int64_t j = 0; j < n_; j++) out_[(first + row) * n_ + j] = results[2 * (row * n_ + j)];
      });
    });
  }

private:
  template <class Body> void each(int64_t count, Body &&body) const {
    parallel_for(count, std::max<int64_t>(1, numbers_of_task / n_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) body(row);
    });
  }

  // Calls body(first, count, scratch, more scratch) for groups of rows that fit into a cache, with 2 n numbers per row.
  template <class Body> void in_chunks(Body &&body) const {
    const int64_t most = std::min(rows_, std::max<int64_t>(16 * thread_count(), numbers_of_chunk / n_));
    Scratch<T> scratch(scratch_product({4, most, n_}));
    for (int64_t first = 0; first < rows_; first += most)
      body(first, std::min(most, rows_ - first), scratch.data(), scratch.data() + 2 * most * n_);
  }

  const FftKernels<T> &kernels_ = fft_kernels<T>();
  const T *x_;
  T *out_;
  int64_t rows_, n_, m_;
  bool inverse_;
  T scale_;
};

template <class T> void run_real(const RealFftBlock &block, Operands operands) {
  const int64_t rows = block.rows, n = block.length;
  const int64_t numbers = scratch_product({rows, n}), pairs = scratch_product({rows, 2, n / 2 + 1});
  const bool to_real = block.to_real;
  const T *x = operands.inputs<T>(0, block.offsets[0], Extent(to_real ? pairs : numbers));
  T *out = operands.results<T>(1, block.offsets[1], Extent(to_real ? numbers : pairs));
  if (numbers == 0) return;
  const RealRows<T> real(block, x, out);
  if (to_real) real.to_real();
  else real.to_spectrum();
}

void real_fft(const RealFftBlock &block, Operands operands) {
  check_dtype("realFft", block.dtype);
  check_sizes({block.rows, block.length});
  if (block.dtype == DType::float64) run_real<double>(block, operands);
  else run_real<float>(block, operands);
}

ORCHARD_FUNCTION("fft", fft, FftBlock, 2)
ORCHARD_FUNCTION("realFft", real_fft, RealFftBlock, 2)

} // namespace
