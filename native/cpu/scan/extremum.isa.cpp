#include "extremum.h"

#include <limits>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

template <class C> constexpr C lowest() {
  return std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}
template <class C> constexpr C highest() {
  return std::is_floating_point_v<C> ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
}
template <class C, bool is_minimum> constexpr C first_best = is_minimum ? highest<C>() : lowest<C>();

// Returns whether an element replaces the extremum: of equal elements the last stays, and after a NaN only a NaN does.
template <bool is_minimum, class C> inline bool replaces(C value, C best) {
  return bool((is_minimum ? value <= best : value >= best) | (value != value));
}

// A slice of adjacent elements. Most blocks of a long slice have no new extremum, so each is tested as a whole first.
template <class T, bool is_minimum> void run_along(const T *x, T *values, int64_t *indices, int64_t length) {
  using C = Compute<T>;
  constexpr int64_t block = 32;
  C best = first_best<C, is_minimum>;
  int64_t place = 0, k = 0;
  auto step = [&](int64_t at) {
    C value = load(x[at]);
    if (replaces<is_minimum>(value, best)) best = value, place = at;
    values[at] = store<T>(best);
    indices[at] = place;
  };
  for (; k + block <= length; k += block) {
    bool is_replaced = false;
    for (int64_t i = 0; i < block; i++) is_replaced |= replaces<is_minimum>(load(x[k + i]), best);
    if (is_replaced) {
      for (int64_t i = 0; i < block; i++) step(k + i);
      continue;
    }
    const T stored = store<T>(best);
    for (int64_t i = 0; i < block; i++) values[k + i] = stored;
    for (int64_t i = 0; i < block; i++) indices[k + i] = place;
  }
  for (; k < length; k++) step(k);
}

// Slices side by side, an element of each at a time.
template <class T, bool is_minimum, bool is_adjacent> void run_across(const ExtremumBatch &batch) {
  using C = Compute<T>;
  const int64_t x_across = is_adjacent ? 1 : batch.across[0], values_across = is_adjacent ? 1 : batch.across[1],
                indices_across = is_adjacent ? 1 : batch.across[2];
  C best[max_extremum_slices];
  int64_t places[max_extremum_slices] = {};
  for (int64_t slice = 0; slice < batch.slices; slice++) best[slice] = first_best<C, is_minimum>;
  for (int64_t k = 0; k < batch.length; k++) {
    const T *x = reinterpret_cast<const T *>(batch.x) + k * batch.along[0];
    T *values = reinterpret_cast<T *>(batch.values) + k * batch.along[1];
    int64_t *indices = batch.indices + k * batch.along[2];
    for (int64_t slice = 0; slice < batch.slices; slice++) {
      C value = load(x[slice * x_across]);
      bool is_replaced = replaces<is_minimum>(value, best[slice]);
      best[slice] = is_replaced ? value : best[slice];
      places[slice] = is_replaced ? k : places[slice];
    }
    for (int64_t slice = 0; slice < batch.slices; slice++) values[slice * values_across] = store<T>(best[slice]);
    for (int64_t slice = 0; slice < batch.slices; slice++) indices[slice * indices_across] = places[slice];
  }
}

template <class T, bool is_minimum> void run(const ExtremumBatch &batch) {
  const auto &[x_along, values_along, indices_along] = batch.along;
  if (x_along == 1 && values_along == 1 && indices_along == 1)
    for (int64_t slice = 0; slice < batch.slices; slice++)
      run_along<T, is_minimum>(reinterpret_cast<const T *>(batch.x) + slice * batch.across[0],
                               reinterpret_cast<T *>(batch.values) + slice * batch.across[1],
                               batch.indices + slice * batch.across[2], batch.length);
  else if (batch.across[0] == 1 && batch.across[1] == 1 && batch.across[2] == 1) run_across<T, is_minimum, true>(batch);
  else run_across<T, is_minimum, false>(batch);
}

template <DType dtype, bool is_minimum> constexpr auto function() {
  using Function = void (*)(const ExtremumBatch &);
  if constexpr (dtype == DType::boolean) return Function(nullptr);
  else return Function(run<Storage<dtype>, is_minimum>);
}

template <int... dtype> constexpr RunningExtrema all(std::integer_sequence<int, dtype...>) {
  return {{function<DType(dtype), false>()...}, {function<DType(dtype), true>()...}};
}

} // namespace

extern const RunningExtrema running_extrema = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
