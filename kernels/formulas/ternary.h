// The formula of each operation of the enumeration Ternary that computes, for C++ and Metal: both include this table
// inside a namespace, after the functions that it calls. An operation without a formula does not compile.
//
// T is the type of the elements. float16 and bfloat16 are computed in float32.

template <Ternary name> struct OfFloats;
#define OF_FLOATS(name, result)                                             \
    template <> struct OfFloats<name> {                                     \
        template <typename T> static T of(T a, T b, T c) { return result; } \
    };

OF_FLOATS(TERNARY_CLAMP, clamped(a, b, c))
OF_FLOATS(TERNARY_LERP, interpolated(a, b, c))
OF_FLOATS(TERNARY_ADDCMUL, a + b * c)
OF_FLOATS(TERNARY_ADDCDIV, a + b / c)
OF_FLOATS(TERNARY_THRESHOLD, a <= b ? c : a)
OF_FLOATS(TERNARY_SOFTPLUS, softplus(a, b, c))
OF_FLOATS(TERNARY_ELU, elu(a, b, c))
OF_FLOATS(TERNARY_SHRINK, fabs(a) <= b ? T(0) : (a < T(0) ? a + c : a - c))
OF_FLOATS(TERNARY_NAN_TO_NUM, is_nan(a) ? b : at_most(at_least(a, -c), c))

template <Ternary name> struct OfIntegers;
#define OF_INTEGERS(name, result)                                           \
    template <> struct OfIntegers<name> {                                   \
        template <typename T> static T of(T a, T b, T c) { return result; } \
    };

OF_INTEGERS(TERNARY_CLAMP, clamped(a, b, c))
