// The function "gammaPair".
#include "incomplete_gamma.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

#include <cmath>

using namespace orchard;

namespace {

using tuning::elementwise::incomplete_gamma_grain;

ORCHARD_EXPORT_NAMES(GammaPair)

// Computes the nodes by Newton's method on the Legendre polynomial, as in src/ops/elementwise/legendre.ts.
GammaRule computed_rule(int points, double depth) {
  constexpr double pi = 3.14159265358979323846;
  GammaRule rule{points, depth, {}, {}};
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

// out = function(a, x). float32 needs a rule of less accuracy.
void gamma_pair(const GammaPairBlock &block, Operands operands) {
  static const GammaRule rules[] = {computed_rule(GammaRule::most_points, 40), computed_rule(20, 24)};
  const DType dtype = block.dtype;
  const int64_t count = block.count;
  const GammaPair function = block.function;
  const double order = block.order;
  if (dtype != DType::float32 && dtype != DType::float64) fail(ORCHARD_CPU_UNSUPPORTED, "expected float32 or float64");
  const bool is_wide = dtype == DType::float64;
  const GammaPairRow row = is_wide ? gamma_pairs().of_double : gamma_pairs().of_float;
  const char *a = operands.input(0, dtype, block.offsets[0], Extent(count));
  const char *x = operands.input(1, dtype, block.offsets[1], Extent(count));
  char *out = operands.result(2, dtype, block.offsets[2], Extent(count));
  parallel_for(count, (is_wide ? 1 : 4) * incomplete_gamma_grain, [&](int64_t begin, int64_t end) {
    row(rules[is_wide ? 0 : 1], function, order, element(a, dtype, begin), element(x, dtype, begin),
        element(out, dtype, begin), end - begin);
  });
}

ORCHARD_FUNCTION("gammaPair", gamma_pair, GammaPairBlock, 3)

} // namespace
