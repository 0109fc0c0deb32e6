// The macros that a program sees after including any header of the Metal standard library. With MRT_PREPROCESS, which
// is used to expand the program's text before it is rewritten, the library consists of these macros only.
#ifndef MRT_MACROS_H
#define MRT_MACROS_H

#define __METAL__ 1
#ifndef __METAL_VERSION__
#define __METAL_VERSION__ 320
#endif
#ifndef __METAL_MACOS__
#define __METAL_MACOS__ 1
#endif

// Features of the language version (MSL 1.5.3).
#if __METAL_VERSION__ >= 310
#define __HAVE_BFLOAT__ 1
#endif
#if __METAL_VERSION__ >= 400
#define __HAVE_TENSOR__ 1
#endif
#define __HAVE_SIMDGROUP__ 1
#define __HAVE_SIMDGROUP_REDUCTION__ 1
#define __HAVE_SIMDGROUP_MATRIX__ 1
#define __HAVE_QUADGROUP__ 1
#define __HAVE_ATOMIC_FLOAT__ 1

// The lane functions of simdgroup_matrix.h's end, which Apple's compiler does not have.
#define __HAVE_ORCHARD_FRAGMENTS__ 1

#define METAL_FUNC inline __attribute__((__always_inline__))
#define METAL_CONST_ARG(x)
#define METAL_ENABLE_IF(...)

// Values for the last argument of the compiler's math functions, which some programs call directly (mrt/builtins.h).
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 2

// ---------------------------------------------------------------- numbers (MSL 6.5, Tables 6.3 and 6.4)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VALH ((half)__builtin_inff())
#define HUGE_VALBF ((bfloat)__builtin_inff())
#define MAXFLOAT 0x1.fffffep127f
#define MAXHALF ((half)0x1.ffcp15f)
#define MAXBFLOAT ((bfloat)0x1.fep127f)

#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_TRUE_MIN 0x1.0p-149f
#define FLT_EPSILON 0x1.0p-23f
#define FLT_DECIMAL_DIG 9

#define HALF_RADIX 2
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_10_EXP 4
#define HALF_MAX_EXP 16
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_MAX ((half)0x1.ffcp15f)
#define HALF_MIN ((half)0x1.0p-14f)
#define HALF_TRUE_MIN ((half)0x1.0p-24f)
#define HALF_EPSILON ((half)0x1.0p-10f)
#define HALF_DECIMAL_DIG 5

#define BFLT_RADIX 2
#define BFLT_DIG 2
#define BFLT_MANT_DIG 8
#define BFLT_MAX_EXP 128
#define BFLT_MIN_EXP (-125)
#define BFLT_MAX ((bfloat)0x1.fep127f)
#define BFLT_MIN ((bfloat)0x1.0p-126f)
#define BFLT_TRUE_MIN ((bfloat)0x1.0p-133f)
#define BFLT_EPSILON ((bfloat)0x1.0p-7f)

#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-INT_MAX)
#define FP_ILOGBNAN INT_MAX

// Constants of float (suffix _F) and half (suffix _H): M_PI_F, M_PI_H, …
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.434294481903251827651f
#define M_LN2_F 0.693147180559945309417f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.785398163397448309616f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_PI_F 0.636619772367581343076f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.707106781186547524401f
#define M_E_H ((half)2.71828182845904523536)
#define M_LOG2E_H ((half)1.44269504088896340736)
#define M_LOG10E_H ((half)0.434294481903251827651)
#define M_LN2_H ((half)0.693147180559945309417)
#define M_LN10_H ((half)2.30258509299404568402)
#define M_PI_H ((half)3.14159265358979323846)
#define M_PI_2_H ((half)1.57079632679489661923)
#define M_PI_4_H ((half)0.785398163397448309616)
#define M_1_PI_H ((half)0.318309886183790671538)
#define M_2_PI_H ((half)0.636619772367581343076)
#define M_2_SQRTPI_H ((half)1.12837916709551257390)
#define M_SQRT2_H ((half)1.41421356237309504880)
#define M_SQRT1_2_H ((half)0.707106781186547524401)

#define assert(condition) ((void)0)

#endif
