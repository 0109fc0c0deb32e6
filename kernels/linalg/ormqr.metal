// Products of reflections with matrices. Each threadgroup computes `tile` columns of C, which are in threadgroup
// memory.

#include <metal_stdlib>
using namespace metal;

#include "linalg/reflections.h"

// - columns: of a
// - width: columns of C
// - team: lanes that share a column
#include "generated/ormqr.h"

// a        [[buffer(0)]]  batch × rows × columns
// tau      [[buffer(1)]]  batch × reflectors
// c        [[buffer(2)]]  batch × rows × width
// product  [[buffer(3)]]  batch × rows × width
// memory   rows × tile, where rows are padded to an odd length; then `rows` elements
kernel void ormqr(
    device const float *a [[buffer(0)]],
    device const float *tau [[buffer(1)]],
    device const float *c [[buffer(2)]],
    device float *product [[buffer(3)]],
    constant Ormqr &problem [[buffer(4)]],
    threadgroup float *memory [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 lane [[thread_position_in_threadgroup]],
    uint2 size [[threads_per_threadgroup]]) {
    Teams teams = {lane.x, size.x, uint(problem.team)};
    uint rows = uint(problem.rows);
    uint width = uint(problem.width);
    uint begin = group.x * uint(problem.tile);
    uint columns = min(uint(problem.tile), width - begin);
    uint stride = uint(problem.tile) | 1;
    uint count = uint(problem.reflectors);
    threadgroup float *v = memory + rows * stride;
    device const float *vectors = a + long(group.y) * rows * problem.columns;
    device const float *scales = tau + long(group.y) * count;
    long first = long(group.y) * rows * width + begin;
    for (uint at = teams.index; at < rows * columns; at += teams.threads) {
        uint i = at / columns;
        uint j = at % columns;
        memory[i * stride + j] = c[first + long(i) * width + j];
    }
    for (uint step = 0; step < count; step++) {
        uint j = problem.transpose != 0 ? step : count - 1 - step;
        for (uint i = j + 1 + teams.index; i < rows; i += teams.threads) {
            v[i] = vectors[long(i) * problem.columns + j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        reflect_columns(memory, stride, j, rows, 0, columns, v, scales[j], teams);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint at = teams.index; at < rows * columns; at += teams.threads) {
        uint i = at / columns;
        uint j = at % columns;
        product[first + long(i) * width + j] = memory[i * stride + j];
    }
}
