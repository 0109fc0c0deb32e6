#include <metal_stdlib>
#include "Common.h"
using namespace metal;

static float value(uint i) { return float(i); }

kernel void count(device float* x [[buffer(0)]], constant Parameters& p [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  if (i < p.count) x[i] = value(i);
}
