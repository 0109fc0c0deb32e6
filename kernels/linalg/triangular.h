// Arguments of the kernels that solve triangular systems.
#pragma once

// - transposed_a: 1: column-major; 0: row-major
// - transposed_b: the same for b and x
#include "generated/solve_triangular.h"
