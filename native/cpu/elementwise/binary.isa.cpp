#include "bits.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "power.h"
#include "rows.h"
#include "special.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> constexpr bool is_integer = std::is_integral_v<T>;

// Integers wrap around: arithmetic that may overflow is done on unsigned types. bools are computed as 0 and 1, and the
// result is whether the number is not 0.
template <class T, class Formula> inline T wrapping(T a, T b, Formula formula) {
  if constexpr (std::is_same_v<T, bool>) return formula(int(a), int(b)) != 0;
  else if constexpr (is_integer<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>; // narrow types would be promoted to int
    return T(formula(Wide(a), Wide(b)));
  } else return formula(a, b);
}

struct Add {
  static constexpr const char *name = "add";
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Sub {
  static constexpr const char *name = "sub";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};

struct Mul {
  static constexpr const char *name = "mul";
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

struct Div {
  static constexpr const char *name = "div";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T a, T b) { return a / b; }
};

// ---------------------------------------------------------------- division and its remainders; callers check that no
// integer divisor is 0

// x86 traps when the smallest integer is divided by -1.
template <class T> inline bool is_minus_one(T b) { return std::is_signed_v<T> && b == T(-1); }
template <class T> inline T integer_quotient(T a, T b) {
  return is_minus_one(b) ? Sub::of(T(0), a) : b == T(0) ? T(0) : T(a / b);
}
template <class T> inline T integer_remainder(T a, T b) { return is_minus_one(b) || b == T(0) ? T(0) : T(a % b); }

// Division with a remainder, a = whole·b + rest, for quotients below 2^24. a/b may round up to the next integer; then
// the rest has the wrong sign. A rest between -|b| and |b| is a multiple of the lower last place of a and b, and
// therefore exact: in float32 if multiply-add is fused, else in float64, which represents the product exactly.
#if defined(__FMA__) || defined(__aarch64__)
using Quotient = float;
#else
using Quotient = double;
#endif
constexpr float largest_quotient = 1 << 24;

template <class T> inline bool signs_differ(T rest, T b) { return (rest != T(0)) & ((rest < T(0)) != (b < T(0))); }

inline Quotient rest_of(Quotient a, Quotient b) {
  Quotient rest = fused(-std::trunc(a / b), b, a);
  Quotient step = (a < Quotient(0)) != (b < Quotient(0)) ? -b : b;
  return signs_differ(rest, a) ? rest + step : rest;
}

inline Quotient floor_of_quotient(Quotient a, Quotient b) {
  Quotient whole = std::floor(a / b);
  return signs_differ(fused(-whole, b, a), b) ? whole - Quotient(1) : whole;
}

inline bool is_divided(float a, float b) {
  return (absolute(a) < absolute(b) * largest_quotient) & (absolute(b) < infinity);
}

// Recomputes the elements that is_divided excludes, one by one.
template <class Formula>
inline void correct_quotients(const float *a, const float *b, float *out, int64_t count, Formula formula) {
  int32_t any = 0;
  for (int64_t i = 0; i < count; i++) any |= !is_divided(a[i], b[i]);
  for (int64_t i = 0; any && i < count; i++)
    if (!is_divided(a[i], b[i])) out[i] = formula(a[i], b[i]);
}

struct Fmod {
  static constexpr const char *name = "fmod";
  static constexpr bool divides = true;
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) {
    if constexpr (is_integer<T>) return integer_remainder(a, b);
    else if constexpr (std::is_same_v<T, float>) return with_sign(float(rest_of(a, b)), a);
    else return std::fmod(a, b);
  }
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return std::fmod(x, y); });
  }
};

// Like fmod, but the result has the sign of the divisor.
struct Remainder {
  static constexpr const char *name = "remainder";
  static constexpr bool divides = true;
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) { return signed_as_divisor(Fmod::of(a, b), b); }
  template <class T> static T signed_as_divisor(T rest, T b) { return signs_differ(rest, b) ? T(rest + b) : rest; }
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return signed_as_divisor(std::fmod(x, y), y); });
  }
};

struct TruncDivide {
  static constexpr const char *name = "truncDivide";
  static constexpr bool divides = true;
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) {
    if constexpr (is_integer<T>) return integer_quotient(a, b);
    else return std::trunc(a / b);
  }
};

// (a - remainder)/b, which is an integer except for rounding error; a/b could round up to the next integer.
struct FloorDivide {
  static constexpr const char *name = "floorDivide";
  static constexpr bool divides = true;
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) {
    if constexpr (is_integer<T>) {
      T quotient = integer_quotient(a, b);
      return signs_differ(integer_remainder(a, b), b) ? T(quotient - T(1)) : quotient;
    } else if constexpr (std::is_same_v<T, float>) {
      return float(floor_of_quotient(a, b));
    } else return of_one(a, b);
  }
  template <class T> static T of_one(T a, T b) {
    if (b == T(0)) return a / b;
    T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (signs_differ(rest, b)) quotient -= T(1);
    T whole = std::floor(quotient);
    if (quotient - whole > T(0.5)) whole += T(1);
    return quotient == T(0) ? std::copysign(T(0), a / b) : whole;
  }
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return float(of_one(double(x), double(y))); });
  }
};

struct Pow {
  static constexpr const char *name = "pow";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) {
    if constexpr (is_integer<T>) return integer_power(a, b);
    else return pow(a, b);
  }

  struct Plain {
    static bool takes(float a, float b) { return has_plain_power(a, b); }
    static void row(float *out, int64_t count, const float *a, const float *b) { plain_powers(a, b, out, count); }
  };

  // The power modulo 2^bits. A negative exponent gives 0, except for the bases 1 and -1.
  template <class T> static T integer_power(T base, T exponent) {
    if (exponent < T(0)) return base == T(1) ? T(1) : is_minus_one(base) ? T(exponent & 1 ? -1 : 1) : T(0);
    uint64_t result = 1, factor = uint64_t(base);
    for (uint64_t rest = uint64_t(exponent); rest; rest >>= 1) {
      if (rest & 1) result *= factor;
      factor *= factor;
    }
    return T(result);
  }
};

