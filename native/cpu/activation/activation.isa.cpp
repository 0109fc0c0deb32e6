#include "activation.h"

#include "../elementwise/gated.h"
#include "../random/philox_vector.h"

#include <algorithm>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t tile = 4 * tile_blocks; // elements that are computed together

template <class Number>
inline void swiglu_gradient_row(const Number *__restrict g, const Number *__restrict gate, const Number *__restrict up,
                                Number *__restrict gate_gradient, Number *__restrict up_gradient, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    Number slope = gated_derivative<LogisticShare>(gate[i]), value = gated<LogisticShare>(gate[i]);
    gate_gradient[i] = g[i] * up[i] * slope;
    up_gradient[i] = g[i] * value;
  }
}

template <class T>
void swiglu_gradient(const void *g, const void *gate, const void *up, void *gate_gradient, void *up_gradient,
                     int64_t count) {
  const T *in[] = {static_cast<const T *>(g), static_cast<const T *>(gate), static_cast<const T *>(up)};
  T *out[] = {static_cast<T *>(gate_gradient), static_cast<T *>(up_gradient)};
  using Number = Compute<T>;
  if constexpr (std::is_same_v<T, Number>) return swiglu_gradient_row(in[0], in[1], in[2], out[0], out[1], count);
  Number wide[3][tile], computed[2][tile];
  for (int64_t start = 0; start < count; start += tile) {
    int64_t length = std::min(tile, count - start);
    for (int operand = 0; operand < 3; operand++) widen(in[operand] + start, wide[operand], length);
    swiglu_gradient_row(wide[0], wide[1], wide[2], computed[0], computed[1], length);
    for (int result = 0; result < 2; result++) narrow(computed[result], out[result] + start, length);
  }
}

template <class Number>
inline void drop(const Number *__restrict x, const uint32_t *__restrict words, uint32_t last_dropped, Number scale,
                 Number *__restrict out, int64_t count) {
  for (int64_t i = 0; i < count; i++) out[i] = words[i] > last_dropped ? x[i] * scale : Number(0);
}

template <class T> void dropout_tile(const Dropout &dropout, const T *x, T *out, int64_t begin, int64_t count) {
  using Number = Compute<T>;
  OrderedWords words;
  philox_tile(dropout.start, begin / 4, (count + 3) / 4, words);
  const Number scale = Number(dropout.scale);
  if constexpr (std::is_same_v<T, Number>) return drop(x, words.word, dropout.last_dropped, scale, out, count);
  Number wide[tile], kept[tile];
  widen(x, wide, count);
  drop(wide, words.word, dropout.last_dropped, scale, kept, count);
  narrow(kept, out, count);
}

template <class T> void dropout(const Dropout &dropout, const void *x, void *out, int64_t begin, int64_t count) {
  for (int64_t start = 0; start < count; start += tile)
    dropout_tile(dropout, static_cast<const T *>(x) + start, static_cast<T *>(out) + start, begin + start,
                 std::min(tile, count - start));
}

template <int... dtype> constexpr Activations all(std::integer_sequence<int, dtype...>) {
  Activations table{};
  auto add = [&table](auto type, int at) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<T>>) {
      table.swiglu_gradient[at] = swiglu_gradient<T>;
      table.dropout[at] = dropout<T>;
    }
  };
  (add(Type<Storage<DType(dtype)>>{}, dtype), ...);
  return table;
}

} // namespace

extern const Activations activations = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
