// Shared by the kernels that `compile` generates for chains of elementwise operations (src/compile/metal/source.ts).

#ifndef ORCHARD_ELEMENTWISE_CHAIN_H
#define ORCHARD_ELEMENTWISE_CHAIN_H

#include <metal_stdlib>
using namespace metal;

#include "common/loop.h"

// Return x. A compiler may contract a product and the sum that follows it to one operation that rounds once. Plain
// calls round twice, since the product passes through memory. So each float of a chain passes through an exclusive or
// with a number that the compiler does not know to be 0.
inline float rounded(float x, ulong zero) { return as_type<float>(as_type<uint>(x) ^ uint(zero)); }
inline half rounded(half x, ulong zero) { return as_type<half>(ushort(as_type<ushort>(x) ^ ushort(zero))); }
inline bfloat rounded(bfloat x, ulong zero) { return as_type<bfloat>(ushort(as_type<ushort>(x) ^ ushort(zero))); }

#endif
