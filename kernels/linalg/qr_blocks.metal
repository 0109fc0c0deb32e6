// Reflections of matrices that do not fit in threadgroup memory, in blocks of BLOCK columns. The product of a block's
// reflections is I - V T Vᵀ. A SIMD-group processes one row at a time, with one column per lane. Every kernel processes
// all matrices of a batch.

#include <metal_stdlib>
using namespace metal;

// - columns: columns of the matrix that contains the vectors
// - count: number of reflections in it
// - first: first column of the block
// - width: columns of the matrix C that is multiplied by Q
// - begin: first of C's columns to multiply
#include "generated/qr_step.h"

#define BLOCK 32
#define PANEL_GROUPS 8
#define GROUPS 4
// The distance between rows in threadgroup memory, so that lanes touch different banks.
#define PITCH (BLOCK + 1)

// Returns element (i, j) of a block's V: 1 on the diagonal, 0 above.
inline float vector_element(device const float *a, constant QrStep &step, long first, long i, uint j) {
    long column = first + long(j);
    if (column >= step.count || i < column) {
        return 0.0f;
    }
    return i == column ? 1.0f : a[i * step.columns + column];
}

// to  [[buffer(1)]]  batch × rows × columns
kernel void copy_matrix(
    device const float *from [[buffer(0)]],
    device float *to [[buffer(1)]],
    constant QrStep &step [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    long index = (long(at.z) * step.rows + at.y) * step.columns + at.x;
    to[index] = from[index];
}

// c  [[buffer(0)]]  batch × rows × width: set to the identity matrix
kernel void unit_matrix(
    device float *c [[buffer(0)]], constant QrStep &step [[buffer(1)]], uint3 at [[thread_position_in_grid]]) {
    c[(long(at.z) * step.rows + at.y) * step.width + at.x] = at.x == at.y ? 1.0f : 0.0f;
}

// Factors a block's columns one after the other, with one threadgroup per matrix. The products of a column with all
// columns, summed over the rows, give its norm and the change of the other columns.
//
// a    [[buffer(0)]]  batch × rows × columns
// tau  [[buffer(1)]]  batch × count
kernel void factor_panel(
    device float *a [[buffer(0)]],
    device float *tau [[buffer(1)]],
    constant QrStep &step [[buffer(2)]],
    uint matrix [[threadgroup_position_in_grid]],
    uint index [[thread_position_in_threadgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float sums[PANEL_GROUPS * BLOCK];
    threadgroup float extremes[PANEL_GROUPS];
    threadgroup uint nonzero[PANEL_GROUPS];
    device float *panel = a + long(matrix) * step.rows * step.columns + step.first;
    bool is_inside = step.first + lane < step.count;
    uint width = uint(min(long(BLOCK), step.count - step.first));
    for (uint j = 0; j < width; j++) {
        long row = step.first + j;
        float alpha = panel[row * step.columns + j];
        float top = is_inside ? panel[row * step.columns + lane] : 0.0f;
        float most = 0.0f;
        bool is_zero = true;
        for (long i = row + 1 + index; i < step.rows; i += PANEL_GROUPS * 32) {
            float x = panel[i * step.columns + j];
            most = max(most, fabs(x));
            is_zero = is_zero && x == 0.0f;
        }
        most = simd_max(most);
        is_zero = simd_all(is_zero);
        if (lane == 0) {
            extremes[group] = most;
            nonzero[group] = is_zero ? 0 : 1;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        uint found = 0;
        for (uint other = 0; other < PANEL_GROUPS; other++) {
            most = max(most, extremes[other]);
            found += nonzero[other];
        }
        if (found == 0) {  // uniform: the same for every thread
            if (index == 0) {
                tau[long(matrix) * step.count + row] = 0.0f;
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            continue;
        }
        float scale = max(most, fabs(alpha));
        float sum = 0.0f;
        for (long i = row + 1 + group; i < step.rows; i += PANEL_GROUPS) {
            float x = is_inside ? panel[i * step.columns + lane] : 0.0f;
            sum += precise::divide(simd_shuffle(x, ushort(j)), scale) * x;
        }
        sums[group * BLOCK + lane] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum = 0.0f;
        for (uint other = 0; other < PANEL_GROUPS; other++) {
            sum += sums[other * BLOCK + lane];
        }
        float unit = precise::divide(alpha, scale);
        float square = precise::divide(simd_shuffle(sum, ushort(j)), scale);
        float length = precise::sqrt(unit * unit + square);
        float beta = unit < 0.0f ? length : -length;
        float scaled_tau = 1.0f - precise::divide(unit, beta);
        float factor = precise::divide(1.0f, unit - beta);
        float change = scaled_tau * (top + factor * sum);
        for (long i = row + 1 + group; i < step.rows; i += PANEL_GROUPS) {
            float x = is_inside ? panel[i * step.columns + lane] : 0.0f;
            float v = precise::divide(simd_shuffle(x, ushort(j)), scale) * factor;
            if (is_inside && lane >= j) {
                panel[i * step.columns + lane] = lane == j ? v : x - v * change;
            }
        }
        if (group == 0 && is_inside && lane >= j) {
            panel[row * step.columns + lane] = lane == j ? beta * scale : top - change;
        }
        if (index == 0) {
            tau[long(matrix) * step.count + row] = scaled_tau;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    }
}

// Adds the products of all SIMD-groups; each has summed them over its rows.
inline void add_groups(threadgroup const float *sums, threadgroup float *total, uint index) {
    for (uint at = index; at < BLOCK * BLOCK; at += GROUPS * 32) {
        float sum = 0.0f;
        for (uint other = 0; other < GROUPS; other++) {
            sum += sums[other * BLOCK * BLOCK + at];
        }
        total[at / BLOCK * PITCH + at % BLOCK] = sum;
    }
}

#define BLOCK_THREADS                                                                                       \
    uint2 position [[threadgroup_position_in_grid]], uint2 thread_index [[thread_position_in_threadgroup]], \
        uint group [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]

// Computes T of each block of a matrix: T[j, j] = tau[j], and above it -tau[j] T Vᵀ V[:, j]. Threadgroup (x, y)
// computes block `first` / BLOCK + x of matrix y.
//
// a    [[buffer(0)]]  batch × rows × columns
// tau  [[buffer(1)]]  batch × count
// t    [[buffer(2)]]  batch × blocks × BLOCK × BLOCK
kernel void form_triangles(
    device const float *a [[buffer(0)]],
    device const float *tau [[buffer(1)]],
    device float *t [[buffer(2)]],
    constant QrStep &step [[buffer(3)]],
    BLOCK_THREADS) {
    threadgroup float sums[GROUPS * BLOCK * BLOCK];
    threadgroup float gram[BLOCK * PITCH];
    threadgroup float triangle[BLOCK * PITCH];
    uint index = thread_index.x;
    long block = step.first / BLOCK + position.x;
    long first = block * BLOCK;
    long blocks = (step.count + BLOCK - 1) / BLOCK;
    device const float *vectors = a + long(position.y) * step.rows * step.columns;
    device const float *scales = tau + long(position.y) * step.count;
    float products[BLOCK];
    for (uint j = 0; j < BLOCK; j++) {
        products[j] = 0.0f;
    }
    for (long i = first + group; i < step.rows; i += GROUPS) {
        float v = vector_element(vectors, step, first, i, lane);
        for (uint j = 0; j < BLOCK; j++) {
            products[j] += simd_shuffle(v, ushort(j)) * v;
        }
    }
    for (uint j = 0; j < BLOCK; j++) {
        sums[(group * BLOCK + j) * BLOCK + lane] = products[j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_groups(sums, gram, index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (group != 0) {
        return;
    }
    device float *result = t + (long(position.y) * blocks + block) * BLOCK * BLOCK + lane * BLOCK;
    for (uint j = 0; j < BLOCK; j++) {
        float scale = first + j < step.count ? scales[first + j] : 0.0f;
        float sum = 0.0f;
        for (uint l = lane; l < j; l++) {
            sum += triangle[lane * PITCH + l] * gram[l * PITCH + j];
        }
        float value = j < lane ? 0.0f : (j == lane ? scale : -scale * sum);
        triangle[lane * PITCH + j] = value;
        result[j] = value;
    }
}

// C = (I - V T Vᵀ) C, or with its transpose, for the columns of C from `begin` on, BLOCK of them per threadgroup. C may
// be the matrix of the vectors; then only the columns after the block change.
//
// a  [[buffer(0)]]  batch × rows × columns
// t  [[buffer(1)]]  batch × blocks × BLOCK × BLOCK
// c  [[buffer(2)]]  batch × rows × width
kernel void apply_block(
    device const float *a [[buffer(0)]],
    device const float *t [[buffer(1)]],
    device float *c [[buffer(2)]],
    constant QrStep &step [[buffer(3)]],
    BLOCK_THREADS) {
    threadgroup float sums[GROUPS * BLOCK * BLOCK];
    threadgroup float projection[BLOCK * PITCH];
    threadgroup float triangle[BLOCK * PITCH];
    uint index = thread_index.x;
    long blocks = (step.count + BLOCK - 1) / BLOCK;
    device const float *vectors = a + long(position.y) * step.rows * step.columns;
    device const float *block_triangle = t + (long(position.y) * blocks + step.first / BLOCK) * BLOCK * BLOCK;
    long column = step.begin + long(position.x) * BLOCK + lane;
    bool is_inside = column < step.width;
    device float *c_column = c + long(position.y) * step.rows * step.width + column;
    float products[BLOCK];
    for (uint j = 0; j < BLOCK; j++) {
        products[j] = 0.0f;
    }
    for (long i = step.first + group; i < step.rows; i += GROUPS) {
        float v = vector_element(vectors, step, step.first, i, lane);
        float x = is_inside ? c_column[i * step.width] : 0.0f;
        for (uint j = 0; j < BLOCK; j++) {
            products[j] += simd_shuffle(v, ushort(j)) * x;
        }
    }
    for (uint j = 0; j < BLOCK; j++) {
        sums[(group * BLOCK + j) * BLOCK + lane] = products[j];
    }
    for (uint at = index; at < BLOCK * BLOCK; at += GROUPS * 32) {
        uint i = at / BLOCK;
        uint j = at % BLOCK;
        triangle[(step.transpose != 0 ? j : i) * PITCH + (step.transpose != 0 ? i : j)] = block_triangle[at];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_groups(sums, projection, index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < BLOCK; j++) {
        products[j] = 0.0f;
    }
    for (uint l = 0; l < BLOCK; l++) {
        float x = projection[l * PITCH + lane];
        for (uint j = 0; j < BLOCK; j++) {
            products[j] += triangle[j * PITCH + l] * x;
        }
    }
    for (long i = step.first + group; i < step.rows; i += GROUPS) {
        float v = vector_element(vectors, step, step.first, i, lane);
        float x = is_inside ? c_column[i * step.width] : 0.0f;
        for (uint j = 0; j < BLOCK; j++) {
            x -= simd_shuffle(v, ushort(j)) * products[j];
        }
        if (is_inside) {
            c_column[i * step.width] = x;
        }
    }
}

// Copies the upper triangle of the first `width` rows, with the signs of rows changed such that the diagonal is
// positive.
//
// a  [[buffer(0)]]  batch × rows × columns
// r  [[buffer(1)]]  batch × width × columns
kernel void take_upper(
    device const float *a [[buffer(0)]],
    device float *r [[buffer(1)]],
    constant QrStep &step [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    device const float *factors = a + long(at.z) * step.rows * step.columns;
    float value = 0.0f;
    if (at.x >= at.y && at.y < step.count) {
        value = factors[at.y * step.columns + at.x];
        value = factors[at.y * step.columns + at.y] < 0.0f ? 0.0f - value : value;
    }
    r[(long(at.z) * step.width + at.y) * step.columns + at.x] = value;
}

// Changes the signs of Q's columns in the same way as those of R's rows.
//
// a  [[buffer(0)]]  batch × rows × columns
// q  [[buffer(1)]]  batch × rows × width
kernel void change_signs(
    device const float *a [[buffer(0)]],
    device float *q [[buffer(1)]],
    constant QrStep &step [[buffer(2)]],
    uint3 at [[thread_position_in_grid]]) {
    long diagonal = (long(at.z) * step.rows + at.x) * step.columns + at.x;
    long index = (long(at.z) * step.rows + at.y) * step.width + at.x;
    if (at.x < step.count && a[diagonal] < 0.0f) {
        q[index] = 0.0f - q[index];
    }
}
