// Scalar types with MSL's sizes (MSL 2.1), the address spaces of the two modes, and the attributes of the library's
// functions.
//
// MRT_STRICT: the text is type-checked in clang's C++ for OpenCL, where address spaces are types. Else ("flat") it is
// C++17 and address spaces are erased.
#ifndef MRT_TYPES_H
#define MRT_TYPES_H

#ifdef MRT_STRICT
#include "opencl_names.h"
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
// Features that C++ for OpenCL forbids and MSL has: pointers to any class as kernel parameters, pointers to functions.
#pragma OPENCL EXTENSION __cl_clang_non_portable_kernel_param_types : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#define MRT_DEVICE __global
#define MRT_THREADGROUP __local
#define MRT_CONSTANT __constant
#define MRT_THREAD __private
// An input of kernels that is declared in the program's scope (rewrite/inputs.cpp).
namespace mrt {
template <typename T> T input();
}
#else
// With MRT_SPACED the flat text keeps its address spaces. They are those of SYCL, all at the machine's address space 0.
// A pointer or reference without a space converts to none of them, but each of them converts to one without. So the
// library's functions and every class's methods accept objects in all spaces, and those of the program stay distinct.
// The rewriter requests it if a program's overloads differ in spaces (rewrite/duplicates.cpp).
#ifdef MRT_SPACED
#define MRT_DEVICE __attribute__((opencl_global_device))
#define MRT_THREADGROUP __attribute__((opencl_local))
#else
#define MRT_DEVICE
#define MRT_THREADGROUP
#endif
#define MRT_CONSTANT const
#define MRT_THREAD
typedef _Float16 half;
#endif

// Inlined, with the caller's line: an access in the library is attributed to the line that called it.
#define MRT_FUNC inline __attribute__((__always_inline__, __nodebug__))
#define MRT_METHOD __attribute__((__always_inline__, __nodebug__))

// A function of which the strict mode needs only the type. In the strict mode, members of objects in the constant space
// are separate ones.
#ifdef MRT_STRICT
#define MRT_IN_EACH_SPACE(MEMBERS) MEMBERS() MEMBERS(MRT_CONSTANT)
#define MRT_DEFINE(DECLARATION, ...) DECLARATION;
#else
#define MRT_IN_EACH_SPACE(MEMBERS) MEMBERS()
#define MRT_DEFINE(DECLARATION, ...)                                                                                   \
  MRT_FUNC DECLARATION { __VA_ARGS__ }
#endif

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;

#include "bfloat.h"

static_assert(sizeof(long) == 8 && sizeof(half) == 2 && sizeof(bfloat) == 2, "MSL's sizes");

#ifndef MRT_STRICT
// The literal 1.5h, rounded once. (In the strict mode the compiler knows it.)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuser-defined-literals"
constexpr half operator""h(long double value) { return half(value); }
#pragma clang diagnostic pop
#endif

namespace metal {
using ::int8_t, ::int16_t, ::int32_t, ::int64_t, ::uint8_t, ::uint16_t, ::uint32_t, ::uint64_t;
using ::size_t, ::ptrdiff_t, ::intptr_t, ::uintptr_t;
using ::uchar, ::ushort, ::uint, ::ulong, ::bfloat;
#ifndef MRT_STRICT
using ::half;
#endif
} // namespace metal

#endif
