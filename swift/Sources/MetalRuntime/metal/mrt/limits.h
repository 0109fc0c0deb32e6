// numeric_limits (MSL 6.4 <metal_limits>).
#ifndef MRT_LIMITS_H
#define MRT_LIMITS_H

#include "macros.h"
#include "traits.h"

namespace metal {

enum float_round_style {
  round_indeterminate = -1,
  round_toward_zero = 0,
  round_to_nearest = 1,
  round_toward_infinity = 2,
  round_toward_neg_infinity = 3
};
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent = 0, denorm_present = 1 };

// Programs specialize this template for their types, as they do with Apple's headers.
template <typename T> struct _numeric_limits_impl {
  static constexpr MRT_CONSTANT bool is_specialized = false;
};
template <typename T> struct numeric_limits : _numeric_limits_impl<remove_cv_t<T>> {};

#define MRT_LIMIT(type, name, value) static constexpr MRT_CONSTANT type name = value;
#define MRT_LIMIT_FUNCTION(name, ...)                                                                                  \
  static constexpr MRT_METHOD value_type name() { return __VA_ARGS__; }
#define MRT_LIMITS_COMMON(T, SIGNED, INTEGER)                                                                          \
  typedef T value_type;                                                                                                \
  MRT_LIMIT(bool, is_specialized, true)                                                                                \
  MRT_LIMIT(bool, is_signed, SIGNED)                                                                                   \
  MRT_LIMIT(bool, is_integer, INTEGER)                                                                                 \
  MRT_LIMIT(bool, is_exact, INTEGER)                                                                                   \
  MRT_LIMIT(bool, is_bounded, true)                                                                                    \
  MRT_LIMIT(bool, traps, false)                                                                                        \
  MRT_LIMIT(bool, tinyness_before, false)                                                                              \
  MRT_LIMIT(int, radix, 2)

#define MRT_INTEGER_LIMITS(T, SIGNED, DIGITS, MIN, MAX)                                                                \
  template <> struct _numeric_limits_impl<T> {                                                                         \
    MRT_LIMITS_COMMON(T, SIGNED, true)                                                                                 \
    MRT_LIMIT(int, digits, DIGITS)                                                                                     \
    MRT_LIMIT(int, digits10, DIGITS * 643 / 2136)                                                                      \
    MRT_LIMIT(int, max_digits10, 0)                                                                                    \
    MRT_LIMIT(int, min_exponent, 0)                                                                                    \
    MRT_LIMIT(int, min_exponent10, 0)                                                                                  \
    MRT_LIMIT(int, max_exponent, 0)                                                                                    \
    MRT_LIMIT(int, max_exponent10, 0)                                                                                  \
    MRT_LIMIT(bool, has_infinity, false)                                                                               \
    MRT_LIMIT(bool, has_quiet_NaN, false)                                                                              \
    MRT_LIMIT(bool, has_signaling_NaN, false)                                                                          \
    MRT_LIMIT(float_denorm_style, has_denorm, denorm_absent)                                                           \
    MRT_LIMIT(bool, has_denorm_loss, false)                                                                            \
    MRT_LIMIT(bool, is_iec559, false)                                                                                  \
    MRT_LIMIT(bool, is_modulo, !SIGNED)                                                                                \
    MRT_LIMIT(float_round_style, round_style, round_toward_zero)                                                       \
    MRT_LIMIT_FUNCTION(min, T(MIN))                                                                                    \
    MRT_LIMIT_FUNCTION(lowest, T(MIN))                                                                                 \
    MRT_LIMIT_FUNCTION(max, T(MAX))                                                                                    \
    MRT_LIMIT_FUNCTION(epsilon, T(0))                                                                                  \
    MRT_LIMIT_FUNCTION(round_error, T(0))                                                                              \
    MRT_LIMIT_FUNCTION(infinity, T(0))                                                                                 \
    MRT_LIMIT_FUNCTION(quiet_NaN, T(0))                                                                                \
    MRT_LIMIT_FUNCTION(signaling_NaN, T(0))                                                                            \
    MRT_LIMIT_FUNCTION(denorm_min, T(0))                                                                               \
  };
MRT_INTEGER_LIMITS(bool, false, 1, false, true)
MRT_INTEGER_LIMITS(char, true, 7, CHAR_MIN, CHAR_MAX)
MRT_INTEGER_LIMITS(int8_t, true, 7, SCHAR_MIN, SCHAR_MAX)
MRT_INTEGER_LIMITS(uchar, false, 8, 0, UCHAR_MAX)
MRT_INTEGER_LIMITS(short, true, 15, SHRT_MIN, SHRT_MAX)
MRT_INTEGER_LIMITS(ushort, false, 16, 0, USHRT_MAX)
MRT_INTEGER_LIMITS(int, true, 31, INT_MIN, INT_MAX)
MRT_INTEGER_LIMITS(uint, false, 32, 0, UINT_MAX)
MRT_INTEGER_LIMITS(long, true, 63, LONG_MIN, LONG_MAX)
MRT_INTEGER_LIMITS(ulong, false, 64, 0, ULONG_MAX)

