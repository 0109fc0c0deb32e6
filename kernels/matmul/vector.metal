// out = alpha a b + beta input (product.h) where b is a column (n = 1), for floats: each element of a is used once, so
// that no tile pays, and memory is all that counts. A row times a matrix comes here transposed.
//
// vector_along: rows of a lie along k. A SIMD-group sums 4 rows, its lanes side by side along k.
// vector_across: columns of a lie along m, or neither. A lane sums one row, the SIMD-groups of a threadgroup take every
// eighth of k.
//
// Sums are in float32, in an order that sizes alone decide (simd_sum's is not specified), and in blocks: a lane's sums
// of a block are added to its total, so that an error grows with the number of blocks and not with k. Grid:
// threadgroups (m / rows of a threadgroup, 1, batch * splits), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "matmul/product.h"

#define VECTOR_SIMDGROUPS 4
#define VECTOR_ROWS 4    // of a SIMD-group
#define VECTOR_STEPS 16  // of a lane in a block
#define ACROSS_SIMDGROUPS 8

constant uint quads
    [[function_constant(0)]];  // rows of a are read by fours: they lie along k and start at multiples of 4 elements

// Four elements from `at` on, 0 from `last` on.
template <typename T> inline float4 four_elements(device const T *source, long stride, long at, long last, bool whole) {
    if (whole && at + 4 <= last) {
        return float4(*reinterpret_cast<device const vec<T, 4> *>(source + at));
    }
    float4 elements = 0.0f;
    for (int i = 0; i < 4; i += 1) {
        if (at + i < last) {
            elements[i] = float(source[(at + i) * stride]);
        }
    }
    return elements;
}

// The sum of a SIMD-group's numbers, as a tree: the same in every lane.
inline float sum_of_lanes(float x) {
    for (ushort distance = 16; distance > 0; distance /= 2) {
        x += simd_shuffle_xor(x, distance);
    }
    return x;
}

template <typename T, typename Out>
kernel void vector_along(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device const Out *input [[buffer(2)]],
    device Out *out [[buffer(3)]],
    constant Product &product [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    constexpr long step = 32 * 4;
    const ProductPart part = product_part(product, group.z);
    const long row = (long(group.x) * VECTOR_SIMDGROUPS + simdgroup_index) * VECTOR_ROWS;
    if (row >= product.m) {
        return;
    }
    const int rows = int(min(long(VECTOR_ROWS), product.m - row));
    device const T *matrix = a + matrix_offset(product, PRODUCT_A, part.batch) + row * product.row_strides[PRODUCT_A];
    device const T *column = b + matrix_offset(product, PRODUCT_B, part.batch);

    float totals[VECTOR_ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (long block = part.first; block < part.last; block += step * VECTOR_STEPS) {
        const long end = min(part.last, block + step * VECTOR_STEPS);
        float sums[VECTOR_ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (long k = block + lane * 4; k < end; k += step) {
            const float4 right = four_elements(column, product.row_strides[PRODUCT_B], k, end, false);
            for (int i = 0; i < VECTOR_ROWS; i += 1) {
                // A constant number of iterations: sums stay in registers.
                if (i < rows) {
                    const float4 products = four_elements(
                                                matrix + i * product.row_strides[PRODUCT_A],
                                                product.column_strides[PRODUCT_A], k, end, quads) *
                                            right;
                    sums[i] += (products.x + products.y) + (products.z + products.w);
                }
            }
        }
        for (int i = 0; i < VECTOR_ROWS; i += 1) {
            totals[i] += sums[i];
        }
    }
    device const Out *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, part.batch);
    device Out *out_matrix = out + out_offset(product, part.batch, part.split);
    for (int i = 0; i < VECTOR_ROWS; i += 1) {
        const float sum = sum_of_lanes(totals[i]);
        if (lane == 0 && i < rows) {
            write_element(product, input_matrix, out_matrix, row + i, 0, sum);
        }
    }
}

template <typename T, typename Out>
kernel void vector_across(
    device const T *a [[buffer(0)]],
    device const T *b [[buffer(1)]],
    device const Out *input [[buffer(2)]],
    device Out *out [[buffer(3)]],
    constant Product &product [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float totals[ACROSS_SIMDGROUPS][32];
    const ProductPart part = product_part(product, group.z);
    const long row = long(group.x) * 32 + lane;
    device const T *matrix = a + matrix_offset(product, PRODUCT_A, part.batch) + row * product.row_strides[PRODUCT_A];
    device const T *column = b + matrix_offset(product, PRODUCT_B, part.batch);

    float total = 0.0f;
    for (long block = part.first; block < part.last; block += ACROSS_SIMDGROUPS * VECTOR_STEPS) {
        const long end = min(part.last, block + ACROSS_SIMDGROUPS * VECTOR_STEPS);
        float sum = 0.0f;
        for (long k = block + simdgroup_index; k < end && row < product.m; k += ACROSS_SIMDGROUPS) {
            sum += float(matrix[k * product.column_strides[PRODUCT_A]]) *
                   float(column[k * product.row_strides[PRODUCT_B]]);
        }
        total += sum;
    }
    totals[simdgroup_index][lane] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index == 0 && row < product.m) {
        float sum = 0.0f;
        for (int i = 0; i < ACROSS_SIMDGROUPS; i += 1) {
            sum += totals[i][lane];
        }
        device const Out *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, part.batch);
        write_element(product, input_matrix, out + out_offset(product, part.batch, part.split), row, 0, sum);
    }
}

#define VECTOR(name, T, Out)                                                \
    template [[host_name(#name "_" #T "_" #Out)]] kernel void name<T, Out>( \
        device const T *, device const T *, device const Out *, device Out *, constant Product &, uint3, uint, uint);

// Out is float where sums are cut into parts.
#define VECTOR_TYPES(name)       \
    VECTOR(name, float, float)   \
    VECTOR(name, half, half)     \
    VECTOR(name, half, float)    \
    VECTOR(name, bfloat, bfloat) \
    VECTOR(name, bfloat, float)

VECTOR_TYPES(vector_along)
VECTOR_TYPES(vector_across)
