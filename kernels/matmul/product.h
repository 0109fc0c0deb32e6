// out = alpha a b + beta input for each matrix of a batch: a is m x k, b is k x n, input and out are m x n.
//
// The struct that the host (src/ops/matmul/matmul.metal.ts) and the kernels share. Offsets and strides count elements; strides may be 0
// (repeated) or negative. Sums may be cut into `splits` parts of `split_length`, which then go to memory of float32, one part after the
// other (`split_stride` apart), for combine.metal to add up.

#ifndef ORCHARD_MATMUL_PRODUCT_H
#define ORCHARD_MATMUL_PRODUCT_H

#define PRODUCT_MAX_BATCH_RANK 6

struct ProductOperand {
    long start;                          // of element (0, 0) of the first matrix, from where the operand is bound
    long row;                            // stride from row to row
    long column;
    long batch[PRODUCT_MAX_BATCH_RANK];  // stride along each axis of the batch
};

struct Product {
    long m;
    long n;
    long k;
    long splits;
    long split_length;
    long split_stride;
    long has_input;
    long batch_rank;
    long batch_shape[PRODUCT_MAX_BATCH_RANK];
    ProductOperand a;
    ProductOperand b;
    ProductOperand input;
    ProductOperand out;
    long whole_alpha;  // of integers
    long whole_beta;
    float alpha;
    float beta;
};

// The place of element (0, 0) of an operand's matrix, for one index of the batch, counted in row-major order.
inline long matrix_place(constant Product &product, constant ProductOperand &operand, uint batch) {
    long place = operand.start;
    ulong rest = batch;
    for (long axis = product.batch_rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(product.batch_shape[axis]);
        place += long(rest % size) * operand.batch[axis];
        rest /= size;
    }
    return place;
}

// Where the results of one index of the batch, and of one part of the sums, begin.
inline long out_place(constant Product &product, uint batch, uint split) {
    return matrix_place(product, product.out, batch) + long(split) * product.split_stride;
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
        value += product.beta * float(input_matrix[row * product.input.row + column * product.input.column]);
    }
    out_matrix[row * product.out.row + column * product.out.column] = Out(value);
}

#endif
