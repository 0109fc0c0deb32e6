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

#endif
