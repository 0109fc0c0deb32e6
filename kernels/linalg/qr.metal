// QR factorization: one threadgroup per matrix, which is in threadgroup memory with rows of `stride` elements. R is
// written first; then Q replaces the vectors of the reflections.

#include <metal_stdlib>
using namespace metal;

#include "linalg/reflections.h"

// - width: columns of Q
// - reflectors: number of reflections in a product
// - stride: between rows in threadgroup memory
// - team: lanes that share a column
#include "generated/qr.h"

#define QR_ARGUMENTS                                                                                 \
    constant Qr &problem [[buffer(3)]], threadgroup float *memory [[threadgroup(0)]],                \
        uint matrix [[threadgroup_position_in_grid]], uint index [[thread_position_in_threadgroup]], \
        uint threads [[threads_per_threadgroup]]

inline void load(device const float *from, threadgroup float *a, uint stride, uint rows, uint columns, Teams teams) {
    for (uint at = teams.index; at < rows * columns; at += teams.threads) {
        a[at / columns * stride + at % columns] = from[at];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// a       [[buffer(0)]]  batch × rows × columns
// q       [[buffer(1)]]  batch × rows × width
// r       [[buffer(2)]]  batch × width × columns; if width is 0, min(rows, columns) rows
// memory  rows × stride, then rows, then twice the number of reflections
kernel void qr(
    device const float *a [[buffer(0)]], device float *q [[buffer(1)]], device float *r [[buffer(2)]], QR_ARGUMENTS) {
    Teams teams = {index, threads, uint(problem.team)};
    uint rows = uint(problem.rows);
    uint columns = uint(problem.columns);
    uint width = uint(problem.width);
    uint stride = uint(problem.stride);
    uint count = min(rows, columns);
    uint inner = width > 0 ? width : count;
    threadgroup float *v = memory + rows * stride;
    threadgroup float *tau = v + rows;
    threadgroup float *sign = tau + count;
    load(a + long(matrix) * rows * columns, memory, stride, rows, columns, teams);
    factorize(memory, stride, rows, columns, count, v, tau, teams);
    for (uint i = index; i < count; i += threads) {
        sign[i] = memory[i * stride + i] < 0.0f ? -1.0f : 1.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    device float *r_matrix = r + long(matrix) * inner * columns;
    for (uint at = index; at < inner * columns; at += threads) {
        uint i = at / columns;
        uint j = at % columns;
        r_matrix[at] = i < count && j >= i ? sign[i] * memory[i * stride + j] : 0.0f;
    }
    if (width == 0) {
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    form_product(memory, stride, rows, count, width, v, tau, teams);
    device float *q_matrix = q + long(matrix) * rows * width;
    for (uint at = index; at < rows * width; at += threads) {
        uint j = at % width;
        q_matrix[at] = (j < count ? sign[j] : 1.0f) * memory[at / width * stride + j];
    }
}

// a        [[buffer(0)]]  batch × rows × columns
// factors  [[buffer(1)]]  batch × rows × columns
// tau      [[buffer(2)]]  batch × min(rows, columns)
// memory   as for `qr`
kernel void geqrf(
    device const float *a [[buffer(0)]],
    device float *factors [[buffer(1)]],
    device float *tau [[buffer(2)]],
    QR_ARGUMENTS) {
    Teams teams = {index, threads, uint(problem.team)};
    uint rows = uint(problem.rows);
    uint columns = uint(problem.columns);
    uint stride = uint(problem.stride);
    uint count = min(rows, columns);
    threadgroup float *v = memory + rows * stride;
    threadgroup float *scales = v + rows;
    long first = long(matrix) * rows * columns;
    load(a + first, memory, stride, rows, columns, teams);
    factorize(memory, stride, rows, columns, count, v, scales, teams);
    for (uint at = index; at < rows * columns; at += threads) {
        factors[first + at] = memory[at / columns * stride + at % columns];
    }
    for (uint i = index; i < count; i += threads) {
        tau[long(matrix) * count + i] = scales[i];
    }
}

// a    [[buffer(0)]]  batch × rows × columns
// tau  [[buffer(1)]]  batch × reflectors
// q    [[buffer(2)]]  batch × rows × width
// memory  as for `qr`
kernel void householder_product(
    device const float *a [[buffer(0)]],
    device const float *tau [[buffer(1)]],
    device float *q [[buffer(2)]],
    QR_ARGUMENTS) {
    Teams teams = {index, threads, uint(problem.team)};
    uint rows = uint(problem.rows);
    uint columns = uint(problem.columns);
    uint width = uint(problem.width);
    uint stride = uint(problem.stride);
    uint count = uint(problem.reflectors);
    threadgroup float *v = memory + rows * stride;
    threadgroup float *scales = v + rows;
    for (uint i = index; i < count; i += threads) {
        scales[i] = tau[long(matrix) * count + i];
    }
    load(a + long(matrix) * rows * columns, memory, stride, rows, columns, teams);
    form_product(memory, stride, rows, count, width, v, scales, teams);
    device float *q_matrix = q + long(matrix) * rows * width;
    for (uint at = index; at < rows * width; at += threads) {
        q_matrix[at] = memory[at / width * stride + at % width];
    }
}
