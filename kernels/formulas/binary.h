// The formula of each operation of the enumeration Binary, for C++ and Metal: both include this table inside a
// namespace, after the functions that it calls. An operation without a formula does not compile.
//
// T is the type of the elements. float16 and bfloat16 are computed in float32, except by nextafter.

template <Binary name> struct OfFloats;
#define OF_FLOATS(name, result)                                        \
    template <> struct OfFloats<name> {                                \
        template <typename T> static T of(T a, T b) { return result; } \
    };

OF_FLOATS(BINARY_ADD, a + b)
OF_FLOATS(BINARY_SUB, a - b)
OF_FLOATS(BINARY_MUL, (a * b))
OF_FLOATS(BINARY_DIV, a / b)
OF_FLOATS(BINARY_FLOOR_DIVIDE, floor_divide(a, b))
OF_FLOATS(BINARY_TRUNC_DIVIDE, trunc(a / b))
OF_FLOATS(BINARY_REMAINDER, remainder(a, b))
OF_FLOATS(BINARY_FMOD, fmod(a, b))
OF_FLOATS(BINARY_POW, pow(a, b))
OF_FLOATS(BINARY_MAXIMUM, a > b || is_nan(a) ? a : b)
OF_FLOATS(BINARY_MINIMUM, a < b || is_nan(a) ? a : b)
OF_FLOATS(BINARY_FMAX, a > b || is_nan(b) ? a : b)
OF_FLOATS(BINARY_FMIN, a < b || is_nan(b) ? a : b)
OF_FLOATS(BINARY_ATAN2, atan2(a, b))
OF_FLOATS(BINARY_HYPOT, hypot(a, b))
OF_FLOATS(BINARY_LOGADDEXP, logaddexp(a, b))
OF_FLOATS(BINARY_LOGADDEXP2, logaddexp2(a, b))
OF_FLOATS(BINARY_XLOGY, xlogy(a, b))
OF_FLOATS(BINARY_XLOG1PY, (a == T(0) && !is_nan(b)) ? T(0) : a * log1p(b))
OF_FLOATS(BINARY_POLYGAMMA, polygamma(a, b))
OF_FLOATS(BINARY_NEXTAFTER, next_after(a, b))
OF_FLOATS(BINARY_COPYSIGN, copysign(a, b))
OF_FLOATS(BINARY_TIMES_POWER_OF_TWO, times_power_of_two(a, b))
OF_FLOATS(BINARY_HEAVISIDE, a == T(0) ? b : T(a > T(0)))
OF_FLOATS(BINARY_SWIGLU, gated<LogisticShare>(a) * b)
OF_FLOATS(BINARY_LEAKY, a > T(0) ? a : a * b)

// a is the gradient of an activation's result, b the activation's operand.
OF_FLOATS(BINARY_GELU_GRADIENT, gated_derivative<NormalShare>(b) * a)
OF_FLOATS(BINARY_GELU_TANH_GRADIENT, gated_derivative<TanhShare>(b) * a)
OF_FLOATS(BINARY_SILU_GRADIENT, gated_derivative<LogisticShare>(b) * a)
OF_FLOATS(BINARY_HARDSWISH_GRADIENT, hardswish_gradient(a, b))

template <Binary name> struct OfIntegers;
#define OF_INTEGERS(name, result)                                      \
    template <> struct OfIntegers<name> {                              \
        template <typename T> static T of(T a, T b) { return result; } \
    };

OF_INTEGERS(BINARY_ADD, T(wide(a) + wide(b)))
OF_INTEGERS(BINARY_SUB, T(wide(a) - wide(b)))
OF_INTEGERS(BINARY_MUL, T(wide(a) * wide(b)))
OF_INTEGERS(BINARY_FLOOR_DIVIDE, T(quotient(a, b) - T(signs_differ(rest(a, b), b))))
OF_INTEGERS(BINARY_TRUNC_DIVIDE, quotient(a, b))
OF_INTEGERS(BINARY_REMAINDER, signed_as_divisor(rest(a, b), b))
OF_INTEGERS(BINARY_FMOD, rest(a, b))
OF_INTEGERS(BINARY_POW, power(a, b))
OF_INTEGERS(BINARY_MAXIMUM, a > b ? a : b)
OF_INTEGERS(BINARY_MINIMUM, a < b ? a : b)
OF_INTEGERS(BINARY_FMAX, a > b ? a : b)
OF_INTEGERS(BINARY_FMIN, a < b ? a : b)
OF_INTEGERS(BINARY_HEAVISIDE, a == T(0) ? b : T(a > T(0)))
OF_INTEGERS(BINARY_GCD, greatest_common_divisor(a, b))
OF_INTEGERS(BINARY_LCM, least_common_multiple(a, b))
OF_INTEGERS(BINARY_BITWISE_AND, T(a &b))
OF_INTEGERS(BINARY_BITWISE_OR, T(a | b))
OF_INTEGERS(BINARY_BITWISE_XOR, T(a ^ b))
OF_INTEGERS(BINARY_BITWISE_LEFT_SHIFT, shifted_left(a, b))
OF_INTEGERS(BINARY_BITWISE_RIGHT_SHIFT, shifted_right(a, b))

template <Binary name> struct OfBools;
#define OF_BOOLS(name, result)                            \
    template <> struct OfBools<name> {                    \
        static bool of(bool a, bool b) { return result; } \
    };

OF_BOOLS(BINARY_ADD, a || b)
OF_BOOLS(BINARY_MUL, (a && b))
OF_BOOLS(BINARY_MAXIMUM, a || b)
OF_BOOLS(BINARY_MINIMUM, (a && b))
OF_BOOLS(BINARY_FMAX, a || b)
OF_BOOLS(BINARY_FMIN, (a && b))
OF_BOOLS(BINARY_HEAVISIDE, a || b)
OF_BOOLS(BINARY_BITWISE_AND, (a && b))
OF_BOOLS(BINARY_BITWISE_OR, a || b)
OF_BOOLS(BINARY_BITWISE_XOR, a != b)

// The predicates, which are the same for floats and for integers and bools.
template <Binary name> struct Test;
#define TEST(name, result)                                                      \
    template <> struct Test<name> {                                             \
        template <typename T> static bool of_float(T a, T b) { return result; } \
        template <typename T> static bool of_whole(T a, T b) { return result; } \
    };

TEST(BINARY_EQ, a == b)
TEST(BINARY_NE, a != b)
TEST(BINARY_LT, a < b)
TEST(BINARY_LE, a <= b)
TEST(BINARY_GT, a > b)
TEST(BINARY_GE, a >= b)
TEST(BINARY_LOGICAL_AND, (a != T(0)) & (b != T(0)))
TEST(BINARY_LOGICAL_OR, (a != T(0)) | (b != T(0)))
TEST(BINARY_LOGICAL_XOR, (a != T(0)) != (b != T(0)))
