// Elementwise operations on three operands, for ternary.metal and for the kernels that `compile` generates. If
// `operation` is a constant, the compiler keeps one formula.

#ifndef ORCHARD_ELEMENTWISE_TERNARY_H
#define ORCHARD_ELEMENTWISE_TERNARY_H

#include "common/math.h"
#include "generated/ternary.h"

namespace orchard {
namespace ternary {

#include "formulas/ternary.h"

inline float apply(uint operation, float a, float b, float c) {
    switch (operation) { TERNARY_FLOATS(ORCHARD_CASE, OfFloats, of(a, b, c)) }
    return NAN;
}

template <typename T> inline T apply_integer(uint operation, T a, T b, T c) {
    switch (operation) { TERNARY_INTEGERS(ORCHARD_CASE, OfIntegers, of(a, b, c)) }
    return T(0);
}

template <typename T> struct Compute {
    static T run(uint operation, T a, T b, T c) { return apply_integer(operation, a, b, c); }
};
template <> struct Compute<float> {
    static float run(uint operation, float a, float b, float c) { return apply(operation, a, b, c); }
};
template <> struct Compute<half> {
    static half run(uint operation, half a, half b, half c) {
        return half(apply(operation, float(a), float(b), float(c)));
    }
};
template <> struct Compute<bfloat> {
    static bfloat run(uint operation, bfloat a, bfloat b, bfloat c) {
        return bfloat(apply(operation, float(a), float(b), float(c)));
    }
};

}  // namespace ternary
}  // namespace orchard

#endif
