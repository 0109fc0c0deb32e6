#include "activations.h"
#include "bessel.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "rows.h"
#include "special.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> constexpr bool is_integer = std::is_integral_v<T>;

struct Neg {
  static constexpr const char *name = "neg";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) {
    if constexpr (is_integer<T>) return T(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(x));
    else return -x;
  }
};

struct Abs {
  static constexpr const char *name = "abs";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) {
    if constexpr (is_integer<T>) return x < T(0) ? Neg::of(x) : x;
    else return std::fabs(x);
  }
};

// The sign of NaN is 0.
struct Sign {
  static constexpr const char *name = "sign";
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T x) { return T(T(x > T(0)) - T(x < T(0))); }
};

struct Square {
  static constexpr const char *name = "square";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) {
    if constexpr (is_integer<T>) return T(uint64_t(x) * uint64_t(x));
    else return x * x;
  }
};

struct Relu {
  static constexpr const char *name = "relu";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) { return x < T(0) ? T(0) : x; }
};

// Rounding functions return integers unchanged. Ties go to even.
#define ORCHARD_ROUNDING(Name, own_name, function)                                                                     \
  struct Name {                                                                                                        \
    static constexpr const char *name = own_name;                                                                      \
    static constexpr Kinds kinds = numbers;                                                                            \
    template <class T> static T of(T x) {                                                                              \
      if constexpr (is_integer<T>) return x;                                                                           \
      else return function(x);                                                                                         \
    }                                                                                                                  \
  };
ORCHARD_ROUNDING(Floor, "floor", std::floor)
ORCHARD_ROUNDING(Ceil, "ceil", std::ceil)
ORCHARD_ROUNDING(Round, "round", std::nearbyint)
ORCHARD_ROUNDING(Trunc, "trunc", std::trunc)

struct Frac {
  static constexpr const char *name = "frac";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) {
    if constexpr (is_integer<T>) return T(0);
    else return x - std::trunc(x);
  }
};

#define ORCHARD_FLOAT_FUNCTION(Name, own_name, expression)                                                             \
  struct Name {                                                                                                        \
    static constexpr const char *name = own_name;                                                                      \
    static constexpr Kinds kinds = floats;                                                                             \
    template <class T> static T of(T x) { return expression; }                                                         \
  };
ORCHARD_FLOAT_FUNCTION(Reciprocal, "reciprocal", T(1) / x)
ORCHARD_FLOAT_FUNCTION(Sqrt, "sqrt", std::sqrt(x))
ORCHARD_FLOAT_FUNCTION(Rsqrt, "rsqrt", T(1) / std::sqrt(x))
ORCHARD_FLOAT_FUNCTION(Exp, "exp", exp(x))
ORCHARD_FLOAT_FUNCTION(Exp2, "exp2", exp2(x))
ORCHARD_FLOAT_FUNCTION(Expm1, "expm1", expm1(x))
ORCHARD_FLOAT_FUNCTION(Log, "log", log(x))
ORCHARD_FLOAT_FUNCTION(Log2, "log2", log2(x))
ORCHARD_FLOAT_FUNCTION(Log10, "log10", log10(x))
ORCHARD_FLOAT_FUNCTION(Log1p, "log1p", log1p(x))
ORCHARD_FLOAT_FUNCTION(Tanh, "tanh", tanh(x))
ORCHARD_FLOAT_FUNCTION(Sigmoid, "sigmoid", sigmoid(x))
ORCHARD_FLOAT_FUNCTION(Erf, "erf", erf(x))
ORCHARD_FLOAT_FUNCTION(Gelu, "gelu", gated<NormalShare>(x))
ORCHARD_FLOAT_FUNCTION(GeluTanh, "geluTanh", gated<TanhShare>(x))
ORCHARD_FLOAT_FUNCTION(Silu, "silu", gated<LogisticShare>(x))
ORCHARD_FLOAT_FUNCTION(Hardswish, "hardswish", x *(std::min(std::max(x + T(3), T(0)), T(6)) / T(6)))
ORCHARD_FLOAT_FUNCTION(Hardsigmoid, "hardsigmoid", std::min(std::max(x + T(3), T(0)), T(6)) / T(6))
ORCHARD_FLOAT_FUNCTION(Softsign, "softsign", x / (T(1) + std::fabs(x)))
ORCHARD_FLOAT_FUNCTION(Mish, "mish", mish(x))
ORCHARD_FLOAT_FUNCTION(LogSigmoid, "logSigmoid", log_sigmoid(x))
ORCHARD_FLOAT_FUNCTION(Tanhshrink, "tanhshrink", tanhshrink(x))

