// Shared by Swift, C and Metal, as Xcode's templates share the types of vertices.
#pragma once
#ifdef __METAL_VERSION__
#include <metal_stdlib>
typedef metal::float4 simd_float4;
typedef metal::float2 simd_float2;
#else
#include <simd/simd.h>
#endif

typedef struct {
  simd_float4 position;
  simd_float2 size;
} Point;

#ifndef __METAL_VERSION__
float point_length(const Point *point);
#endif
