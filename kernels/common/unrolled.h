// How loops are compiled.
#ifndef ORCHARD_COMMON_UNROLLED_H
#define ORCHARD_COMMON_UNROLLED_H

// Arrays, including arrays of matrices, stay in registers only if every index is a compile-time constant.
#define UNROLLED _Pragma("clang loop unroll(full)")

// Code that rarely runs is not unrolled, to save space in the instruction cache.
#define ROLLED _Pragma("clang loop unroll(disable)")

#endif
