#include "math.h"
#include "rows.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Integers wrap around: what would overflow is computed without a sign. bools are 0 and 1, and the result whether it is not 0.
template <class T, class Compute> inline T wrapping(T a, T b, Compute compute) {
  if constexpr (std::is_same_v<T, bool>) return compute(int(a), int(b)) != 0;
  else if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>; // narrow types would be promoted to int
    return T(compute(Wide(a), Wide(b)));
  } else return compute(a, b);
}

struct add {
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) { return wrapping(a, b, [](auto x, auto y) { return x + y; }); }
};

struct sub {
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T a, T b) { return wrapping(a, b, [](auto x, auto y) { return x - y; }); }
};

struct mul {
  static constexpr Kinds kinds = everything;
  template <class T> static T of(T a, T b) { return wrapping(a, b, [](auto x, auto y) { return x * y; }); }
};

struct div {
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T a, T b) { return a / b; }
};

} // namespace

extern const BinaryRows binary_rows = all_rows<BinaryRows, 2, add, sub, mul, div>();

} // namespace orchard::ORCHARD_ISA
