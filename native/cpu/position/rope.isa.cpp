#include "rope.h"

#include "../elementwise/math.h"
#include "../streamed.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

// Splits a phase into the nearest quarter of a cycle and the remainder in radians.
inline Angle angle_of_phase(uint64_t phase) {
  uint32_t upper = uint32_t(phase >> 32);
  uint32_t quadrant = (upper + (1u << 29)) >> 30;
  return angle_in(int32_t(quadrant), float(int32_t(upper - (quadrant << 30))) * 1.46291807927e-9f); // 2π/2^32
}

inline void fill_table(const Rope &rope, int64_t position, float *__restrict cosines, float *__restrict sines) {
  const uint64_t *__restrict phases = rope.phases;
  float magnitude = float(rope.magnitude);
  for (int64_t pair = 0; pair < rope.pairs; pair++) {
    Angle a = angle_of_phase(phases[pair] * uint64_t(position));
    cosines[pair] = cosine_of(a) * magnitude;
    sines[pair] = sine_of(a) * magnitude;
  }
}

inline void fill_table(const Rope &rope, int64_t position, double *cosines, double *sines) {
  constexpr double radians = 6.28318530717958647693 / 18446744073709551616.0;
  for (int64_t pair = 0; pair < rope.pairs; pair++) {
    double angle = double(int64_t(rope.phases[pair] * uint64_t(position))) * radians;
    cosines[pair] = std::cos(angle) * rope.magnitude;
    sines[pair] = std::sin(angle) * rope.magnitude;
  }
}

template <class Number>
inline void rotate_pairs(int64_t pairs, const Number *__restrict cosines, const Number *__restrict sines,
                         const Number *__restrict first, const Number *__restrict second, Number *__restrict first_out,
                         Number *__restrict second_out, int64_t step) {
  for (int64_t pair = 0; pair < pairs; pair++) {
    Number a = first[pair * step], b = second[pair * step];
    first_out[pair * step] = a * cosines[pair] - b * sines[pair];
    second_out[pair * step] = a * sines[pair] + b * cosines[pair];
  }
}

// x and out are dense and must not overlap.
template <class Number>
void rotate_dense(const Rope &rope, const Number *cosines, const Number *sines, const Number *x, Number *out) {
  int64_t pairs = rope.pairs;
  if (rope.interleaved) rotate_pairs(pairs, cosines, sines, x, x + 1, out, out + 1, 2);
  else rotate_pairs(pairs, cosines, sines, x, x + pairs, out, out + pairs, 1);
  for (int64_t i = 2 * pairs; i < rope.size; i++) out[i] = x[i];
}

// Returns the row itself, or a dense converted copy in `row`.
template <class T> const Compute<T> *dense_row(const T *in, const Rope &rope, Compute<T> *row) {
  if constexpr (std::is_same_v<T, Compute<T>>)
    if (rope.stride == 1) return in;
  if (rope.stride == 1) widen(in, row, rope.size);
  else
    for (int64_t i = 0; i < rope.size; i++) row[i] = load(in[i * rope.stride]);
  return row;
}

template <class T>
void rotate_row(const Rope &rope, const void *cosines, const void *sines, const void *x, void *out, void *scratch) {
  using Number = Compute<T>;
  const T *in = static_cast<const T *>(x);
  T *result = static_cast<T *>(out);
  const Number *c = static_cast<const Number *>(cosines), *s = static_cast<const Number *>(sines);
  if constexpr (std::is_same_v<T, Number>)
    if (rope.stride == 1 && rope.out_stride == 1 && !rope.is_streamed) return rotate_dense(rope, c, s, in, result);
  Number *row = static_cast<Number *>(scratch), *rotated = row + rope.size;
  const Number *dense = dense_row(in, rope, row);
  rotate_dense(rope, c, s, dense, rotated);
  if (rope.out_stride == 1)
    return write_results(rotated, reinterpret_cast<T *>(row), result, rope.size, rope.is_streamed);
  for (int64_t i = 0; i < rope.size; i++) result[i * rope.out_stride] = store<T>(rotated[i]);
}

template <class T> void table(const Rope &rope, int64_t position, void *cosines, void *sines) {
  using Number = Compute<T>;
  fill_table(rope, position, static_cast<Number *>(cosines), static_cast<Number *>(sines));
}

template <int... dtype> constexpr Ropes all(std::integer_sequence<int, dtype...>) {
  Ropes result{};
  auto add = [&result](auto type, int at) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<T>>) {
      result.table[at] = table<T>;
      result.rotate[at] = rotate_row<T>;
    }
  };
  (add(Type<Storage<DType(dtype)>>{}, dtype), ...);
  return result;
}

} // namespace

extern const Ropes ropes = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
