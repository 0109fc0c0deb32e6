// The function "incompleteGamma".
#include "incomplete_gamma.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <cmath>

using namespace orchard;

namespace {

using tuning::elementwise::incomplete_gamma_grain;

// Computes the nodes by Newton's method on the Legendre polynomial, as in src/ops/elementwise/legendre.ts.
GammaRule computed_rule() {
  constexpr int points = GammaRule::points;
  constexpr double pi = 3.14159265358979323846;
  GammaRule rule;
  for (int point = 0; point < points; point++) {
    double x = std::cos(pi * (point + 0.75) / (points + 0.5)), slope = 1;
    for (int step = 0; step < 100; step++) {
      double before = 1, value = x;
      for (int k = 2; k <= points; k++) {
        const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
      }
      slope = points * (x * value - before) / (x * x - 1);
      x -= value / slope;
    }
    rule.at[point] = (1 + x) / 2;
    rule.weight[point] = 1 / ((1 - x * x) * slope * slope);
  }
  return rule;
}

// out = P(a, x), or Q(a, x) if `is_upper`.
void incomplete_gamma(const IncompleteGammaBlock &block, Operands operands) {
  static const GammaRule rule = computed_rule();
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  const bool is_upper = block.is_upper;
  if (dtype != DType::float32 && dtype != DType::float64) fail(ORCHARD_CPU_UNSUPPORTED, "expected float32 or float64");
  const IncompleteGammaRow row = dtype == DType::float64 ? incomplete_gammas().of_double : incomplete_gammas().of_float;
  const char *a = operands.input(0, dtype, block.offsets[0], Extent(count));
  const char *x = operands.input(1, dtype, block.offsets[1], Extent(count));
  char *out = operands.result(2, dtype, block.offsets[2], Extent(count));
  parallel_for(count, incomplete_gamma_grain, [&](int64_t begin, int64_t end) {
    row(rule, is_upper, element(a, dtype, begin), element(x, dtype, begin), element(out, dtype, begin), end - begin);
  });
}

ORCHARD_FUNCTION("incompleteGamma", incomplete_gamma, IncompleteGammaBlock, 3)

} // namespace
