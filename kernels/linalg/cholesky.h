// The Cholesky factor L of A = L Lᵀ for a matrix in threadgroup memory.
#pragma once

// Replaces the lower triangle of A by that of L, column by column, with one thread per row; rows are PITCH elements
// apart. If a leading minor is not positive, stops and sets `failed` to its order. All threads of a threadgroup call
// it.
template <uint PITCH> inline void factorize(threadgroup float *l, threadgroup uint *failed, uint row, uint size) {
    for (uint j = 0; j < size; j++) {
        float remainder = 0.0f;
        if (row >= j && row < size) {
            remainder = l[row * PITCH + j];
            for (uint k = 0; k < j; k++) {
                remainder -= l[row * PITCH + k] * l[j * PITCH + k];
            }
        }
        if (row == j) {
            if (remainder > 0.0f) {
                l[j * PITCH + j] = precise::sqrt(remainder);
            } else {
                *failed = j + 1;
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (*failed != 0) {
            break;
        }
        if (row > j && row < size) {
            l[row * PITCH + j] = precise::divide(remainder, l[j * PITCH + j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
