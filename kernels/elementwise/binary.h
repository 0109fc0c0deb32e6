// Elementwise operations on two operands, for binary.metal and for the kernels that `compile` generates. If
// `operation` is a constant, the compiler keeps one formula.

#ifndef ORCHARD_ELEMENTWISE_BINARY_H
#define ORCHARD_ELEMENTWISE_BINARY_H

#include "common/bits.h"
#include "common/gamma.h"
#include "common/gated.h"
#include "common/math.h"
#include "common/quotients.h"
#include "common/special.h"
#include "generated/binary.h"

namespace orchard {
namespace binary {

#include "formulas/binary.h"

inline float apply(uint operation, float a, float b) {
    switch (operation) { BINARY_FLOATS(ORCHARD_CASE, OfFloats, of(a, b)) }
    return NAN;
}

template <typename T> inline T apply_integer(uint operation, T a, T b) {
    switch (operation) { BINARY_INTEGERS(ORCHARD_CASE, OfIntegers, of(a, b)) }
    return T(0);
}

inline bool apply_bool(uint operation, bool a, bool b) {
    switch (operation) { BINARY_BOOLS(ORCHARD_CASE, OfBools, of(a, b)) }
    return false;
}

template <typename T> inline bool test(uint operation, T a, T b) {
    switch (operation) { BINARY_TESTS(ORCHARD_CASE, Test, of_whole(a, b)) }
    return false;
}

template <typename T> struct Compute {
    using Number = T;
    static T run(uint operation, T a, T b) { return apply_integer(operation, a, b); }
};
template <> struct Compute<bool> {
    using Number = int;
    static bool run(uint operation, bool a, bool b) { return apply_bool(operation, a, b); }
};
template <> struct Compute<float> {
    using Number = float;
    static float run(uint operation, float a, float b) { return apply(operation, a, b); }
};
template <> struct Compute<half> {
    using Number = float;
    static half run(uint operation, half a, half b) {
        return operation == BINARY_NEXTAFTER ? orchard::next_after(a, b) : half(apply(operation, float(a), float(b)));
    }
};
template <> struct Compute<bfloat> {
    using Number = float;
    static bfloat run(uint operation, bfloat a, bfloat b) {
        return operation == BINARY_NEXTAFTER ? orchard::next_after(a, b) : bfloat(apply(operation, float(a), float(b)));
    }
};

}  // namespace binary
}  // namespace orchard

#endif
