#include "rows.h"
#include "softplus.h"

namespace orchard::ORCHARD_ISA {
namespace {

// out[i] = condition[i] ? a[i] : b[i], which only moves bits. Any 16-bit type works for float16 and bfloat16.
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

// min(max(x, least), most): `most` if least > most, NaN if any operand is NaN.
struct Clamp {
  static constexpr const char *name = "clamp";
  static constexpr Kinds kinds = numbers;
  template <class T> static T of(T x, T least, T most) {
    T lifted = x < least ? least : x; // written so that NaN stays NaN
    T result = lifted > most ? most : lifted;
    return (least == least) & (most == most) ? result : T(not_a_number);
  }
};

// Interpolates from the nearer end, so that both ends are exact.
struct Lerp {
  static constexpr const char *name = "lerp";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T a, T b, T weight) {
    T difference = b - a;
    return std::fabs(weight) < T(0.5) ? a + weight * difference : b - difference * (T(1) - weight);
  }
};

// ln(1 + e^(beta x))/beta; above the threshold x itself. With s = beta x it is computed as (max(s, 0) + ln(1 +
// e^-|s|))/beta.
struct Softplus {
  static constexpr const char *name = "softplus";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T x, T beta, T threshold) {
    T scaled = x * beta;
    T rest = lifted_log_of_one_and_exp(T(std::fabs(scaled))) / beta;
    T smooth = fused(rest, half_lowered<T>, scaled <= T(0) ? T(0) : x);
    return scaled > threshold ? x : smooth;
  }
};

// x if x > 0, else alpha·(e^(rate x) - 1).
struct Elu {
  static constexpr const char *name = "elu";
  static constexpr Kinds kinds = floats;
  template <class T> static T of(T x, T alpha, T rate) { return x > T(0) ? x : alpha * expm1(rate * x); }
};

constexpr ElementwiseOperation where() {
  const ElementwiseRow by_size[] = {
      nullptr, Where::row<uint8_t>, Where::row<uint16_t>, nullptr, Where::row<uint32_t>, nullptr, nullptr,
      nullptr, Where::row<uint64_t>};
  ElementwiseOperation operation{"where", false, false, true, {}};
  for (int dtype = 0; dtype < dtype_count; dtype++) operation.rows[dtype] = by_size[dtype_sizes[dtype]];
  return operation;
}

} // namespace

static constexpr ElementwiseOperation operations[] = {
    where(), elementwise_operation<Clamp, 3>(), elementwise_operation<Lerp, 3>(), elementwise_operation<Softplus, 3>(),
    elementwise_operation<Elu, 3>()};

extern const ElementwiseOperations ternary_operations = {operations, std::size(operations)};

} // namespace orchard::ORCHARD_ISA
