// Scalar types with MSL's sizes (MSL 2.1), the address spaces of the two modes, and the attributes of the library's
// functions.
//
// With MRT_STRICT, the text is type-checked as clang's C++ for OpenCL, in which address spaces are part of types.
// Otherwise ("flat") it is C++17, and address spaces are erased.
#ifndef MRT_TYPES_H
#define MRT_TYPES_H

#ifdef MRT_STRICT
#include "opencl_names.h"
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
// Features that MSL has and C++ for OpenCL forbids: pointers to any class as kernel parameters, and pointers to
// functions.
#pragma OPENCL EXTENSION __cl_clang_non_portable_kernel_param_types : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#define MRT_DEVICE __global
#define MRT_THREADGROUP __local
#define MRT_CONSTANT __constant
#define MRT_THREAD __private
// A kernel input that is declared in program scope (rewrite/inputs.cpp).
namespace mrt {
template <typename T> T input();
}
#else
// With MRT_SPACED, the flat text keeps its address spaces. They are those of SYCL, all of which are the machine's
// address space 0. A pointer or reference without an address space converts to none of them, but each of them converts
// to one without. So the library's functions and all methods accept objects in all address spaces, while the program's
// overloads remain distinct. The rewriter requests this mode if overloads of a program differ in address spaces
// (rewrite/duplicates.cpp).
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

// Inlined without debug information, so that an access in the library is attributed to the line that called it.
#define MRT_FUNC inline __attribute__((__always_inline__, __nodebug__))
#define MRT_METHOD __attribute__((__always_inline__, __nodebug__))

// MRT_DEFINE: a function, which strict mode only declares, since it only checks types. MRT_IN_EACH_SPACE: members,
// which strict mode declares a second time for objects in the constant address space.
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
// The literal 1.5h, rounded once. (In strict mode the compiler supports it.)
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
