// The reductions, by number: the order of src/ops/reduction/names.ts; a test compares the two.

#ifndef ORCHARD_REDUCTION_CODES_H
#define ORCHARD_REDUCTION_CODES_H

enum ReductionCode {
    REDUCTION_SUM = 0,
    REDUCTION_MEAN = 1,
    REDUCTION_PROD = 2,
    REDUCTION_AMAX = 3,
    REDUCTION_AMIN = 4,
    REDUCTION_ALL = 5,
    REDUCTION_ANY = 6,
    REDUCTION_NORM_0 = 7,
    REDUCTION_NORM_1 = 8,
    REDUCTION_NORM_2 = 9,
    REDUCTION_NORM_INF = 10,
    REDUCTION_NORM_NEG_INF = 11,
    REDUCTION_NORM_P = 12,
    REDUCTION_VAR = 13,
    REDUCTION_STD = 14,
    REDUCTION_LOGSUMEXP = 15,
    REDUCTION_MAX = 16,
    REDUCTION_MIN = 17,
};

#endif