// NaN if an operand is NaN.
struct Maximum {
  static constexpr const char *name = "maximum";
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) { return a > b || a != a ? a : b; }
};

struct Minimum {
  static constexpr const char *name = "minimum";
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) { return a < b || a != a ? a : b; }
};

struct Atan2 {
  static constexpr const char *name = "atan2";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T a, T b) { return atan2(a, b); }
};

// silu(gate)·up
struct Swiglu {
  static constexpr const char *name = "swiglu";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T gate, T up) { return gated<LogisticShare>(gate) * up; }
};

// Computes the gradient with respect to an activation's input x from the gradient g of its result.
template <class Share> struct GatedGradient {
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T g, T x) { return g * gated_derivative<Share>(x); }
};
struct GeluGradient : GatedGradient<NormalShare> {
  static constexpr const char *name = "geluGradient";
};
struct GeluTanhGradient : GatedGradient<TanhShare> {
  static constexpr const char *name = "geluTanhGradient";
};
struct SiluGradient : GatedGradient<LogisticShare> {
  static constexpr const char *name = "siluGradient";
};

// The derivative is 0 for x ≤ -3 and 1 for x ≥ 3.
struct HardswishGradient {
  static constexpr const char *name = "hardswishGradient";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T g, T x) {
    T above = x < T(3) ? g * ((x + T(1.5)) / T(3)) : g;
    return x <= T(-3) ? T(0) : above;
  }
};

// x if x > 0, else x·slope.
struct Leaky {
  static constexpr const char *name = "leaky";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T x, T slope) { return x > T(0) ? x : x * slope; }
};

// Computes the next number in the dtype itself. Unlike other operations, it does not convert float16 and bfloat16 to
// float32.
struct Nextafter {
  static constexpr const char *name = "nextafter";
  static constexpr Kinds kinds = floats;
  static constexpr bool computes_halves = true;
  template <class T> static T of(T a, T b) { return next_after(a, b); }
};

#define ORCHARD_PAIR(Name, own_name, own_kinds, Result, expression)                                                    \
  struct Name {                                                                                                        \
    static constexpr const char *name = own_name;                                                                      \
    static constexpr Kinds kinds = own_kinds;                                                                          \
    template <class T> static Result of(T a, T b) { return Result(expression); }                                       \
  };
ORCHARD_PAIR(Hypot, "hypot", floats, T, hypot(a, b))
ORCHARD_PAIR(Logaddexp, "logaddexp", floats, T, logaddexp(a, b))
ORCHARD_PAIR(Logaddexp2, "logaddexp2", floats, T, logaddexp2(a, b))
ORCHARD_PAIR(Xlogy, "xlogy", floats, T, xlogy(a, b))
ORCHARD_PAIR(Polygamma, "polygamma", floats, T, polygamma(a, b))
ORCHARD_PAIR(Copysign, "copysign", floats, T, std::copysign(a, b))
ORCHARD_PAIR(Heaviside, "heaviside", everything, T, a == T(0) ? b : T(a > T(0)))
ORCHARD_PAIR(Gcd, "gcd", integers, T, greatest_common_divisor(a, b))
ORCHARD_PAIR(Lcm, "lcm", integers, T, least_common_multiple(a, b))
ORCHARD_PAIR(BitwiseAnd, "bitwiseAnd", bits, T, a &b)
ORCHARD_PAIR(BitwiseOr, "bitwiseOr", bits, T, a | b)
ORCHARD_PAIR(BitwiseXor, "bitwiseXor", bits, T, a ^ b)
ORCHARD_PAIR(BitwiseLeftShift, "bitwiseLeftShift", integers, T, shifted_left(a, b))
ORCHARD_PAIR(BitwiseRightShift, "bitwiseRightShift", integers, T, shifted_right(a, b))
ORCHARD_PAIR(Eq, "eq", everything, bool, a == b)
ORCHARD_PAIR(Ne, "ne", everything, bool, a != b)
ORCHARD_PAIR(Lt, "lt", everything, bool, a < b)
ORCHARD_PAIR(Le, "le", everything, bool, a <= b)
ORCHARD_PAIR(Gt, "gt", everything, bool, a > b)
ORCHARD_PAIR(Ge, "ge", everything, bool, a >= b)
ORCHARD_PAIR(LogicalAnd, "logicalAnd", everything, bool, (a != T(0)) & (b != T(0)))
ORCHARD_PAIR(LogicalOr, "logicalOr", everything, bool, (a != T(0)) | (b != T(0)))
ORCHARD_PAIR(LogicalXor, "logicalXor", everything, bool, (a != T(0)) ^ (b != T(0)))

} // namespace

static constexpr auto &operations =
    operations_of<2, Add, Sub, Mul, Div, FloorDivide, TruncDivide, Remainder, Fmod, Pow, Maximum, Minimum, Atan2, Hypot,
                  Logaddexp, Logaddexp2, Xlogy, Polygamma, Nextafter, Copysign, Heaviside, Gcd, Lcm, Swiglu,
                  GeluGradient, GeluTanhGradient, SiluGradient, HardswishGradient, Leaky, BitwiseAnd, BitwiseOr,
                  BitwiseXor, BitwiseLeftShift, BitwiseRightShift, Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr,
                  LogicalXor>;

extern const ElementwiseOperations binary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
