// Arguments of the kernels that solve triangular systems.
#pragma once

struct SolveTriangular {
    long batch;
    long rows;
    long columns;
    uint upper;          // 1 or 0
    uint unit_diagonal;  // 1 or 0
    uint transposed_a;   // 1: column-major; 0: row-major
    uint transposed_b;   // the same for b and x
};
