// The formulas of src/ops/elementwise/incomplete_gamma.ts, gamma_integrals.ts and zeta.ts, which other backends compute
// with several operations. They are computed in float64 for both dtypes.
#include "incomplete_gamma.h"

#include "zeta.h"

namespace orchard::ORCHARD_ISA {
namespace {

constexpr double half_log_two_pi = 0.91893853320467274178, two_pi = 6.28318530717958647692;

// Stirling's series of ln Γ(a) beyond (a - ½) ln a - a + ½ ln 2π, as a function of r = 1/a.
inline double stirling_series(double r) {
  return polynomial(r * r, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12) * r;
}

// ---------------------------------------------------------------- one element, for float64

// x p(x), where p(x) = x^(a - 1) e⁻ˣ/Γ(a) is the density: by Stirling's series from a = 10 on.
double weighted_density(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - lgamma(a));
  const double e = (x - a) / a;
  return std::exp(a * (std::log1p(e) - e) - stirling_series(1 / a)) * std::sqrt(a / two_pi);
}

// 1 + a Σ (-x)ⁿ/(n! (a + n)) for x < 1
template <int terms> inline double power_series(double a, double x) {
  double factor = -x, sum = factor / (a + 1);
  for (int n = 2; n <= terms; n++) {
    factor *= x * (-1.0 / n);
    sum += factor / (a + n);
  }
  return a * sum + 1;
}

// The integral of e^h over the logarithm s of the distance to x, with h = a t - x (eᵗ - 1) and t = ±s, ends where h is
// -depth. Returns the step from 0 to this end, which is positive above x and negative below.
inline double step_of_integral(double a, double x, double depth) {
  const bool is_upper = x >= a;
  const double larger = is_upper ? x : a, width = 2 * depth / larger, slow = depth / 3 / larger;
  const double near = log1p(width), far = std::sqrt(width), below = slow + std::sqrt(slow * slow + width);
  return is_upper ? (x < 8 ? near : far) : -below;
}

double integral(const GammaRule &rule, double a, double x) {
  const double step = step_of_integral(a, x, rule.depth);
  double terms[GammaRule::most_points];
  for (int point = 0; point < rule.points; point++) {
    const double t = step * rule.at[point];
    terms[point] = exp(a * t - x * expm1(t)) * rule.weight[point];
  }
  double whole = 0;
  for (int point = 0; point < rule.points; point++) whole += terms[point];
  return whole * std::fabs(step);
}

// The values at the bounds of the domain, and NaN outside of it.
inline double with_limits(double value, double a, double x, bool is_upper) {
  constexpr double infinite = __builtin_inf();
  const double zero = is_upper ? 1 : 0, one = 1 - zero;
  const double limited = a == infinite ? zero : ((x == infinite) | (a == 0)) ? one : value;
  const bool is_inside = (a >= 0) & (x >= 0), is_ambiguous = (a == x) & ((a == 0) | (a == infinite));
  return is_ambiguous || !is_inside ? __builtin_nan("") : limited;
}
inline bool is_regular(double a, double x) {
  return (a > 0) & (a < __builtin_inf()) & (x >= 0) & (x < __builtin_inf());
}

double share(const GammaRule &rule, bool is_upper, double a, double x) {
  if (!is_regular(a, x)) return with_limits(0, a, x, is_upper);
  if (x < 1) {
    const double lower = std::exp(a * std::log(x) - lgamma(a + 1)) * power_series<18>(a, x);
    return is_upper ? 1 - lower : lower;
  }
  const double part = weighted_density(a, x) * integral(rule, a, x); // of x's side
  return (x >= a) == is_upper ? part : 1 - part;
}

void shares(const GammaRule &rule, bool is_upper, const double *a, const double *x, double *out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = share(rule, is_upper, a[i], x[i]);
}

// ---------------------------------------------------------------- many elements, for float32

// ln Γ(a) for a > 0. Below 10, the argument is raised by 16: a (a + 1) … (a + 15) is the product of t + k (15 - k) with
// t = a (a + 15).
inline double log_gamma(double a) {
  const bool is_near = a < 10;
  const double t = is_near ? a * (a + 15) : 1.0;
  const double product = t * (t + 14) * (t + 26) * (t + 36) * (t + 44) * (t + 50) * (t + 54) * (t + 56);
  const double raised = is_near ? a + 16 : a, steps = is_near ? log(product) : 0.0;
  return (raised - 0.5) * log(raised) - raised + half_log_two_pi + stirling_series(1 / raised) - steps;
}

// Elements are computed in parts, without branches and in loops without other loops, which compilers vectorize. A part
// of a few elements is shorter, or a call of a few elements would take as long as one of 64.
constexpr int part_elements = 64, short_part = 8;
using GammaNumbers = double[part_elements];

// e^t - 1 for |t| < 100, by Taylor's series for |r| ≤ ln 2/2. Its error is below 2^-32 e^t. The exponents of an
// integral, which are from -depth to 0, are off by less where they are near 0.
inline double rough_expm1(double t) {
  const double n = to_whole(t * float64::log2_e), r = float64::reduced_by_ln2(t, n);
  const double p = polynomial(r, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5);
  const double power = float64::power_of_two(int32_t(n));
  return fused(power, fused(p * r, r, r), power - 1.0);
}

// Sets `sums` to the integrals at x ≥ 1.
template <int elements>
[[gnu::flatten]] inline void integrate(const GammaRule &rule, const GammaNumbers &a, const GammaNumbers &x,
                                       GammaNumbers &sums) {
  GammaNumbers steps;
  for (int i = 0; i < elements; i++) {
    steps[i] = step_of_integral(a[i], x[i], rule.depth);
    sums[i] = 0;
  }
  for (int point = 0; point < rule.points; point++)
    for (int i = 0; i < elements; i++) {
      const double t = steps[i] * rule.at[point];
      const float h = float(a[i] * t - x[i] * rough_expm1(t)); // from -depth to 0: its rounding costs little
      sums[i] += double(exp(h)) * rule.weight[point];
    }
  for (int i = 0; i < elements; i++) sums[i] *= std::fabs(steps[i]);
}

// Sets `sums` to Σ (-x)ⁿ/(n! (a + n)) from n = 1 on, for x < 1.
template <int elements> inline void add_power_series(const GammaNumbers &a, const GammaNumbers &x, GammaNumbers &sums) {
  constexpr int terms = 12;
  GammaNumbers factors;
  for (int i = 0; i < elements; i++) {
    sums[i] = 0;
    factors[i] = 1;
  }
  for (int n = 1; n <= terms; n++)
    for (int i = 0; i < elements; i++) {
      factors[i] *= x[i] * (-1.0 / n);
      sums[i] += factors[i] / (a[i] + n);
    }
}

// Elements on one side of x = 1, which are computed together once there are `part_elements`, and their places in the
// result.
struct GammaSide {
  GammaNumbers a, x, values;
  int64_t places[part_elements];
  int count = 0;
};

template <int elements> [[gnu::flatten]] inline void compute_near(const GammaRule &, bool is_upper, GammaSide &side) {
  add_power_series<elements>(side.a, side.x, side.values);
  for (int i = 0; i < elements; i++) {
    const double a = side.a[i], of_gamma = log_gamma(a);
    const double lower = exp(a * log(side.x[i]) - of_gamma - log(a)) * (a * side.values[i] + 1);
    side.values[i] = is_upper ? 1 - lower : lower;
  }
}

template <int elements>
[[gnu::flatten]] inline void compute_far(const GammaRule &rule, bool is_upper, GammaSide &side) {
  integrate<elements>(rule, side.a, side.x, side.values);
  for (int i = 0; i < elements; i++) {
    const double a = side.a[i], x = side.x[i], e = (x - a) / a;
    const double of_far = a * (log1p(e) - e) - stirling_series(1 / a) + 0.5 * log(a / two_pi);
    const double density = exp(a < 10 ? a * log(x) - x - log_gamma(a) : of_far), part = density * side.values[i];
    side.values[i] = (x >= a) == is_upper ? part : 1 - part;
  }
}

void shares(const GammaRule &rule, bool is_upper, const float *a, const float *x, float *out, int64_t count) {
  GammaSide near{}, far{};
  std::fill_n(near.a, part_elements, 1.0), std::fill_n(near.x, part_elements, 0.5); // unused elements are regular too
  std::fill_n(far.a, part_elements, 1.0), std::fill_n(far.x, part_elements, 1.0);
  const auto finish = [&](GammaSide &side) {
    const bool is_short = side.count <= short_part;
    if (&side == &near) (is_short ? compute_near<short_part> : compute_near<part_elements>)(rule, is_upper, side);
    else (is_short ? compute_far<short_part> : compute_far<part_elements>)(rule, is_upper, side);
    for (int i = 0; i < side.count; i++) {
      const int64_t place = side.places[i];
      out[place] = float(with_limits(side.values[i], a[place], x[place], is_upper));
    }
    side.count = 0;
  };
  for (int64_t i = 0; i < count; i++) {
    if (!is_regular(a[i], x[i])) {
      out[i] = float(with_limits(0, a[i], x[i], is_upper));
      continue;
    }
    GammaSide &side = x[i] < 1 ? near : far;
    side.a[side.count] = a[i], side.x[side.count] = x[i], side.places[side.count++] = i;
    if (side.count == part_elements) finish(side);
  }
  if (near.count > 0) finish(near);
  if (far.count > 0) finish(far);
}

template <class T>
void row(const GammaRule &rule, GammaPair function, double order, const void *first, const void *second, void *result,
         int64_t count) {
  const T *a = static_cast<const T *>(first), *x = static_cast<const T *>(second);
  T *out = static_cast<T *>(result);
  switch (function) {
  case GammaPair::lower: return shares(rule, false, a, x, out, count);
  case GammaPair::upper: return shares(rule, true, a, x, out, count);
  case GammaPair::zeta: return zetas(a, x, out, count);
  case GammaPair::polygamma: return polygammas(int(order), x, out, count);
  case GammaPair::count: break;
  }
}

} // namespace

extern const GammaPairs gamma_pairs = {row<double>, row<float>};

} // namespace orchard::ORCHARD_ISA
