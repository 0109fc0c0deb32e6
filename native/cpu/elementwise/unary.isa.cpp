// The operations of one operand, with the formulas of kernels/formulas/unary.h.
#include "../../.build/generated/unary.h"
#include "activations.h"
#include "bits.h"
#include "gamma.h"
#include "gated.h"
#include "inverse.h"
#include "special.h"

#include "../../../kernels/formulas/bessel.h"
#include "../../../kernels/formulas/bessel_kinds.h"

namespace orchard::ORCHARD_ISA {
namespace {
#include "../../../kernels/formulas/unary.h"
} // namespace
} // namespace orchard::ORCHARD_ISA

#include "formula.h"

namespace orchard::ORCHARD_ISA {
namespace {

UNARY_FLOATS(ORCHARD_MEMBER, in_floats)
UNARY_INTEGERS(ORCHARD_MEMBER, in_integers)
UNARY_BOOLS(ORCHARD_MEMBER, in_bools)
UNARY_TESTS(ORCHARD_MEMBER, in_tests)

// Circular functions of large angles, infinities and NaN are recomputed by the C library after all other elements.
// Computes a row of float64 by `near`, and the elements that it does not reach by `far`.
template <class Near, class Far>
[[gnu::flatten]] inline void circular_row(const double *__restrict in, double *__restrict out, int64_t count, Near near,
                                          Far far) {
  int64_t others = 0;
  for (int64_t i = 0; i < count; i++) {
    others += !(std::fabs(in[i]) <= float64::largest_angle);
    out[i] = near(in[i]);
  }
  for (int64_t i = 0; others > 0 && i < count; i++)
    if (!(std::fabs(in[i]) <= float64::largest_angle)) out[i] = far(in[i]);
}

#define ORCHARD_CIRCULAR(operation, function, near)                                                                    \
  template <> struct Extra<operation> {                                                                                \
    static void correct(const float *in, float *out, int64_t count) {                                                  \
      int32_t any = 0;                                                                                                 \
      for (int64_t i = 0; i < count; i++) any |= !(absolute(in[i]) <= largest_angle);                                  \
      for (int64_t i = 0; any && i < count; i++)                                                                       \
        if (!(absolute(in[i]) <= largest_angle)) out[i] = float(std::function(double(in[i])));                         \
    }                                                                                                                  \
    static void wide_row(const double *in, double *out, int64_t count) {                                               \
      circular_row(                                                                                                    \
          in, out, count, [](double x) { return float64::near(x); }, [](double x) { return std::function(x); });       \
    }                                                                                                                  \
  };
ORCHARD_CIRCULAR(UNARY_SIN, sin, sine)
ORCHARD_CIRCULAR(UNARY_COS, cos, cosine)
ORCHARD_CIRCULAR(UNARY_TAN, tan, tangent)

#define ORCHARD_WIDE(operation, function)                                                                              \
  template <> struct Extra<operation> {                                                                                \
    [[gnu::flatten]] static void wide_row(const double *__restrict in, double *__restrict out, int64_t count) {        \
      for (int64_t i = 0; i < count; i++) out[i] = float64::function(in[i]);                                           \
    }                                                                                                                  \
  };
ORCHARD_WIDE(UNARY_LOG10, logarithm10)
ORCHARD_WIDE(UNARY_ERF, error_function)

// float64 computes the angles of large arguments more accurately.
#define ORCHARD_WAVE(operation)                                                                                        \
  template <> struct Extra<operation> {                                                                                \
    static void correct(const float *in, float *out, int64_t count) {                                                  \
      int32_t any = 0;                                                                                                 \
      for (int64_t i = 0; i < count; i++) any |= absolute(in[i]) > largest_angle;                                      \
      for (int64_t i = 0; any && i < count; i++)                                                                       \
        if (absolute(in[i]) > largest_angle) out[i] = float(OfFloats<operation>::of(double(in[i])));                   \
    }                                                                                                                  \
  };
ORCHARD_WAVE(UNARY_BESSEL_J0)
ORCHARD_WAVE(UNARY_BESSEL_J1)
ORCHARD_WAVE(UNARY_BESSEL_Y0)
ORCHARD_WAVE(UNARY_BESSEL_Y1)

} // namespace

static constexpr ElementwiseOperation operations[] = {UNARY_NAMES(ORCHARD_OPERATION, 1)};

extern const ElementwiseOperations unary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
