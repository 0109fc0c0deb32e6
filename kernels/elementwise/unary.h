// Elementwise operations on one operand, for unary.metal and for the kernels that `compile` generates. If
// `operation` is a constant, the compiler keeps one formula.

#ifndef ORCHARD_ELEMENTWISE_UNARY_H
#define ORCHARD_ELEMENTWISE_UNARY_H

#include "common/bits.h"
#include "common/gamma.h"
#include "common/gated.h"
#include "common/math.h"
#include "common/narrow.h"
#include "common/special.h"
#include "formulas/bessel.h"
#include "formulas/bessel_kinds.h"
#include "generated/unary.h"

namespace orchard {
namespace unary {

#include "formulas/unary.h"

inline float apply(uint operation, float x) {
    switch (operation) { UNARY_FLOATS(ORCHARD_CASE, OfFloats, of(x)) }
    return NAN;
}

// Like `apply`, for results that are rounded to 16 bits.
inline float apply_narrow(uint operation, float x) {
    switch (operation) {
    case UNARY_SIGMOID: return orchard::narrow::sigmoid(x);
    case UNARY_GELU: return orchard::narrow::gelu(x);
    case UNARY_GELU_TANH: return orchard::narrow::gelu_tanh(x);
    case UNARY_SILU: return orchard::narrow::silu(x);
    default: return apply(operation, x);
    }
}

template <typename T> inline T apply_integer(uint operation, T x) {
    switch (operation) { UNARY_INTEGERS(ORCHARD_CASE, OfIntegers, of(x)) }
    return T(0);
}

inline bool apply_bool(uint operation, bool x) {
    switch (operation) { UNARY_BOOLS(ORCHARD_CASE, OfBools, of(x)) }
    return false;
}

inline bool test(uint operation, float x) {
    switch (operation) { UNARY_TESTS(ORCHARD_CASE, Test, of_float(x)) }
    return false;
}
template <typename T> inline bool test(uint operation, T x) {
    switch (operation) { UNARY_TESTS(ORCHARD_CASE, Test, of_whole(x)) }
    return false;
}

template <typename T> struct Compute {
    using Number = T;
    static T run(uint operation, T x) { return apply_integer(operation, x); }
};
template <> struct Compute<bool> {
    using Number = bool;
    static bool run(uint operation, bool x) { return apply_bool(operation, x); }
};
template <> struct Compute<float> {
    using Number = float;
    static float run(uint operation, float x) { return apply(operation, x); }
};
template <> struct Compute<half> {
    using Number = float;
    static half run(uint operation, half x) { return half(apply_narrow(operation, float(x))); }
};
template <> struct Compute<bfloat> {
    using Number = float;
    static bfloat run(uint operation, bfloat x) { return bfloat(apply_narrow(operation, float(x))); }
};

}  // namespace unary
}  // namespace orchard

#endif
