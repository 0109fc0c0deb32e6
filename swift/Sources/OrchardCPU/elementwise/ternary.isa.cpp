#include "math.h"
#include "rows.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Moves bits: out[i] = condition[i] ? a[i] : b[i]. A Float16 is as good as any other 16 bits.
struct Where {
  template <class T> static void row(const void *const *inputs, void *result, int64_t count) {
    const Bool *condition = static_cast<const Bool *>(inputs[0]);
    const T *__restrict a = static_cast<const T *>(inputs[1]), *__restrict b = static_cast<const T *>(inputs[2]);
    T *__restrict out = static_cast<T *>(result);
    for (int64_t i = 0; i < count; i++) {
      T yes = a[i], no = b[i];
      out[i] = condition[i].byte ? yes : no;
    }
  }
};

// min(max(x, least), most): the latter where the two cross, NaN where any is.
struct Clamp {
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x, T least, T most) {
    T lifted = x < least ? least : x; // x where it is NaN
    T result = lifted > most ? most : lifted;
    return (least == least) & (most == most) ? result : T(not_a_number);
  }
};

// From whichever end is nearer, so that both ends are met exactly.
struct Lerp {
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T a, T b, T weight) {
    T difference = b - a;
    return std::fabs(weight) < T(0.5) ? a + weight * difference : b - difference * (T(1) - weight);
  }
};

// ln(1 + e^s) = max(s, 0) + ln u with u = 1 + t as rounded and t = e^-|s|. What was rounded away, c, adds c/u; it is at most 2^-24 of u,
// so that 1.5 - u/2, which meets 1/u at 1 and 2, is near enough.
inline float log_of_one_and_exp(float s) {
  float t = exp(-absolute(s)), u = 1.0f + t, c = t - (u - 1.0f);
  Logarithm l = logarithm(u);
  return (s < 0.0f ? 0.0f : s) + fused(l.e, ln2, fused(c, 1.5f - 0.5f * u, l.of_f));
}
inline double log_of_one_and_exp(double s) { return (s < 0.0 ? 0.0 : s) + log1p(exp(-std::fabs(s))); }

// ln(1 + e^(beta x))/beta; x itself beyond the threshold
struct Softplus {
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T x, T beta, T threshold) {
    T scaled = x * beta;
    T smooth = log_of_one_and_exp(scaled) / beta;
    return scaled > threshold ? x : smooth;
  }
};

constexpr TernaryRows with_where(TernaryRows table) {
  const ElementwiseRow by_size[] = {nullptr, Where::row<uint8_t>, Where::row<uint16_t>, nullptr, Where::row<uint32_t>,
                                    nullptr, nullptr,             nullptr,              Where::row<uint64_t>};
  for (int dtype = 0; dtype < dtype_count; dtype++)
    table.rows[static_cast<int>(Ternary::where)][dtype] = by_size[dtype_sizes[dtype]];
  return table;
}

struct Nothing {
  static constexpr Kinds kinds{false, false, false};
};

} // namespace

extern const TernaryRows ternary_rows = with_where(all_rows<TernaryRows, 3, Nothing, Clamp, Lerp, Softplus>());

} // namespace orchard::ORCHARD_ISA
