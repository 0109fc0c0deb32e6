// out = alpha a b + beta input for each matrix of a batch: a is m x k, b is k x n, input and out are m x n.
//
// The host (src/ops/matmul/primitive.ts) and the kernels share the struct. Offsets and strides are in elements; strides
// may be 0 (broadcast) or negative. Sums may be split into `splits` parts of `split_length` along k. These are written
// to float32 memory, `split_stride` apart, and combine.metal adds them.

#ifndef ORCHARD_MATMUL_PRODUCT_H
#define ORCHARD_MATMUL_PRODUCT_H

#include "common/loop.h"

// - row_strides: between rows
// - batch: the offsets of each operand's matrices
// - whole_alpha: of integers
#include "generated/product.h"

// Indices of the operands in the arrays of a product.
enum ProductOperand { PRODUCT_A, PRODUCT_B, PRODUCT_INPUT, PRODUCT_OUT, PRODUCT_OPERANDS };

// The operands of a kernel: a is m x k, b is k x n, input (not read without has_input) and out are m x n. If sums are
// split, Out is the type of the partial sums.
#define PRODUCT_ARGUMENTS(T, Out)                                                                            \
    device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device const Out *input [[buffer(2)]], \
        device Out *out [[buffer(3)]], constant Product &product [[buffer(4)]]

// Returns the offset of element (0, 0) of an operand's matrix, for one index of the batch, counted in row-major order.
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

// Returns the offset of the results for one index of the batch and one part of the sums.
inline long out_offset(constant Product &product, uint batch, uint split) {
    return matrix_offset(product, PRODUCT_OUT, batch) + long(split) * product.split_stride;
}

// The part of the sums that one index of the grid's z axis computes: k from `first` to `last`.
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

// Returns the offset of an element from element (0, 0) of its matrix.
inline long element_offset(constant Product &product, ProductOperand operand, long row, long column) {
    return row * product.row_strides[operand] + column * product.column_strides[operand];
}

// Returns one element of a matrix. The sum is in float32, and the result is rounded once.
template <typename Out>
inline Out product_element(
    constant Product &product, device const Out *input_matrix, long row, long column, float sum) {
    float value = product.alpha * sum;
    if (product.has_input) {
        value += product.beta * float(input_matrix[element_offset(product, PRODUCT_INPUT, row, column)]);
    }
    return Out(value);
}

// Writes one element of a matrix.
template <typename Out>
inline void write_element(
    constant Product &product,
    device const Out *input_matrix,
    device Out *out_matrix,
    long row,
    long column,
    float sum) {
    out_matrix[element_offset(product, PRODUCT_OUT, row, column)] =
        product_element(product, input_matrix, row, column, sum);
}

#endif
