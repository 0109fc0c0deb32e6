// The operations of two operands, with the formulas of kernels/formulas/binary.h.
#include "../../.build/generated/binary.h"
#include "activations.h"
#include "bits.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "power.h"
#include "quotients.h"
#include "special.h"

namespace orchard::ORCHARD_ISA {
namespace {
#include "../../../kernels/formulas/binary.h"
} // namespace
} // namespace orchard::ORCHARD_ISA

#include "formula.h"

namespace orchard::ORCHARD_ISA {
namespace {

BINARY_FLOATS(ORCHARD_MEMBER, in_floats)
BINARY_INTEGERS(ORCHARD_MEMBER, in_integers)
BINARY_BOOLS(ORCHARD_MEMBER, in_bools)
BINARY_TESTS(ORCHARD_MEMBER, in_tests)

// Divisions by an integer 0 are errors. `correct` recomputes floats whose quotients are too large (quotients.h).
struct Division {
  static constexpr bool divides = true;
};
template <> struct Extra<BINARY_TRUNC_DIVIDE> : Division {};
template <> struct Extra<BINARY_FMOD> : Division {
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return std::fmod(x, y); });
  }
  static void wide_row(const double *a, const double *b, double *out, int64_t count) {
    quotient_row(
        a, b, out, count, [](double x, double y) { return wide_rest(x, y); },
        [](double x, double y) { return fmod(x, y); });
  }
};
template <> struct Extra<BINARY_REMAINDER> : Division {
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return signed_as_divisor(std::fmod(x, y), y); });
  }
  static void wide_row(const double *a, const double *b, double *out, int64_t count) {
    quotient_row(
        a, b, out, count, [](double x, double y) { return signed_as_divisor(wide_rest(x, y), y); },
        [](double x, double y) { return remainder(x, y); });
  }
};
template <> struct Extra<BINARY_FLOOR_DIVIDE> : Division {
  static void correct(const float *a, const float *b, float *out, int64_t count) {
    correct_quotients(a, b, out, count, [](float x, float y) { return float(floor_divide(double(x), double(y))); });
  }
  static void wide_row(const double *a, const double *b, double *out, int64_t count) {
    quotient_row(
        a, b, out, count, [](double x, double y) { return floor_of_wide_quotient(x, y); },
        [](double x, double y) { return floor_divide(x, y); });
  }
};

template <> struct Extra<BINARY_POW> {
  struct Plain {
    static bool takes(float a, float b) { return has_plain_power(a, b); }
    static void row(float *out, int64_t count, const float *a, const float *b) { plain_powers(a, b, out, count); }
  };
};

template <> struct Extra<BINARY_ATAN2> {
  [[gnu::flatten]] static void wide_row(const double *__restrict y, const double *__restrict x, double *__restrict out,
                                        int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = float64::arctangent(y[i], x[i]);
  }
};

template <> struct Extra<BINARY_NEXTAFTER> {
  static constexpr bool computes_halves = true;
};

} // namespace

static constexpr ElementwiseOperation operations[] = {BINARY_NAMES(ORCHARD_OPERATION, 2)};

extern const ElementwiseOperations binary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