// Functions from inverse.h, special.h, gamma.h and bessel.h.
ORCHARD_FLOAT_FUNCTION(Asin, "asin", asin(x))
ORCHARD_FLOAT_FUNCTION(Acos, "acos", acos(x))
ORCHARD_FLOAT_FUNCTION(Atan, "atan", atan(x))
ORCHARD_FLOAT_FUNCTION(Sinh, "sinh", sinh(x))
ORCHARD_FLOAT_FUNCTION(Cosh, "cosh", cosh(x))
ORCHARD_FLOAT_FUNCTION(Asinh, "asinh", asinh(x))
ORCHARD_FLOAT_FUNCTION(Acosh, "acosh", acosh(x))
ORCHARD_FLOAT_FUNCTION(Atanh, "atanh", atanh(x))
ORCHARD_FLOAT_FUNCTION(Erfc, "erfc", erfc(x))
ORCHARD_FLOAT_FUNCTION(Erfinv, "erfinv", erfinv(x))
ORCHARD_FLOAT_FUNCTION(Lgamma, "lgamma", lgamma(x))
ORCHARD_FLOAT_FUNCTION(Digamma, "digamma", digamma(x))
ORCHARD_FLOAT_FUNCTION(Sinc, "sinc", sinc(x))
ORCHARD_FLOAT_FUNCTION(I0, "i0", bessel<0>(x))
ORCHARD_FLOAT_FUNCTION(I1, "i1", bessel<1>(x))

// Circular functions of large angles, infinities and NaN are recomputed by the C library after all other elements.
#define ORCHARD_CIRCULAR_FUNCTION(Name, own_name, function)                                                            \
  struct Name {                                                                                                        \
    static constexpr const char *name = own_name;                                                                      \
    static constexpr Kinds kinds = floats;                                                                             \
    template <class T> static T of(T x) { return function(x); }                                                        \
    static void correct(const float *in, float *out, int64_t count) {                                                  \
      int32_t any = 0;                                                                                                 \
      for (int64_t i = 0; i < count; i++) any |= !(absolute(in[i]) <= largest_angle);                                  \
      for (int64_t i = 0; any && i < count; i++)                                                                       \
        if (!(absolute(in[i]) <= largest_angle)) out[i] = float(std::function(double(in[i])));                         \
    }                                                                                                                  \
  };
ORCHARD_CIRCULAR_FUNCTION(Sin, "sin", sin)
ORCHARD_CIRCULAR_FUNCTION(Cos, "cos", cos)
ORCHARD_CIRCULAR_FUNCTION(Tan, "tan", tan)

struct BitwiseNot {
  static constexpr const char *name = "bitwiseNot";
  static constexpr Kinds kinds = bits;
  template <class T> static T of(T x) {
    if constexpr (std::is_same_v<T, bool>) return !x;
    else return T(~x);
  }
};

struct LogicalNot {
  static constexpr const char *name = "logicalNot";
  static constexpr Kinds kinds = everything;
  template <class T> static bool of(T x) { return x == T(0); }
};

// Integers are always finite.
#define ORCHARD_PREDICATE(Name, own_name, of_integer, expression)                                                      \
  struct Name {                                                                                                        \
    static constexpr const char *name = own_name;                                                                      \
    static constexpr Kinds kinds = everything;                                                                         \
    template <class T> static bool of(T x) {                                                                           \
      if constexpr (is_integer<T>) return (void)x, of_integer;                                                         \
      else return expression;                                                                                          \
    }                                                                                                                  \
  };
ORCHARD_PREDICATE(IsNaN, "isnan", false, x != x)
ORCHARD_PREDICATE(IsInf, "isinf", false, std::fabs(x) == T(__builtin_inf()))
ORCHARD_PREDICATE(IsFinite, "isfinite", true, std::fabs(x) < T(__builtin_inf()))
ORCHARD_PREDICATE(SignBit, "signbit", x < T(0), std::signbit(x))

} // namespace

static constexpr auto &operations =
    operations_of<1, Neg, Abs, Sign, Square, Relu, Floor, Ceil, Round, Trunc, Frac, Reciprocal, Sqrt, Rsqrt, Exp, Exp2,
                  Expm1, Log, Log2, Log10, Log1p, Tanh, Sigmoid, Erf, Erfc, Erfinv, Lgamma, Digamma, Sinc, I0, I1, Sin,
                  Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, Gelu, GeluTanh, Silu, Hardswish,
                  Hardsigmoid, Softsign, Mish, LogSigmoid, Tanhshrink, BitwiseNot, LogicalNot, IsNaN, IsInf, IsFinite,
                  SignBit>;

extern const ElementwiseOperations unary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
