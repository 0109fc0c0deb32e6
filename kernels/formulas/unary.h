// The formula of each operation of the enumeration Unary, for C++ and Metal: both include this table inside a
// namespace, after the functions that it calls. An operation without a formula does not compile.
//
// T is the type of the elements. float16 and bfloat16 are computed in float32.

template <Unary name> struct OfFloats;
#define OF_FLOATS(name, result)                                   \
    template <> struct OfFloats<name> {                           \
        template <typename T> static T of(T x) { return result; } \
    };

OF_FLOATS(UNARY_NEG, -x)
OF_FLOATS(UNARY_ABS, fabs(x))
OF_FLOATS(UNARY_SIGN, T(x > T(0)) - T(x < T(0)))
OF_FLOATS(UNARY_SQUARE, (x * x))
OF_FLOATS(UNARY_RELU, x < T(0) ? T(0) : x)
OF_FLOATS(UNARY_FLOOR, floor(x))
OF_FLOATS(UNARY_CEIL, ceil(x))
OF_FLOATS(UNARY_ROUND, rint(x))
OF_FLOATS(UNARY_TRUNC, trunc(x))
OF_FLOATS(UNARY_FRAC, x - trunc(x))
OF_FLOATS(UNARY_RECIPROCAL, T(1) / x)
OF_FLOATS(UNARY_SQRT, sqrt(x))
OF_FLOATS(UNARY_RSQRT, rsqrt(x))
OF_FLOATS(UNARY_FREXP_MANTISSA, mantissa_of(x))
OF_FLOATS(UNARY_FREXP_EXPONENT, T(exponent_of(x)))
OF_FLOATS(UNARY_EXP, exp(x))
OF_FLOATS(UNARY_EXP2, exp2(x))
OF_FLOATS(UNARY_EXPM1, expm1(x))
OF_FLOATS(UNARY_LOG, log(x))
OF_FLOATS(UNARY_LOG2, log2(x))
OF_FLOATS(UNARY_LOG10, log10(x))
OF_FLOATS(UNARY_LOG1P, log1p(x))
OF_FLOATS(UNARY_SIN, sin(x))
OF_FLOATS(UNARY_COS, cos(x))
OF_FLOATS(UNARY_TAN, tan(x))
OF_FLOATS(UNARY_ASIN, asin(x))
OF_FLOATS(UNARY_ACOS, acos(x))
OF_FLOATS(UNARY_ATAN, atan(x))
OF_FLOATS(UNARY_SINH, sinh(x))
OF_FLOATS(UNARY_COSH, cosh(x))
OF_FLOATS(UNARY_TANH, tanh(x))
OF_FLOATS(UNARY_ASINH, asinh(x))
OF_FLOATS(UNARY_ACOSH, acosh(x))
OF_FLOATS(UNARY_ATANH, atanh(x))
OF_FLOATS(UNARY_ERF, erf(x))
OF_FLOATS(UNARY_ERFC, erfc(x))
OF_FLOATS(UNARY_ERFINV, erfinv(x))
OF_FLOATS(UNARY_LGAMMA, lgamma(x))
OF_FLOATS(UNARY_DIGAMMA, digamma(x))
OF_FLOATS(UNARY_SINC, sinc(x))
OF_FLOATS(
    UNARY_SPHERICAL_BESSEL_J0,
    (fabs(x) == T(INFINITY) ? T(0) : sin(x) / (x == T(0) ? T(1) : x)) + (x == T(0) ? T(1) : T(0)))
