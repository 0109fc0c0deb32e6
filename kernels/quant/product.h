// Products with quantized weights W [rows, columns]: out = x Wᵀ + bias, x W (a gradient), or gated, activation(x gateᵀ
// + bias) · (x upᵀ + bias). Each row of out is contiguous. The host (src/quant/primitive.ts) and the kernels share the
// struct.

#ifndef ORCHARD_QUANT_PRODUCT_H
#define ORCHARD_QUANT_PRODUCT_H

#include "common/gated.h"
#include "generated/gate_activation.h"
#include "quant/weights.h"

// - count: number of rows of x
// - batch_rows: rows of x per batch
// - x_strides: between batches, rows and columns, in elements
// - x_start: offset of element (0, 0) from the address where x is bound
// - own_rows: rows of the weights per SIMD-group, in vector.metal
#include "generated/quant_product.h"

// Which biases there are: bit 0 for the first one, bit 1 for the bias of `up`. They are added to products rounded to T.
constant uint has_bias [[function_constant(8)]];
constant uint gate_activation [[function_constant(9)]];  // for gated products: activation(x gateᵀ) · x upᵀ

// Weights as bound.
struct QuantMatrix {
    device const uchar *packed;
    device const ushort *scales;
    device const ushort *biases;
};

// The operands of a product: packed weights, scales and biases of the weights, x, the bias, out, and threadgroup memory
// for packed weights.
#define PRODUCT_ARGUMENTS(T)                                                                                           \
    device const uchar *packed [[buffer(0)]], device const ushort *scales [[buffer(1)]],                               \
        device const ushort *biases [[buffer(2)]], device const T *x [[buffer(3)]],                                    \
        device const T *bias [[buffer(4)]], device T *out [[buffer(5)]], constant QuantProduct &product [[buffer(6)]], \
        threadgroup uchar *bytes [[threadgroup(0)]]

// The operands of a gated product: the same with two matrices, each with a bias.
#define GATED_ARGUMENTS(T)                                                                           \
    device const uchar *gate_packed [[buffer(0)]], device const ushort *gate_scales [[buffer(1)]],   \
        device const ushort *gate_biases [[buffer(2)]], device const uchar *up_packed [[buffer(3)]], \
        device const ushort *up_scales [[buffer(4)]], device const ushort *up_biases [[buffer(5)]],  \
        device const T *x [[buffer(6)]], device const T *gate_bias [[buffer(7)]],                    \
        device const T *up_bias [[buffer(8)]], device T *out [[buffer(9)]],                          \
        constant QuantProduct &product [[buffer(10)]], threadgroup uchar *bytes [[threadgroup(0)]]

inline long row_start(constant QuantProduct &product, long row) {
    const long batch = row < product.batch_rows ? 0 : row / product.batch_rows;
    return product.x_start + batch * product.x_strides[0] + (row - batch * product.batch_rows) * product.x_strides[1];
}

template <typename T> inline T with_bias(float product, device const T *bias, long column, uint which = 1) {
    return (has_bias & which) != 0 ? T(float(T(product)) + float(bias[column])) : T(product);
}

// An activation that is missing here does not compile.
template <GateActivation name> struct Activation;
#define ACTIVATION(name, Share)                                                \
    template <> struct Activation<name> {                                      \
        static float of(float x) { return orchard::gated<orchard::Share>(x); } \
    };

ACTIVATION(GATE_ACTIVATION_SILU, LogisticShare)
ACTIVATION(GATE_ACTIVATION_GELU, NormalShare)
ACTIVATION(GATE_ACTIVATION_GELU_TANH, TanhShare)

inline float activated(float x) {
    switch (gate_activation) { GATE_ACTIVATION_NAMES(ORCHARD_CASE, Activation, of(x)) }
    return NAN;
}

// Returns an element of a gated product, computed from the sums of both products.
template <typename T>
inline T gated_element(float gate, float up, device const T *gate_bias, device const T *up_bias, long column) {
    const float factor = activated(float(with_bias(gate, gate_bias, column)));
    return T(factor * float(with_bias(up, up_bias, column, 2)));
}

#endif
