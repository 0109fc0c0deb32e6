// The math functions that kernels call through MrtRuntime::math: functions of the host's libm, under MSL's names.
// Designated initializers keep the table correct if its fields are reordered.
#include "execute/math_table.h"

#include <cmath>

const MrtMath mrt_math_table = {
    .sin = std::sin,
    .cos = std::cos,
    .tan = std::tan,
    .asin = std::asin,
    .acos = std::acos,
    .atan = std::atan,
    .sinh = std::sinh,
    .cosh = std::cosh,
    .tanh = std::tanh,
    .asinh = std::asinh,
    .acosh = std::acosh,
    .atanh = std::atanh,
    .exp = std::exp,
    .exp2 = std::exp2,
    .log = std::log,
    .log2 = std::log2,
    .log10 = std::log10,
    .atan2 = std::atan2,
    .pow = std::pow,
    .fmod = std::fmod,
};
