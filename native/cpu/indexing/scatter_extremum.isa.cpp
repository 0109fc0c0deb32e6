#include "scatter_extremum.h"

#include <type_traits>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

template <class C, bool is_largest> bool is_better(C own, C best) { return is_largest ? own > best : own < best; }

template <class T, class Index, bool is_largest, bool includes_self>
void find_slices(const ScatterAdd &scatter, const int64_t *offsets, int64_t count, const T *x, const Index *index,
                 const T *source, T *out, void *space, const ScatterBad &bad) {
  using C = Compute<T>;
  static_assert(sizeof(C) <= 8);
  C *best = static_cast<C *>(space);
  bool *has_best = reinterpret_cast<bool *>(static_cast<uint64_t *>(space) + scatter.size * count);
  int64_t across[4];
  for (int operand = 0; operand < 4; operand++) across[operand] = scatter.slices.run_stride(operand);
  x += offsets[scatter_x], index += offsets[scatter_index];
  source += offsets[scatter_source], out += offsets[scatter_out];
  for (int64_t at = 0; at < scatter.size; at++)
    for (int64_t slice = 0; slice < count; slice++) {
      best[at * count + slice] = load(x[at * scatter.strides[scatter_x] + slice * across[scatter_x]]);
      if constexpr (!includes_self) has_best[at * count + slice] = false;
    }
  for (int64_t at = 0; at < scatter.length; at++)
    for (int64_t slice = 0; slice < count; slice++) {
      const int64_t own = index[at * scatter.strides[scatter_index] + slice * across[scatter_index]];
      if (uint64_t(own) >= uint64_t(scatter.size)) return bad.refuse(bad.context, own);
      const C value = load(source[at * scatter.strides[scatter_source] + slice * across[scatter_source]]);
      C &to = best[own * count + slice];
      bool takes = is_better<C, is_largest>(value, to) || !(value == value);
      if constexpr (!includes_self) {
        takes |= !has_best[own * count + slice];
        has_best[own * count + slice] = true;
      }
      to = takes ? value : to;
    }
  for (int64_t at = 0; at < scatter.size; at++)
    for (int64_t slice = 0; slice < count; slice++)
      out[at * scatter.strides[scatter_out] + slice * across[scatter_out]] = store<T>(best[at * count + slice]);
}

template <class T, class Index>
void find_extrema(const ScatterAdd &scatter, const ScatterExtremum &which, const int64_t *offsets, int64_t count,
                  const void *x, const void *index, const void *source, void *out, void *space, const ScatterBad &bad) {
  const auto of = [&](auto includes_self) {
    return which.is_largest ? find_slices<T, Index, true, includes_self()>
                            : find_slices<T, Index, false, includes_self()>;
  };
  const auto find = which.includes_self ? of(std::true_type()) : of(std::false_type());
  find(scatter, offsets, count, static_cast<const T *>(x), static_cast<const Index *>(index),
       static_cast<const T *>(source), static_cast<T *>(out), space, bad);
}

template <int... dtype> constexpr ScatterExtrema all(std::integer_sequence<int, dtype...>) {
  ScatterExtrema table{};
  ((table.slices[dtype][0] = find_extrema<Storage<DType(dtype)>, int64_t>), ...);
  ((table.slices[dtype][1] = find_extrema<Storage<DType(dtype)>, int32_t>), ...);
  return table;
}

} // namespace

extern const ScatterExtrema scatter_extrema = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
