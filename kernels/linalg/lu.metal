// LU factorization with partial pivoting, and solution of systems. One threadgroup per matrix, which is in threadgroup
// memory.

#include <metal_stdlib>
using namespace metal;

#include "generated/lu_factor.h"
#include "generated/lu_permutation.h"
#include "generated/lu_solve.h"
#include "generated/solve.h"
#include "linalg/lu.h"

inline void load(device const float *from, threadgroup float *a, uint rows, uint columns, Worker worker) {
    for (uint at = worker.index; at < rows * columns; at += worker.threads) {
        a[at / columns * ROW + at % columns] = from[at];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

inline void store(threadgroup const float *a, device float *to, uint rows, uint columns, Worker worker) {
    for (uint at = worker.index; at < rows * columns; at += worker.threads) {
        to[at] = a[at / columns * ROW + at % columns];
    }
}

// Computes X from the factors of A, RIGHT columns at a time. B is permuted by the order of A's rows; without B, the
// identity matrix is used.
inline void solve_columns(
    threadgroup const float *a,
    threadgroup float *b,
    threadgroup const uint *order,
    device const float *right,
    device float *x,
    uint size,
    uint columns,
    Worker worker) {
    for (uint start = 0; start < columns; start += RIGHT) {
        uint width = min(uint(RIGHT), columns - start);
        for (uint at = worker.index; at < size * width; at += worker.threads) {
            uint i = at / width;
            uint j = start + at % width;
            float identity = order[i] == j ? 1.0f : 0.0f;
            b[i * RIGHT + at % width] = right ? right[order[i] * columns + j] : identity;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        substitute(a, b, size, width, Triangle{false, false, true}, worker);
        substitute(a, b, size, width, Triangle{true, false, false}, worker);
        for (uint at = worker.index; at < size * width; at += worker.threads) {
            uint i = at / width;
            x[i * columns + start + at % width] = b[i * RIGHT + at % width];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

#define WORKER_ARGUMENTS                                                                                \
    uint matrix [[threadgroup_position_in_grid]], uint thread_index [[thread_position_in_threadgroup]], \
        uint threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],              \
        uint group [[simdgroup_index_in_threadgroup]]

// The memory and the threads of a kernel that solves, and the size of its matrix.
#define SOLVER                                                       \
    threadgroup float factors[MAX_SIZE * ROW];                       \
    threadgroup float right[MAX_SIZE * RIGHT];                       \
    threadgroup uint order[MAX_SIZE];                                \
    Worker worker{thread_index, threads, lane, group, threads / 32}; \
    uint size = uint(problem.size)

// a       [[buffer(0)]]  batch × rows × columns
// lu      [[buffer(1)]]  batch × rows × columns: L below the diagonal, U on and above it
// pivots  [[buffer(2)]]  batch × min(rows, columns), from 1
// info    [[buffer(3)]]  batch: the first pivot that is 0, counted from 1; or 0
kernel void lu_factor(
    device const float *a [[buffer(0)]],
    device float *lu [[buffer(1)]],
    device int *pivots [[buffer(2)]],
    device int *info [[buffer(3)]],
    constant LuFactor &problem [[buffer(4)]],
    WORKER_ARGUMENTS) {
    threadgroup float factors[MAX_SIZE * ROW];
    threadgroup uint order[MAX_SIZE];
    Worker worker{thread_index, threads, lane, group, threads / 32};
    uint rows = uint(problem.rows);
    uint columns = uint(problem.columns);
    long first = long(matrix) * rows * columns;
    load(a + first, factors, rows, columns, worker);
    device int *swaps = pivots + long(matrix) * min(rows, columns);
    uint failed = eliminate(factors, order, swaps, rows, columns, problem.pivot != 0, worker);
    store(factors, lu + first, rows, columns, worker);
    if (thread_index == 0) {
        info[matrix] = int(failed);
    }
}

// a     [[buffer(0)]]  batch × size × size
// b     [[buffer(1)]]  batch × size × columns
// x     [[buffer(2)]]  batch × size × columns
// info  [[buffer(3)]]  batch: the first pivot that is 0, counted from 1; or 0
kernel void solve(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    device int *info [[buffer(3)]],
    constant Solve &problem [[buffer(4)]],
    WORKER_ARGUMENTS) {
    SOLVER;
    uint columns = uint(problem.columns);
    load(a + long(matrix) * size * size, factors, size, size, worker);
    uint failed = eliminate(factors, order, nullptr, size, size, true, worker);
    long first = long(matrix) * size * columns;
    solve_columns(factors, right, order, b + first, x + first, size, columns, worker);
    if (thread_index == 0) {
        info[matrix] = int(failed);
    }
}

// The operands of `solve`, and
// lu      [[buffer(4)]]  batch × size × size: the factors
// pivots  [[buffer(5)]]  batch × size, from 1
kernel void solve_keeping(
    device const float *a [[buffer(0)]],
    device const float *b [[buffer(1)]],
    device float *x [[buffer(2)]],
    device int *info [[buffer(3)]],
    device float *lu [[buffer(4)]],
    device int *pivots [[buffer(5)]],
    constant Solve &problem [[buffer(6)]],
    WORKER_ARGUMENTS) {
    SOLVER;
    uint columns = uint(problem.columns);
    long square = long(matrix) * size * size;
    load(a + square, factors, size, size, worker);
    uint failed = eliminate(factors, order, pivots + long(matrix) * size, size, size, true, worker);
    store(factors, lu + square, size, size, worker);
    long first = long(matrix) * size * columns;
    solve_columns(factors, right, order, b + first, x + first, size, columns, worker);
    if (thread_index == 0) {
        info[matrix] = int(failed);
    }
}

// a     [[buffer(0)]]  batch × size × size
// x     [[buffer(1)]]  batch × size × size: the inverse
// info  [[buffer(2)]]  batch: the first pivot that is 0, counted from 1; or 0
kernel void invert(
    device const float *a [[buffer(0)]],
    device float *x [[buffer(1)]],
    device int *info [[buffer(2)]],
    constant Solve &problem [[buffer(3)]],
    WORKER_ARGUMENTS) {
    SOLVER;
    long first = long(matrix) * size * size;
    load(a + first, factors, size, size, worker);
    uint failed = eliminate(factors, order, nullptr, size, size, true, worker);
    solve_columns(factors, right, order, nullptr, x + first, size, size, worker);
    if (thread_index == 0) {
        info[matrix] = int(failed);
    }
}

// lu      [[buffer(0)]]  batch × size × size
// pivots  [[buffer(1)]]  batch × size, from 1; those outside the matrix are ignored
// b       [[buffer(2)]]  batch × size × columns
// x       [[buffer(3)]]  batch × size × columns: of A X = B, or of Aᵀ X = B
kernel void lu_solve(
    device const float *lu [[buffer(0)]],
    device const int *pivots [[buffer(1)]],
    device const float *b [[buffer(2)]],
    device float *x [[buffer(3)]],
    constant LuSolve &problem [[buffer(4)]],
    WORKER_ARGUMENTS) {
    SOLVER;
    uint columns = uint(problem.columns);
    bool adjoint = problem.adjoint != 0;
    if (thread_index == 0) {
        for (uint i = 0; i < size; i++) {
            order[i] = i;
        }
        for (uint i = 0; i < size; i++) {
            uint other = uint(pivots[long(matrix) * size + i]) - 1u;
            uint row = order[i];
            if (other < size) {
                order[i] = order[other];
                order[other] = row;
            }
        }
    }
    load(lu + long(matrix) * size * size, factors, size, size, worker);
    long first = long(matrix) * size * columns;
    if (!adjoint) {
        solve_columns(factors, right, order, b + first, x + first, size, columns, worker);
        return;
    }
    for (uint start = 0; start < columns; start += RIGHT) {
        uint width = min(uint(RIGHT), columns - start);
        for (uint at = thread_index; at < size * width; at += threads) {
            uint i = at / width;
            right[i * RIGHT + at % width] = b[first + i * columns + start + at % width];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        substitute(factors, right, size, width, Triangle{false, true, false}, worker);
        substitute(factors, right, size, width, Triangle{true, true, true}, worker);
        for (uint at = thread_index; at < size * width; at += threads) {
            uint i = at / width;
            x[first + order[i] * columns + start + at % width] = right[i * RIGHT + at % width];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

// pivots       [[buffer(0)]]  batch × pivots, from 1; those outside the matrix are ignored
// permutation  [[buffer(1)]]  batch × rows: row i of Pᵀ A (with `inverse`, of P A) is row permutation[i] of A
kernel void lu_permutation(
    device const int *pivots [[buffer(0)]],
    device int *permutation [[buffer(1)]],
    constant LuPermutation &problem [[buffer(2)]],
    uint matrix [[thread_position_in_grid]]) {
    uint rows = uint(problem.rows);
    uint count = uint(problem.pivots);
    device int *order = permutation + long(matrix) * rows;
    for (uint i = 0; i < rows; i++) {
        order[i] = int(i);
    }
    for (uint step = 0; step < count; step++) {
        uint i = problem.inverse != 0 ? count - 1 - step : step;
        uint other = uint(pivots[long(matrix) * count + i]) - 1u;
        if (other < rows) {
            int row = order[i];
            order[i] = order[other];
            order[other] = row;
        }
    }
}
