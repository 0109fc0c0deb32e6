#include "math.h"
#include "rows.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;

struct neg {
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x) {
    if constexpr (std::is_integral_v<T>) return T(Unsigned<T>(0) - Unsigned<T>(x));
    else return -x;
  }
};

#define ORCHARD_FLOAT_FUNCTION(name)                                                                                    \
  struct name##_ {                                                                                                     \
    static constexpr Kinds kinds = floats;                                                                             \
    template <class T> static T of(T x) { return name(x); }                                                            \
  };
ORCHARD_FLOAT_FUNCTION(exp)

} // namespace

extern const UnaryRows unary_rows = all_rows<UnaryRows, 1, neg, exp_>();

} // namespace orchard::ORCHARD_ISA
