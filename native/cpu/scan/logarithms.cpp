// The function "logcumsumexp". Sums are in float64 and rounded once.
#include "logarithms.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <cmath>
#include <limits>

using namespace orchard;

namespace {

using tuning::scan::logarithm_elements;

// Keeps Σ exp(x) as exp(largest) · sum, with sum ≥ 1. Equal elements are compared first, since the difference of
// infinities is NaN.
class RunningSum {
public:
  double add(double x) {
    if (x == largest_) sum_ += 1;
    else if (x < largest_) sum_ += std::exp(x - largest_);
    else { // also NaN, which stays
      sum_ = sum_ * std::exp(largest_ - x) + 1;
      largest_ = x;
    }
    return largest_ + std::log(sum_);
  }

private:
  double largest_ = -std::numeric_limits<double>::infinity(), sum_ = 0;
};

template <class T> void run(const Slices<2> &slices, const Operands &operands) {
  const T *x = operands.inputs<T>(0, slices.offsets[0], slices.extent(0));
  T *out = operands.results<T>(1, slices.offsets[1], slices.extent(1));
  if (slices.is_empty()) return;
  const int64_t length = slices.length;
  parallel_for(slices.count(), std::max<int64_t>(1, logarithm_elements / length), [&](int64_t begin, int64_t end) {
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[2], int64_t, int64_t count) {
      for (int64_t slice = 0; slice < count; slice++) {
        const T *from = x + offsets[0] + slice * slices.nest.run_stride(0);
        T *to = out + offsets[1] + slice * slices.nest.run_stride(1);
        RunningSum sum;
        for (int64_t i = 0; i < length; i++)
          to[i * slices.along[1]] = ORCHARD_ISA::store<T>(
              static_cast<Compute<T>>(sum.add(double(ORCHARD_ISA::load(from[i * slices.along[0]])))));
      }
    });
  });
}

void logcumsumexp(const LogcumsumexpBlock &block, Operands operands) {
  const Slices<2> slices(block.slices);
  const DType dtype = block.dtype;
  if (dtype == DType::float64) run<double>(slices, operands);
  else if (dtype == DType::float32) run<float>(slices, operands);
  else if (dtype == DType::float16) run<Float16>(slices, operands);
  else if (dtype == DType::bfloat16) run<BFloat16>(slices, operands);
  else fail(ORCHARD_CPU_UNSUPPORTED, "expected floats");
}

ORCHARD_FUNCTION("logcumsumexp", logcumsumexp, LogcumsumexpBlock, 2)

} // namespace
