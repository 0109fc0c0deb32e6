// Products with quantised weights W [rows, columns]: out = x Wᵀ + bias, or x W (a gradient), each row of out
// contiguous. The struct that the host (src/quant/primitive.ts) and the kernels share.

#ifndef ORCHARD_QUANT_PRODUCT_H
#define ORCHARD_QUANT_PRODUCT_H

#include "quant/weights.h"

struct QuantProduct {
    QuantWeights weights;
    long count;         // rows of x
    long x_strides[2];  // from row to row, from column to column, in elements
    long x_start;       // of element (0, 0), from where x is bound
    long own_rows;      // of the weights, that a SIMD-group of vector.metal multiplies
};

// Whether there is a bias, which is added to the product as T has it.
constant uint has_bias [[function_constant(8)]];

template <typename T> inline T with_bias(float product, device const T *bias, long column) {
    return has_bias != 0 ? T(float(T(product)) + float(bias[column])) : T(product);
}

#endif
