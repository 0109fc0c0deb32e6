#include "scatter_add.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

// Floats are summed in float64; integers wrap; a sum of bools is whether any is true.
template <class T> using Sum = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, uint64_t>;

template <class T> T finished(T x, Sum<T> sum) {
  if constexpr (std::is_same_v<T, Bool>) return store<Bool>(load(x) || sum != 0);
  else return store<T>(static_cast<Compute<T>>(static_cast<Sum<T>>(load(x)) + sum));
}

template <class T, class Index>
void add_slices(const ScatterAdd &scatter, const int64_t *offsets, int64_t count, const void *x_base,
                const void *index_base, const void *source_base, void *out_base, void *sums_base,
                const ScatterBad &bad) {
  const T *x = static_cast<const T *>(x_base) + offsets[scatter_x];
  const Index *index = static_cast<const Index *>(index_base) + offsets[scatter_index];
  const T *source = static_cast<const T *>(source_base) + offsets[scatter_source];
  T *out = static_cast<T *>(out_base) + offsets[scatter_out];
  Sum<T> *sums = static_cast<Sum<T> *>(sums_base);
  int64_t across[4];
  for (int operand = 0; operand < 4; operand++) across[operand] = scatter.slices.run_stride(operand);

  for (int64_t i = 0; i < scatter.size * count; i++) sums[i] = 0;
  for (int64_t at = 0; at < scatter.length; at++) {
    const Index *named = index + at * scatter.strides[scatter_index];
    const T *row = source + at * scatter.strides[scatter_source];
    if (across[scatter_index] == 0) {
      const int64_t own = *named;
      if (uint64_t(own) >= uint64_t(scatter.size)) return bad.refuse(bad.context, own);
      Sum<T> *target = sums + own * count;
      for (int64_t slice = 0; slice < count; slice++)
        target[slice] += static_cast<Sum<T>>(load(row[slice * across[scatter_source]]));
    } else {
      for (int64_t slice = 0; slice < count; slice++) {
        const int64_t own = named[slice * across[scatter_index]];
        if (uint64_t(own) >= uint64_t(scatter.size)) return bad.refuse(bad.context, own);
        sums[own * count + slice] += static_cast<Sum<T>>(load(row[slice * across[scatter_source]]));
      }
    }
  }
  for (int64_t at = 0; at < scatter.size; at++)
    for (int64_t slice = 0; slice < count; slice++)
      out[at * scatter.strides[scatter_out] + slice * across[scatter_out]] =
          finished<T>(x[at * scatter.strides[scatter_x] + slice * across[scatter_x]], sums[at * count + slice]);
}

template <int... dtype> constexpr ScatterAdditions all(std::integer_sequence<int, dtype...>) {
  ScatterAdditions table{};
  ((table.slices[dtype][0] = add_slices<Storage<DType(dtype)>, int64_t>), ...);
  ((table.slices[dtype][1] = add_slices<Storage<DType(dtype)>, int32_t>), ...);
  return table;
}

} // namespace

extern const ScatterAdditions scatter_additions = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
