#include <metal_stdlib>
#include "Common.h"
using namespace metal;

kernel void saxpy(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  constant Parameters& p [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < p.count) y[i] += p.factor * x[i];
}
