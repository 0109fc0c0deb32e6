// out = alpha a b + beta input for each matrix of a batch: a is m x k, b is k x n, input and out are m x n.
//
// The struct that the host (src/ops/matmul/primitive.ts) and the kernels share. Offsets and strides count elements;
// strides may be 0 (repeated) or negative. Sums may be cut into `splits` parts of `split_length`, which then go to
// memory of float32, one part after the other (`split_stride` apart), for combine.metal to add up.

#ifndef ORCHARD_MATMUL_PRODUCT_H
#define ORCHARD_MATMUL_PRODUCT_H

#include "common/loop.h"

// The operands, as the arrays of a product have them.
enum ProductOperand { PRODUCT_A, PRODUCT_B, PRODUCT_INPUT, PRODUCT_OUT, PRODUCT_OPERANDS };

struct Product {
    long m;
    long n;
    long k;
    uint has_input;
    float alpha;
    float beta;
    long row_strides[PRODUCT_OPERANDS];  // from row to row
    long column_strides[PRODUCT_OPERANDS];
    LoopNest batch;  // where each operand's matrices begin
    long splits;
    long split_length;
    long split_stride;
    long whole_alpha;  // of integers
    long whole_beta;
};

// The offset of element (0, 0) of an operand's matrix, for one index of the batch, counted in row-major order.
inline long matrix_offset(constant Product &product, ProductOperand operand, uint batch) {
    long offset = product.batch.start[operand];
    uint remainder = batch;
    for (long axis = product.batch.rank - 1; axis >= 0; axis -= 1) {
        const uint size = uint(product.batch.shape[axis]);
        offset += long(remainder % size) * product.batch.strides[operand][axis];
        remainder /= size;
    }
    return offset;
}

// Where the results of one index of the batch, and of one part of the sums, begin.
inline long out_offset(constant Product &product, uint batch, uint split) {
    return matrix_offset(product, PRODUCT_OUT, batch) + long(split) * product.split_stride;
}

// The part of the sums that one index of the grid's z axis computes: k from `first` up to `last`.
struct ProductPart {
    uint batch;
    uint split;
    long first;
    long last;
};

inline ProductPart product_part(constant Product &product, uint z) {
    const uint splits = uint(product.splits);
    const uint split = z % splits;
    const long first = long(split) * product.split_length;
    return {z / splits, split, first, min(product.k, first + product.split_length)};
}

// Where an element lies, from element (0, 0) of its matrix.
inline long element_offset(constant Product &product, ProductOperand operand, long row, long column) {
    return row * product.row_strides[operand] + column * product.column_strides[operand];
}

// Writes one element of a matrix. The sum is in float32; what is written is rounded once.
template <typename Out>
inline void write_element(
    constant Product &product,
    device const Out *input_matrix,
    device Out *out_matrix,
    long row,
    long column,
    float sum) {
    float value = product.alpha * sum;
    if (product.has_input) {
        value += product.beta * float(input_matrix[element_offset(product, PRODUCT_INPUT, row, column)]);
    }
    out_matrix[element_offset(product, PRODUCT_OUT, row, column)] = Out(value);
}

#endif