// Parameters: digits, digits10, max_digits10 and exponents as in C's <float.h>, then the values.
#define MRT_FLOAT_LIMITS(T, DIGITS, DIGITS10, MAX_DIGITS10, MIN_EXP, MIN_EXP10, MAX_EXP, MAX_EXP10, MIN, MAX, EPSILON, \
                         TRUE_MIN)                                                                                     \
  template <> struct _numeric_limits_impl<T> {                                                                         \
    MRT_LIMITS_COMMON(T, true, false)                                                                                  \
    MRT_LIMIT(int, digits, DIGITS)                                                                                     \
    MRT_LIMIT(int, digits10, DIGITS10)                                                                                 \
    MRT_LIMIT(int, max_digits10, MAX_DIGITS10)                                                                         \
    MRT_LIMIT(int, min_exponent, MIN_EXP)                                                                              \
    MRT_LIMIT(int, min_exponent10, MIN_EXP10)                                                                          \
    MRT_LIMIT(int, max_exponent, MAX_EXP)                                                                              \
    MRT_LIMIT(int, max_exponent10, MAX_EXP10)                                                                          \
    MRT_LIMIT(bool, has_infinity, true)                                                                                \
    MRT_LIMIT(bool, has_quiet_NaN, true)                                                                               \
    MRT_LIMIT(bool, has_signaling_NaN, true)                                                                           \
    MRT_LIMIT(float_denorm_style, has_denorm, denorm_present)                                                          \
    MRT_LIMIT(bool, has_denorm_loss, false)                                                                            \
    MRT_LIMIT(bool, is_iec559, true)                                                                                   \
    MRT_LIMIT(bool, is_modulo, false)                                                                                  \
    MRT_LIMIT(float_round_style, round_style, round_to_nearest)                                                        \
    MRT_LIMIT_FUNCTION(min, T(MIN))                                                                                    \
    MRT_LIMIT_FUNCTION(lowest, T(-MAX))                                                                                \
    MRT_LIMIT_FUNCTION(max, T(MAX))                                                                                    \
    MRT_LIMIT_FUNCTION(epsilon, T(EPSILON))                                                                            \
    MRT_LIMIT_FUNCTION(round_error, T(0.5f))                                                                           \
    MRT_LIMIT_FUNCTION(infinity, T(__builtin_inff()))                                                                  \
    MRT_LIMIT_FUNCTION(quiet_NaN, T(__builtin_nanf("")))                                                               \
    MRT_LIMIT_FUNCTION(signaling_NaN, T(__builtin_nansf("")))                                                          \
    MRT_LIMIT_FUNCTION(denorm_min, T(TRUE_MIN))                                                                        \
  };
MRT_FLOAT_LIMITS(float, 24, 6, 9, -125, -37, 128, 38, 0x1p-126f, 0x1.fffffep127f, 0x1p-23f, 0x1p-149f)
MRT_FLOAT_LIMITS(half, 11, 3, 5, -13, -4, 16, 4, 0x1p-14f, 0x1.ffcp15f, 0x1p-10f, 0x1p-24f)
MRT_FLOAT_LIMITS(bfloat, 8, 2, 4, -125, -37, 128, 38, 0x1p-126f, 0x1.fep127f, 0x1p-7f, 0x1p-133f)

// For a vector: each component is the limit of the element type.
#define MRT_VECTOR_LIMIT(name)                                                                                         \
  static constexpr MRT_METHOD vec<T, N> name() { return vec<T, N>(numeric_limits<T>::name()); }
template <typename T, int N> struct _numeric_limits_impl<vec<T, N>> {
  static constexpr MRT_CONSTANT bool is_specialized = true;
  MRT_VECTOR_LIMIT(min)
  MRT_VECTOR_LIMIT(max)
  MRT_VECTOR_LIMIT(lowest)
  MRT_VECTOR_LIMIT(epsilon)
  MRT_VECTOR_LIMIT(round_error)
  MRT_VECTOR_LIMIT(infinity)
  MRT_VECTOR_LIMIT(quiet_NaN)
  MRT_VECTOR_LIMIT(signaling_NaN)
  MRT_VECTOR_LIMIT(denorm_min)
};
#undef MRT_VECTOR_LIMIT

template <typename T> struct numeric_limits<const volatile T> : numeric_limits<T> {};

} // namespace metal
#endif
