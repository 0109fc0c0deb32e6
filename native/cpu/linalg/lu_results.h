// Results computed from the factors of an LU factorization.
#pragma once

// A = P L U, of k = min(rows, columns) pivots: P is [rows, rows], L [rows, k] and U [k, columns]. Without pivots, P is
// not written.
#include "../../.build/generated/lu_parts_block.h"

// The determinant of square matrices, or with `is_logarithm` its sign and log |det|.
#include "../../.build/generated/lu_determinant_block.h"

#include "matrices.h"
