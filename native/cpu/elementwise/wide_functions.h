// More functions of float64 without branches (see wide.h): circular, hyperbolic and inverse functions, log10 and the
// error function. Those that math.h declares are in the namespace float64: rows of elements use them, and formulas that
// branch use the C library's. Errors are within 4 units in the last place (erfc: 6). Sources of coefficients without a
// derivation here: FreeBSD's k_sin.c, k_cos.c, e_asin.c, s_atan.c and e_log10.c.
#pragma once

#include "math.h"

namespace orchard::ORCHARD_ISA {

namespace float64 {

constexpr double pi = 3.14159265358979323846, half_pi = 1.57079632679489661923, half_pi_low = 6.123233995736766e-17;

inline double with_sign(double magnitude, double sign) { return std::copysign(magnitude, sign); }

// ---------------------------------------------------------------- circular functions: |x| = q·π/2 + r

// The largest argument for which the reduction is accurate: q has 20 bits, so its products with 33 bits are exact.
constexpr double largest_angle = 1.0e6;

struct Angle {
  double sine, cosine; // of r
  uint64_t quadrant;   // q in its lowest bits
};

// π/2 is the sum of three parts of 33 bits and a rest. r + low is the remainder, with 151 bits of π/2.
inline Angle angle(double x) {
  constexpr double rounder = 6755399441055744.0;
  constexpr double first = 1.5707963267341256, second = 6.077100506303966e-11, third = 2.0222662487111665e-21;
  constexpr double after_second = 2.0222662487959506e-21, after_third = 8.4784276603689e-32;
  const double a = std::fabs(x), shifted = a * 0.63661977236758134308 + rounder, q = shifted - rounder;
  const double one = a - q * first;
  const double two = one - q * second, two_low = q * after_second - ((one - two) - q * second);
  const double near = two - q * third, near_low = q * after_third - ((two - near) - q * third);
  const bool cancels = std::fabs(two) < 1e-6; // then the second rest is not accurate enough
  const double high = cancels ? near : two, rest = cancels ? near_low : two_low;
  const double r = high - rest, low = (high - r) - rest, z = r * r;
  const double p = polynomial(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                              -1.98412698298579493134e-04, 8.33333333332248946124e-03);
  const double sine = r - ((z * (0.5 * low - z * r * p) - low) + z * r * 1.66666666666666324348e-01);
  const double c =
      z * polynomial(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                     2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  const double half = 0.5 * z, w = 1.0 - half;
  return {sine, w + (((1.0 - w) - half) + (z * c - r * low)), bits_of(shifted)};
}

inline double negated_if(uint64_t lowest_bit, double x) { return float_of(bits_of(x) ^ lowest_bit << 63); }

inline double sine(double x) {
  const Angle a = angle(x);
  const double magnitude = a.quadrant & 1 ? a.cosine : a.sine;
  return negated_if((a.quadrant >> 1 ^ bits_of(x) >> 63) & 1, magnitude);
}
inline double cosine(double x) {
  const Angle a = angle(x);
  return negated_if((a.quadrant + 1) >> 1 & 1, a.quadrant & 1 ? a.sine : a.cosine);
}
inline double tangent(double x) {
  const Angle a = angle(x);
  const bool is_odd = a.quadrant & 1;
  const double quotient = (is_odd ? a.cosine : a.sine) / (is_odd ? a.sine : a.cosine);
  return negated_if((a.quadrant ^ bits_of(x) >> 63) & 1, quotient);
}

// (asin s/s − 1) for z = s² and 0 ≤ s ≤ ½
inline double arcsine_excess(double z) {
  const double above =
      polynomial(z, 3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
                 2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01);
  const double below = polynomial(z, 7.70381505559019352791e-02, -6.88283971605453293030e-01,
                                  2.02094576023350569471e+00, -2.40339491173441421878e+00, 1.0);
  return z * above / below;
}

} // namespace float64

// For |x| > ½, acos |x| = 2·asin √((1 − |x|)/2), where 1 − |x| is exact. NaN for |x| > 1.
inline double asin(double x) {
  const double a = std::fabs(x);
  const bool is_large = a > 0.5;
  const double z = is_large ? 0.5 * (1.0 - a) : a * a, s = is_large ? std::sqrt(z) : a;
  const double excess = s * float64::arcsine_excess(z);
  const double large = float64::half_pi - (2.0 * (s + excess) - float64::half_pi_low);
  return float64::with_sign(is_large ? large : s + excess, x);
}

inline double acos(double x) {
  const double a = std::fabs(x);
  const bool is_large = a > 0.5, is_negative = x < 0.0;
  const double z = is_large ? 0.5 * (1.0 - a) : a * a, s = is_large ? std::sqrt(z) : a;
  const double excess = s * float64::arcsine_excess(z);
  const double large = is_negative ? float64::pi - 2.0 * (s + (excess - float64::half_pi_low)) : 2.0 * (s + excess);
  const double small = float64::half_pi - (x - (float64::half_pi_low - (is_negative ? -excess : excess)));
  return is_large ? large : small;
}

namespace float64 {

// The smaller of |x| and |y| divided by the larger has an arctangent from 0 to π/4. From tan π/8 on, it is π/4 minus
// the arctangent of (larger − smaller)/(larger + smaller). The octant determines the multiple of π/4 that is added.
inline double arctangent(double y, double x) {
  const double given_a = std::fabs(x), given_b = std::fabs(y);
  const bool are_infinite = (given_a == infinity) & (given_b == infinity);
  const double a = are_infinite ? 1.0 : given_a, b = are_infinite ? 1.0 : given_b;
  const bool is_steep = b > a, is_left = std::signbit(x);
  const double larger = is_steep ? b : a, smaller = is_steep ? a : b;
  const bool is_near = smaller > 0.4142135623730950488 * larger;
  const double scale = larger > 1e300 ? 0.25 : 1.0;
  const double above = is_near ? (larger - smaller) * scale : smaller;
  const double below = is_near ? larger * scale + smaller * scale : larger;
  const double divided = larger == infinity ? smaller * 0.0 : above / below; // NaN for NaN
  const double t = larger == 0.0 ? smaller : divided;
  const double z = t * t;
  const double p = polynomial(z, 1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
                              -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
                              9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01,
                              -1.99999999998764832476e-01, 3.33333333333329318027e-01);
  // The result is base ± (t − correction).
  const double correction = t * (z * p);
  const double quarters = is_left ? (is_steep ? 2.0 : 4.0) : (is_steep ? 2.0 : 0.0);
  const double towards = (is_left != is_steep) ? -1.0 : 1.0;
  const double eighths = is_near ? quarters + towards : quarters, sign = is_near ? -towards : towards;
  const double base = eighths * (0.25 * pi), base_low = eighths * 3.061616997868383e-17; // exact
  const double magnitude = base - ((sign * correction - base_low) - sign * t);
  return with_sign(magnitude, y);
}

} // namespace float64

inline double atan(double x) { return float64::arctangent(x, 1.0); }

// ---------------------------------------------------------------- hyperbolic functions and their inverses

namespace float64 {

// e^a/2 for a ≥ 0
inline double half_exp(double a) {
  const double limited = bounded(a, 0.0, 712.0), n = to_whole(limited * log2_e);
  return scaled(expm1_reduced(reduced_by_ln2(limited, n)) + 1.0, integer_of(n) - 1);
}

// From here on, adding or subtracting 1 does not change the square of a number.
constexpr double largest_squared = 268435456.0;

} // namespace float64

// (t + t/(t + 1))/2 with t = e^a − 1; from 22 on, e^-a is below the last place.
inline double sinh(double x) {
  const double a = std::fabs(x), t = expm1(float64::bounded(a, 0.0, 22.0));
  return float64::with_sign(a < 22.0 ? 0.5 * (t + t / (t + 1.0)) : float64::half_exp(a), x);
}

inline double cosh(double x) {
  const double half = float64::half_exp(std::fabs(x));
  return half + 0.25 / half;
}

namespace float64 {

// ln 2a if is_large, else ln(1 + t): a single logarithm, as in log1p.
inline double log1p_or_double(bool is_large, double a, double t) {
  const double u = 1.0 + t, l = log(is_large ? a : u), corrected = l * (t / (u - 1.0));
  return is_large ? l + ln2 : u == 1.0 ? t : corrected;
}

} // namespace float64

// The formulas of float32 (inverse.h).
inline double asinh(double x) {
  const double a = std::fabs(x);
  const bool is_large = a > float64::largest_squared;
  const double limited = is_large ? 1.0 : a, square = limited * limited;
  const double t = limited + square / (1.0 + std::sqrt(square + 1.0));
  return float64::with_sign(float64::log1p_or_double(is_large, a, t), x);
}

inline double acosh(double x) {
  const bool is_large = x > float64::largest_squared;
  const double t = (is_large ? 1.0 : x) - 1.0;
  const double result = float64::log1p_or_double(is_large, x, t + std::sqrt(t * (t + 2.0)));
  return x < 1.0 ? __builtin_nan("") : result;
}

inline double atanh(double x) {
  const double a = std::fabs(x);
  return float64::with_sign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}

// √(x² + y²), scaled by a power of two so that no square overflows or loses bits.
inline double hypot(double x, double y) {
  const double a = std::fabs(x), b = std::fabs(y), larger = a > b ? a : b;
  const double scale = larger > 1e150 ? 0x1p-600 : larger < 1e-140 ? 0x1p600 : 1.0;
  const double p = a * scale, q = b * scale, length = std::sqrt(fused(p, p, q * q)) / scale;
  return a == float64::infinity || b == float64::infinity ? float64::infinity : length;
}

// ---------------------------------------------------------------- log10

namespace float64 {

// The upper half of ln(1 + f) is multiplied exactly, so powers of ten have exact logarithms.
inline double logarithm10(double x) {
  constexpr double inverse_high = 4.34294481878168880939e-01, inverse_low = 2.50829467116452752298e-11; // 1/ln 10
  constexpr double log2_high = 3.01029995663611771306e-01, log2_low = 3.69423907715893078616e-13;       // log10 2
  const Logarithm l = logarithm(x);
  const double high = float_of(bits_of(l.f - l.half_square) & 0xffffffff00000000);
  const double low = ((l.f - high) - l.half_square) + l.tail;
  const double whole = l.e * log2_high, part = high * inverse_high, sum = whole + part;
  const double rest = l.e * log2_low + (low + high) * inverse_low + low * inverse_high;
  return or_special(sum + (((whole - sum) + part) + rest), x);
}

} // namespace float64

// ---------------------------------------------------------------- erf

// a² minus its rounded value `square`, which a fused multiply-add computes exactly.
#if defined(__FMA__) || defined(__aarch64__)
inline double square_error(double a, double square) { return fused(a, a, -square); }
#else
// Dekker's product: both halves of a have at most 27 bits, so their products are exact.
inline double square_error(double a, double square) {
  double split = 134217729.0 * a, high = split - (split - a), low = a - high;
  return ((high * high - square) + 2.0 * high * low) + low * low;
}
#endif

inline double erfcx_slope(double t) {
  return polynomial(t, 7.920965150157881e-10, 2.0278557973793154e-10, -8.124956709386182e-09, -5.236996595017836e-09,
                    4.5491578306225134e-08, 5.646559545168381e-08, -1.9566502691947402e-07, -4.2110592243562234e-07,
                    7.755855165350962e-07, 2.6969347635304226e-06, -3.4269113375480423e-06, -1.6673716326858064e-05,
                    2.1622534156228215e-05, 0.00010347684020293, -0.0002086364484380906, -0.0005711958288361641,
                    0.002459886152998056, 6.950566380160691e-05, -0.023840020578660918, 0.09214804792258235,
                    -0.21142171133810203, 0.34106687004086467, -0.38862916439431083, 0.25300805826972966);
}

namespace float64 {

// erfc a for a ≥ 0: e^(-a²)·erfcx a, as in kernels/formulas/special.h. It is 0 from 27.3 on.
inline double erfc_of_positive(double a) {
  const double limited = a > 27.5 ? 27.5 : a, square = limited * limited, power = exp(-square);
  const double whole = fused(-power, square_error(limited, square), power);
  const double t = 1.0 - 6.0 / (limited + 3.0);
  return whole * (0.5 * fused(1.0 + t, erfcx_slope(t), 1.0) / (limited + 0.5));
}

} // namespace float64

inline double erfc(double x) {
  const double tail = float64::erfc_of_positive(std::fabs(x));
  return x < 0.0 ? 2.0 - tail : tail;
}

namespace float64 {

// x + x·P(x²) for |x| ≤ 1, where P interpolates erf x/x − 1 at Chebyshev points.
inline double error_function(double x) {
  const double a = std::fabs(x), s = a < 1.0 ? a * a : 1.0;
  const double p = polynomial(s, 5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08,
                              -1.6350312701054695e-07, 1.6461000484121368e-06, -1.4925595266831182e-05,
                              0.0001205533111164271, -0.000854832698083379, 0.0052239776248180145,
                              -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 0.1283791670955126);
  const double tail = with_sign(1.0 - erfc_of_positive(a), x);
  return a < 1.0 ? fused(x, p, x) : tail;
}

} // namespace float64

} // namespace orchard::ORCHARD_ISA
