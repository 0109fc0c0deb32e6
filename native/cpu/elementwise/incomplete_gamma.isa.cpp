// The formulas of src/ops/elementwise/incomplete_gamma.ts and gamma_integrals.ts, which other backends compute with
// several operations. They are computed in float64 for both dtypes.
#include "incomplete_gamma.h"

#include "gamma.h"

namespace orchard::ORCHARD_ISA {
namespace {

// x p(x), where p(x) = x^(a - 1) e⁻ˣ/Γ(a) is the density: by Stirling's series from a = 10 on.
double weighted_density(double a, double x) {
  constexpr double two_pi = 6.28318530717958647692;
  if (a < 10) return std::exp(a * std::log(x) - x - lgamma(a));
  const double r = 1 / a, e = (x - a) / a;
  const double error =
      polynomial(r * r, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12) * r;
  return std::exp(a * (std::log1p(e) - e) - error) * std::sqrt(a / two_pi);
}

// P(a, x) for x < 1: xᵃ/Γ(a + 1) · (1 + a Σ (-x)ⁿ/(n! (a + n)))
double power_series(double a, double x) {
  constexpr int terms = 18;
  double factor = -x, sum = factor / (a + 1);
  for (int n = 2; n <= terms; n++) {
    factor *= x * (-1.0 / n);
    sum += factor / (a + n);
  }
  return std::exp(a * std::log(x) - lgamma(a + 1)) * (a * sum + 1);
}

// The integral of e^h over the logarithm s of the distance to x, with h = a t - x (eᵗ - 1) and t = ±s, until h = -40.
double integral(const GammaRule &rule, double a, double x) {
  constexpr double depth = 40;
  const bool is_upper = x >= a;
  const double larger = is_upper ? x : a, width = 2 * depth / larger, slow = depth / 3 / larger;
  const double above = x < 8 ? std::log1p(width) : std::sqrt(width), below = slow + std::sqrt(slow * slow + width);
  const double end = is_upper ? above : below, step = is_upper ? end : -end;
  double terms[GammaRule::points];
  for (int point = 0; point < GammaRule::points; point++) {
    const double t = step * rule.at[point];
    terms[point] = exp(a * t - x * expm1(t)) * rule.weight[point];
  }
  double whole = 0;
  for (double term : terms) whole += term;
  return whole * end;
}

double share(const GammaRule &rule, bool is_upper, double a, double x) {
  constexpr double infinity = __builtin_inf();
  if (!(a >= 0 && x >= 0) || (a == infinity && x == infinity) || (a == 0 && x == 0)) return __builtin_nan("");
  if (a == infinity) return is_upper ? 1 : 0;
  if (x == infinity || a == 0) return is_upper ? 0 : 1;
  if (x < 1) return is_upper ? 1 - power_series(a, x) : power_series(a, x);
  const double part = weighted_density(a, x) * integral(rule, a, x); // of x's side
  return (x >= a) == is_upper ? part : 1 - part;
}

template <class T>
void row(const GammaRule &rule, bool is_upper, const void *a, const void *x, void *out, int64_t count) {
  const T *shapes = static_cast<const T *>(a), *places = static_cast<const T *>(x);
  T *results = static_cast<T *>(out);
  for (int64_t i = 0; i < count; i++) results[i] = T(share(rule, is_upper, double(shapes[i]), double(places[i])));
}

} // namespace

extern const IncompleteGammas incomplete_gammas = {row<double>, row<float>};

} // namespace orchard::ORCHARD_ISA
