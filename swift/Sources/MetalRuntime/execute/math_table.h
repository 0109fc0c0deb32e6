#ifndef MATH_TABLE_H
#define MATH_TABLE_H

#include "metal/kernel_abi.h"

// The value of MrtRuntime::math.
extern "C" const MrtMath mrt_math_table;

#endif
