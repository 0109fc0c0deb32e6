// out = alpha a b + beta input for floats, for products that a library of the GPU's vendor computes: the engine for
// NVIDIA GPUs calls cuBLASLt in place of these kernels (swift/Sources/MetalRuntime/gpu/product.h). If the library
// rejects a product, they run: one thread per element, with sums in float32 in ascending order of k.
//
// Grid: threads (n, m, matrices of the batch).

#include <metal_stdlib>
using namespace metal;

// a is m x k, b is k x n, input and out are m x n. The elements of a row are adjacent; in a transposed factor, the
// elements of a column are.
// - batch: sizes of the batch's two axes
// - leading: of a, b, input, out: between rows, or between columns of a transposed factor
// - batch_strides: of a, b, input, out
// - transposed: of a, b
// - addend: 0: none, 1: a matrix, 2: one row, which is added to each row
// - beta: 1 for a row
#include "generated/library_product.h"

// Returns the offset of an operand's matrix.
inline long matrix_at(constant LibraryProduct &product, int operand, uint batch) {
    const uint inner = uint(product.batch[1]);
    return long(batch / inner) * product.batch_strides[operand][0] +
           long(batch % inner) * product.batch_strides[operand][1];
}

// Return the distances between rows and between columns of a factor.
inline long row_stride(constant LibraryProduct &product, int operand) {
    return product.transposed[operand] ? 1 : product.leading[operand];
}
inline long column_stride(constant LibraryProduct &product, int operand) {
    return product.transposed[operand] ? product.leading[operand] : 1;
}

template <typename T>
kernel void library_product(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device const T *input [[buffer(2)]],
    device T *out [[buffer(3)]],
    constant LibraryProduct &product [[buffer(4)]],
    uint3 position [[thread_position_in_grid]]) {
    const long row = position.y;
    const long column = position.x;
    device const T *left = a + matrix_at(product, 0, position.z) + row * row_stride(product, 0);
    device const T *right = b + matrix_at(product, 1, position.z) + column * column_stride(product, 1);
    float sum = 0.0f;
    for (long k = 0; k < product.k; k += 1) {
        const T a_element = left[k * column_stride(product, 0)];
        const T b_element = right[k * row_stride(product, 1)];
        sum = fma(float(a_element), float(b_element), sum);
    }
    float value = product.alpha * sum;
    if (product.addend != 0) {
        const long at = matrix_at(product, 2, position.z) + row * product.leading[2] + column;
        value += product.beta * float(input[at]);
    }
    out[matrix_at(product, 3, position.z) + row * product.leading[3] + column] = T(value);
}

// The engine recognizes these kernels by name: the names must match swift/Sources/MetalRuntime/gpu/product.cpp.
#define LIBRARY_PRODUCT(T)                                                                \
    template [[host_name("orchard_library_product_" #T)]] kernel void library_product<T>( \
        device const T *, device const T *, device const T *, device T *, constant LibraryProduct &, uint3);

LIBRARY_PRODUCT(float)
LIBRARY_PRODUCT(half)
LIBRARY_PRODUCT(bfloat)
