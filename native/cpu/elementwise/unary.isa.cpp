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
#define ORCHARD_CIRCULAR(operation, function)                                                                          \
  template <> struct Extra<operation> {                                                                                \
    static void correct(const float *in, float *out, int64_t count) {                                                  \
      int32_t any = 0;                                                                                                 \
      for (int64_t i = 0; i < count; i++) any |= !(absolute(in[i]) <= largest_angle);                                  \
      for (int64_t i = 0; any && i < count; i++)                                                                       \
        if (!(absolute(in[i]) <= largest_angle)) out[i] = float(std::function(double(in[i])));                         \
    }                                                                                                                  \
  };
ORCHARD_CIRCULAR(UNARY_SIN, sin)
ORCHARD_CIRCULAR(UNARY_COS, cos)
ORCHARD_CIRCULAR(UNARY_TAN, tan)

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