OF_FLOATS(UNARY_I0, bessel<0>(x))
OF_FLOATS(UNARY_I1, bessel<1>(x))
OF_FLOATS(UNARY_I0E, scaled_bessel<0>(x))
OF_FLOATS(UNARY_I1E, scaled_bessel<1>(x))
OF_FLOATS(UNARY_BESSEL_J0, bessel_j<0>(x))
OF_FLOATS(UNARY_BESSEL_J1, bessel_j<1>(x))
OF_FLOATS(UNARY_BESSEL_Y0, bessel_y<0>(x))
OF_FLOATS(UNARY_BESSEL_Y1, bessel_y<1>(x))
OF_FLOATS(UNARY_MODIFIED_BESSEL_K0, bessel_k<0>(x))
OF_FLOATS(UNARY_MODIFIED_BESSEL_K1, bessel_k<1>(x))
OF_FLOATS(UNARY_SCALED_MODIFIED_BESSEL_K0, scaled_bessel_k<0>(x))
OF_FLOATS(UNARY_SCALED_MODIFIED_BESSEL_K1, scaled_bessel_k<1>(x))
OF_FLOATS(UNARY_ERFCX, erfcx(x))
OF_FLOATS(UNARY_LOG_NDTR, log_ndtr(x))
OF_FLOATS(UNARY_NDTRI, ndtri(x))
OF_FLOATS(UNARY_NDTR, gate<NormalShare>(x))
OF_FLOATS(UNARY_LOGIT, logit(x))
OF_FLOATS(UNARY_ENTR, x < T(0) ? T(-INFINITY) : T(0) - x * log(x == T(0) ? T(1) : x))
OF_FLOATS(UNARY_SIGMOID, sigmoid(x))
OF_FLOATS(UNARY_GELU, gated<NormalShare>(x))
OF_FLOATS(UNARY_GELU_TANH, gated<TanhShare>(x))
OF_FLOATS(UNARY_SILU, gated<LogisticShare>(x))
OF_FLOATS(UNARY_HARDSWISH, (x * hardsigmoid(x)))
OF_FLOATS(UNARY_HARDSIGMOID, hardsigmoid(x))
OF_FLOATS(UNARY_SOFTSIGN, x / (T(1) + fabs(x)))
OF_FLOATS(UNARY_MISH, mish(x))
OF_FLOATS(UNARY_LOG_SIGMOID, log_sigmoid(x))
OF_FLOATS(UNARY_TANHSHRINK, tanhshrink(x))

template <Unary name> struct OfIntegers;
#define OF_INTEGERS(name, result)                                 \
    template <> struct OfIntegers<name> {                         \
        template <typename T> static T of(T x) { return result; } \
    };

OF_INTEGERS(UNARY_NEG, negated(x))
OF_INTEGERS(UNARY_ABS, x < T(0) ? negated(x) : x)
OF_INTEGERS(UNARY_SIGN, T(x > T(0)) - T(x < T(0)))
OF_INTEGERS(UNARY_SQUARE, T(wide(x) * wide(x)))
OF_INTEGERS(UNARY_RELU, x < T(0) ? T(0) : x)
OF_INTEGERS(UNARY_FLOOR, x)
OF_INTEGERS(UNARY_CEIL, x)
OF_INTEGERS(UNARY_ROUND, x)
OF_INTEGERS(UNARY_TRUNC, x)
OF_INTEGERS(UNARY_FRAC, T(x - x))
OF_INTEGERS(UNARY_BITWISE_NOT, T(~x))

template <Unary name> struct OfBools;
#define OF_BOOLS(name, result)                    \
    template <> struct OfBools<name> {            \
        static bool of(bool x) { return result; } \
    };

OF_BOOLS(UNARY_SIGN, x)
OF_BOOLS(UNARY_BITWISE_NOT, !x)

// Each predicate, for floats, and for integers and bools.
template <Unary name> struct Test;
#define TEST(name, result_of_float, result_of_integer)                                \
    template <> struct Test<name> {                                                   \
        template <typename T> static bool of_float(T x) { return result_of_float; }   \
        template <typename T> static bool of_whole(T x) { return result_of_integer; } \
    };

TEST(UNARY_LOGICAL_NOT, x == T(0), x == T(0))
TEST(UNARY_ISNAN, is_nan(x), never(x))
TEST(UNARY_ISINF, fabs(x) == T(INFINITY), never(x))
TEST(UNARY_ISFINITE, fabs(x) < T(INFINITY), always(x))
TEST(UNARY_SIGNBIT, has_sign(x), x < T(0))
