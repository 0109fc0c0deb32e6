// out = alpha a b + beta input (product.h) for a vector b (n = 1) of floats. Each element of a is used once, so tiles
// would not pay off, and memory bandwidth determines the time. A row times a matrix is computed as its transpose.
//
// vector_along: the rows of a are contiguous along k. A SIMD-group sums 4 rows, and its lanes divide k.
// vector_across: the columns of a are contiguous along m, or neither are contiguous. A threadgroup sums 32 rows: 8
// lanes have 4 rows each; the other lanes of the SIMD-group, and the other SIMD-groups, sum other parts of k. A
// SIMD-group reads each element of b once.
//
// Sums are in float32, in an order that depends on sizes only (the order of simd_sum is unspecified). They are blocked:
// a lane adds its sum of each block (16 values of k in vector_along, 8 in vector_across) to its total, so that the
// error grows with the number of blocks instead of k. Grid: threadgroups (m / rows of a threadgroup, 1, batch *
// splits), rounded up.

#include <metal_stdlib>
using namespace metal;

#include "matmul/product.h"

#define VECTOR_SIMDGROUPS 4
#define VECTOR_ROWS 4    // rows per SIMD-group
#define VECTOR_STEPS 16  // steps of a lane in a block
#define ACROSS_SIMDGROUPS 8
#define ACROSS_ROWS 32  // rows per threadgroup

// Whether four elements may be loaded at once: rows or columns of a are contiguous and start at multiples of 4
// elements.
constant uint quads [[function_constant(0)]];

// Returns four elements from `at` on, and 0 from `last` on.
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

// Returns the sum of a SIMD-group's numbers, added as a tree; it is the same in every lane.
inline float sum_of_lanes(float x) {
    for (ushort distance = 16; distance > 0; distance /= 2) {
        x += simd_shuffle_xor(x, distance);
    }
    return x;
}

template <typename T, typename Out>
kernel void vector_along(
    PRODUCT_ARGUMENTS(T, Out),
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
                // The number of iterations is constant, so that sums stay in registers.
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

// Returns elements of four adjacent rows, and 0 for rows from `left` on.
template <typename T> inline float4 four_rows(device const T *source, long stride, long left) {
    if (quads && left >= 4) {
        return float4(*reinterpret_cast<device const vec<T, 4> *>(source));
    }
    float4 elements = 0.0f;
    for (int i = 0; i < 4; i += 1) {
        if (i < left) {
            elements[i] = float(source[i * stride]);
        }
    }
    return elements;
}

template <typename T, typename Out>
kernel void vector_across(
    PRODUCT_ARGUMENTS(T, Out),
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup_index [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float totals[ACROSS_SIMDGROUPS][ACROSS_ROWS];
    const ProductPart part = product_part(product, group.z);
    const long first_row = long(group.x) * ACROSS_ROWS;
    const ushort lane_rows = ushort(lane % 8) * 4;  // 8 lanes share the 32 rows, and 4 groups of lanes 32 steps of k
    const ushort lane_step = ushort(lane / 8) * 8;
    const long row = first_row + lane_rows;
    const long left = product.m - row;
    const long k_stride = product.column_strides[PRODUCT_A];
    device const T *matrix = a + matrix_offset(product, PRODUCT_A, part.batch) + row * product.row_strides[PRODUCT_A];
    device const T *column = b + matrix_offset(product, PRODUCT_B, part.batch);

    float4 total = 0.0f;
    for (long block = part.first + simdgroup_index * 32; block < part.last; block += ACROSS_SIMDGROUPS * 32) {
        // Each lane loads one element of the vector, for all lanes that need it.
        const float lane_element =
            block + lane < part.last ? float(column[(block + lane) * product.row_strides[PRODUCT_B]]) : 0;
        float4 sum = 0.0f;
        for (ushort step = lane_step; step < lane_step + 8; step += 1) {
            const float right = simd_shuffle(lane_element, step);
            const long k = block + step;
            if (k < part.last && left > 0) {
                sum += four_rows(matrix + k * k_stride, product.row_strides[PRODUCT_A], left) * right;
            }
        }
        total += sum;
    }
    for (int i = 0; i < 4; i += 1) {
        total[i] += simd_shuffle_xor(total[i], 8);
        total[i] += simd_shuffle_xor(total[i], 16);
        if (lane_step == 0) {
            totals[simdgroup_index][lane_rows + i] = total[i];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index == 0 && first_row + lane < product.m) {
        float sum = 0.0f;
        for (int i = 0; i < ACROSS_SIMDGROUPS; i += 1) {
            sum += totals[i][lane];
        }
        device const Out *input_matrix = input + matrix_offset(product, PRODUCT_INPUT, part.batch);
        device Out *out_matrix = out + out_offset(product, part.batch, part.split);
        write_element(product, input_matrix, out_matrix, first_row + lane, 0, sum);
    }
}

#define VECTOR(name, T, Out)                                                \
    template [[host_name(#name "_" #T "_" #Out)]] kernel void name<T, Out>( \
        device const T *, device const T *, device const Out *, device Out *, constant Product &, uint3, uint, uint);

// Out is float if sums are split into parts.
#define VECTOR_TYPES(name)       \
    VECTOR(name, float, float)   \
    VECTOR(name, half, half)     \
    VECTOR(name, half, float)    \
    VECTOR(name, bfloat, bfloat) \
    VECTOR(name, bfloat, float)

VECTOR_TYPES(vector_along)
VECTOR_TYPES(vector_across)
