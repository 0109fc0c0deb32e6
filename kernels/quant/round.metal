// Rounds rows of x to bytes: each 32 adjacent values of a row, a part, become
//
//     scale = max|x| / 127,  level = round(x / scale)
//
// as native/cpu/quant/round.h does. If the scale would be subnormal, the levels are 0; if a value is not finite, the
// scale is NaN. A SIMD-group rounds one part. Grid: threads (columns, count); columns are a multiple of 32.
#include <metal_stdlib>
using namespace metal;

#include "quant/product.h"

// x       [[buffer(0)]]  count x columns
// levels  [[buffer(1)]]  columns / 32 x count x 32
// scales  [[buffer(2)]]  columns / 32 x count
// sums    [[buffer(3)]]  the same: of the levels of both halves of a part
template <typename T>
kernel void quant_round(
    device const T *x [[buffer(0)]],
    device char *levels [[buffer(1)]],
    device float *scales [[buffer(2)]],
    device short2 *sums [[buffer(3)]],
    constant QuantProduct &product [[buffer(4)]],
    uint2 position [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
    const long row = position.y;
    const float value = float(x[row_start(product, row) + long(position.x) * product.x_strides[2]]);
    // Magnitudes are ordered as their bits are; those of infinity and NaN are the largest.
    const uint most = simd_max(as_type<uint>(value) & 0x7fffffffu);
    float scale = as_type<float>(most) / 127.0f;
    float level = 0.0f;
    if (most >= 0x7f800000u) {
        scale = NAN;
    } else if (scale < FLT_MIN) {
        scale = 0.0f;
    } else {
        level = rint(value * (1.0f / scale));
    }
    const long part = long(position.x / PART) * product.count + row;
    levels[part * PART + long(lane)] = char(int(level));
    const int first = simd_sum(lane < 16 ? int(level) : 0);
    const int second = simd_sum(lane < 16 ? 0 : int(level));
    if (lane == 0) {
        scales[part] = scale;
        sums[part] = short2(short(first), short(second));
    }
}

#define ROUND(T)                                                          \
    template [[host_name("quant_round_" #T)]] kernel void quant_round<T>( \
        device const T *, device char *, device float *, device short2 *, constant QuantProduct &, uint2, uint);

ROUND(float)
ROUND(half)
ROUND(bfloat)
