// Solves A X = B for triangular matrices A. One thread per column of B; a threadgroup has 64 columns and their matrix.
// Row by row: X[i] = (B[i] - Σ A[i, k] X[k] over the known rows k) / A[i, i].

#include <metal_stdlib>
using namespace metal;

#include "linalg/matrix.h"
#include "linalg/triangular.h"

// a  [[buffer(0)]]  batch × rows × rows; one triangle is read
// b  [[buffer(1)]]  batch × rows × columns
// x  [[buffer(2)]]  batch × rows × columns
kernel void solve_triangular(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    constant SolveTriangular &problem [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 lane [[thread_position_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
    threadgroup float factor[MAX_SIZE * ROW];
    uint size = uint(problem.rows);
    bool upper = problem.upper != 0;
    long matrix = long(group.y);
    for (uint at = lane.x; at < size * size; at += threads.x) {
        uint outer = at / size;
        uint inner = at % size;
        uint i = problem.transposed_a != 0 ? inner : outer;
        uint j = problem.transposed_a != 0 ? outer : inner;
        bool is_read = upper ? j >= i : j <= i;
        factor[i * ROW + j] = is_read ? a[matrix * size * size + at] : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    long column = long(group.x) * threads.x + lane.x;
    if (column >= problem.columns) {
        return;
    }
    bool is_turned = problem.transposed_b != 0;
    long row_stride = is_turned ? 1 : problem.columns;
    long first = matrix * size * problem.columns + column * (is_turned ? size : 1);
    float solution[MAX_SIZE];
    for (uint step = 0; step < size; step++) {
        uint i = upper ? size - 1 - step : step;
        float rest = b[first + i * row_stride];
        for (uint known = 0; known < step; known++) {
            uint k = upper ? size - 1 - known : known;
            rest -= factor[i * ROW + k] * solution[k];
        }
        solution[i] = problem.unit_diagonal != 0 ? rest : precise::divide(rest, factor[i * ROW + i]);
        x[first + i * row_stride] = solution[i];
    }
}
