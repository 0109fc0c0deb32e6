// The operations of the elementwise kernels, by number. The host passes a number as a function constant, so that a pipeline has one
// formula and no branch. src/ops/elementwise/codes.ts has the same lists; a test compares them.

#ifndef ORCHARD_ELEMENTWISE_CODES_H
#define ORCHARD_ELEMENTWISE_CODES_H

enum UnaryCode {
    UNARY_NEG = 0,
    UNARY_ABS = 1,
    UNARY_SIGN = 2,
    UNARY_SQUARE = 3,
    UNARY_RELU = 4,
    UNARY_FLOOR = 5,
    UNARY_CEIL = 6,
    UNARY_ROUND = 7,
    UNARY_RECIPROCAL = 8,
    UNARY_SQRT = 9,
    UNARY_RSQRT = 10,
    UNARY_EXP = 11,
    UNARY_EXP2 = 12,
    UNARY_EXPM1 = 13,
    UNARY_LOG = 14,
    UNARY_LOG2 = 15,
    UNARY_LOG10 = 16,
    UNARY_LOG1P = 17,
    UNARY_TANH = 18,
    UNARY_SIGMOID = 19,
    UNARY_ERF = 20,
    UNARY_SIN = 21,
    UNARY_COS = 22,
    UNARY_TAN = 23,
    UNARY_GELU = 24,
    UNARY_GELU_TANH = 25,
    UNARY_SILU = 26,
    UNARY_BITWISE_NOT = 27,
    UNARY_LOGICAL_NOT = 28,
    UNARY_ISNAN = 29,
    UNARY_ISINF = 30,
    UNARY_ISFINITE = 31,
};

enum BinaryCode {
    BINARY_ADD = 0,
    BINARY_SUB = 1,
    BINARY_MUL = 2,
    BINARY_DIV = 3,
    BINARY_FLOOR_DIVIDE = 4,
    BINARY_TRUNC_DIVIDE = 5,
    BINARY_REMAINDER = 6,
    BINARY_FMOD = 7,
    BINARY_POW = 8,
    BINARY_MAXIMUM = 9,
    BINARY_MINIMUM = 10,
    BINARY_ATAN2 = 11,
    BINARY_SWIGLU = 12,
    BINARY_GELU_GRADIENT = 13,
    BINARY_GELU_TANH_GRADIENT = 14,
    BINARY_SILU_GRADIENT = 15,
    BINARY_BITWISE_AND = 16,
    BINARY_BITWISE_OR = 17,
    BINARY_BITWISE_XOR = 18,
    BINARY_EQ = 19,
    BINARY_NE = 20,
    BINARY_LT = 21,
    BINARY_LE = 22,
    BINARY_GT = 23,
    BINARY_GE = 24,
    BINARY_LOGICAL_AND = 25,
    BINARY_LOGICAL_OR = 26,
    BINARY_LOGICAL_XOR = 27,
};

enum TernaryCode {
    TERNARY_WHERE = 0,
    TERNARY_CLAMP = 1,
    TERNARY_LERP = 2,
    TERNARY_SOFTPLUS = 3,
};

#endif
