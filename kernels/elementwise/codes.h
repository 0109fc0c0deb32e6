// The operations of the elementwise kernels, by number. The host passes a number as a function constant, so that a pipeline has one
// formula and no branch. src/ops/elementwise/codes.ts has the same list; a test compares the two.

#ifndef ORCHARD_ELEMENTWISE_CODES_H
#define ORCHARD_ELEMENTWISE_CODES_H

enum UnaryCode {
    UNARY_NEG = 0,
    UNARY_EXP = 1,
};

enum BinaryCode {
    BINARY_ADD = 0,
    BINARY_SUB = 1,
    BINARY_MUL = 2,
    BINARY_DIV = 3,
};

#endif
