// out[row, column] = the value of quantized weights (weights.h), rounded once.
//
// A thread unpacks and writes 4 adjacent values; adjacent threads write adjacent values. Grid: (columns / 4, rows),
// rounded up.

#include <metal_stdlib>
using namespace metal;

#include "quant/weights.h"

// packed  [[buffer(0)]]  rows x row_bytes
// scales  [[buffer(1)]]  of groups: rows x columns / group
// biases  [[buffer(2)]]  the same, if there are any
// out     [[buffer(3)]]  rows x columns
template <typename T>
kernel void dequantize(
    device const uchar *packed [[buffer(0)]],
    device const ushort *scales [[buffer(1)]],
    device const ushort *biases [[buffer(2)]],
    device T *out [[buffer(3)]],
    constant QuantWeights &weights [[buffer(4)]],
    uint2 position [[thread_position_in_grid]]) {
    const long column = long(position.x) * 4;
    const long row = position.y;
    if (column >= weights.columns || row >= weights.rows) {
        return;
    }
    const long part = column / PART;
    const Scales group = group_scales(weights, scales, biases, row, part);
    const int left = int(min(4L, weights.columns - column));
    float values[4];
    device const uchar *block = packed + row * weights.row_bytes + part / long(block_parts) * long(block_bytes);
    const int first = int(column % PART);
    if (left == 4) {
        unpack<4>(block, int(part % long(block_parts)), first, group, values);
    } else {  // the end of a row, only for f16 and bf16
        for (int i = 0; i < left; i += 1) {
            float one[1];
            unpack<1>(block, 0, first + i, group, one);
            values[i] = one[0];
        }
    }
    for (int i = 0; i < left; i += 1) {
        out[row * weights.columns + column + i] = T(values[i]);
    }
}

#define DEQUANTIZE(T)                                                                                            \
    template [[host_name("dequantize_" #T)]] kernel void dequantize<T>(                                          \
        device const uchar *, device const ushort *, device const ushort *, device T *, constant QuantWeights &, \
        uint2);

DEQUANTIZE(float)
DEQUANTIZE(half)
DEQUANTIZE(bfloat)
