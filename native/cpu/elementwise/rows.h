// Generates the row functions of elementwise operations from their formulas, for one instruction set.
//
// An operation is a struct with these members (formula.h): `static constexpr const char *name`, its name in TypeScript;
// `static constexpr Kinds kinds`, the dtypes that it supports; and a template `of` that computes one element of the
// result, a bool for a predicate. float16 and bfloat16 are computed in float32.
//
// Optional members:
// - `correct(in..., out, count)`, for float32: called after all elements were computed, to recompute those for which
//   the branch-free code is wrong.
// - `wide_row(in..., out, count)`, for float64: computes a row in place of `of`, which other formulas call.
// - `computes_halves`, a constant: true if `of` accepts float16 and bfloat16 as stored.
// - `Plain`, a type, for float32: `row(out, count, in...)` gives the same bits faster for the elements for which
//   `takes(in...)` is true.
#pragma once

#include "operations.h"
#include "tuning.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace orchard::ORCHARD_ISA {

// Sets of dtypes.
struct Kinds {
  bool floats, integers, booleans;
};
inline constexpr Kinds floats{true, false, false}, integers{false, true, false}, bits{false, true, true},
    numbers{true, true, false}, everything{true, true, true};

template <class T> constexpr bool takes(Kinds kinds) {
  if (std::is_same_v<T, Bool>) return kinds.booleans;
  return std::is_integral_v<T> ? kinds.integers : kinds.floats;
}

template <class T> constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The storage type of an operation's result, for operands stored as T.
template <class T, class Number> using ResultOf = std::conditional_t<std::is_same_v<Number, bool>, Bool, T>;

template <class Operation, class = void> constexpr bool has_correction = false;
template <class Operation> constexpr bool has_correction<Operation, std::void_t<decltype(&Operation::correct)>> = true;

template <class Operation, class = void> constexpr bool has_wide_row = false;
template <class Operation> constexpr bool has_wide_row<Operation, std::void_t<decltype(&Operation::wide_row)>> = true;

template <class Operation, class = void> constexpr bool computes_halves = false;
template <class Operation>
constexpr bool computes_halves<Operation, std::void_t<decltype(Operation::computes_halves)>> =
    Operation::computes_halves;

template <class Operation, class = void> constexpr bool has_plain = false;
template <class Operation> constexpr bool has_plain<Operation, std::void_t<typename Operation::Plain>> = true;

// Operands never overlap the result; __restrict lets the loop be vectorized without an aliasing check. `flatten`
// inlines all calls: compilers don't inline a function that many operations use, and a call would keep the loop scalar,
// ten times slower.
template <class Operation, class Result, class... In>
[[gnu::flatten]] inline void compute_row(Result *__restrict out, int64_t count, const In *__restrict... in) {
  for (int64_t i = 0; i < count; i++) out[i] = store<Result>(Operation::of(load(in[i])...));
}

// Returns the number of elements in a row for which `Plain::takes` is false.
template <class Operation, class... In> inline int32_t count_others(int64_t count, const In *...in) {
  int32_t others = 0;
  for (int64_t i = 0; i < count; i++) others += Operation::Plain::takes(in[i]...) ? 0 : 1;
  return others;
}

template <class Operation, class... In> void compute_others(float *out, int64_t count, const In *...in) {
  for (int64_t start = 0; start < count; start += tuning::elementwise::stretch) {
    int64_t end = std::min(count, start + tuning::elementwise::stretch);
    if (count_others<Operation>(end - start, (in + start)...) == 0) continue;
    for (int64_t i = start; i < end; i++)
      if (!Operation::Plain::takes(in[i]...)) out[i] = Operation::of(in[i]...);
  }
}

template <class Operation, class... In> inline void compute_floats(float *out, int64_t count, const In *...in) {
  if constexpr (has_plain<Operation>) {
    int64_t others = count_others<Operation>(count, in...);
    if (others * tuning::elementwise::rare <= count) {
      Operation::Plain::row(out, count, in...);
      if (others > 0) compute_others<Operation>(out, count, in...);
      return;
    }
  }
  compute_row<Operation>(out, count, in...);
  if constexpr (has_correction<Operation>) Operation::correct(in..., out, count);
}

// out[i] = Operation::of(in_0[i], in_1[i], …), each operand of type T
template <class Operation, class T, size_t... operand>
void compute(const void *const *inputs, void *result, int64_t count, std::index_sequence<operand...>) {
  using Number = decltype(Operation::of(((void)operand, Compute<T>{})...));
  using Result = ResultOf<T, Number>;
  Result *out = static_cast<Result *>(result);
  if constexpr (is_half<T> && computes_halves<Operation>) {
    const T *in[] = {static_cast<const T *>(inputs[operand])...};
    for (int64_t i = 0; i < count; i++) out[i] = Operation::of(in[operand][i]...);
  } else if constexpr (std::is_same_v<Result, float>)
    compute_floats<Operation>(out, count, static_cast<const T *>(inputs[operand])...);
  else if constexpr (std::is_same_v<Result, double> && has_wide_row<Operation>)
    Operation::wide_row(static_cast<const T *>(inputs[operand])..., out, count);
  else if constexpr (!is_half<T>) compute_row<Operation>(out, count, static_cast<const T *>(inputs[operand])...);
  else {
    float wide[sizeof...(operand)][tuning::elementwise::widened_tile];
    float computed[tuning::elementwise::widened_tile];
    const void *widened[] = {(const void *)wide[operand]...};
    for (int64_t start = 0; start < count; start += tuning::elementwise::widened_tile) {
      int64_t length = std::min(tuning::elementwise::widened_tile, count - start);
      (widen(static_cast<const T *>(inputs[operand]) + start, wide[operand], length), ...);
      if constexpr (std::is_same_v<Result, Bool>)
        compute<Operation, float>(widened, out + start, length, std::index_sequence<operand...>{});
      else {
        compute<Operation, float>(widened, computed, length, std::index_sequence<operand...>{});
        narrow(computed, out + start, length);
      }
    }
  }
}

// Computes a result that replaces operands. They are copied tile by tile, since `compute` may not read its result.
template <class Operation, class T, int operands>
void elementwise_row_in_place(const void *const *inputs, void *out, int64_t count) {
  alignas(64) T copied[tuning::elementwise::widened_tile];
  const void *given[operands];
  for (int64_t start = 0; start < count; start += tuning::elementwise::widened_tile) {
    const int64_t length = std::min(tuning::elementwise::widened_tile, count - start);
    T *part = static_cast<T *>(out) + start;
    std::copy(part, part + length, copied);
    for (int i = 0; i < operands; i++) given[i] = inputs[i] == out ? copied : static_cast<const T *>(inputs[i]) + start;
    compute<Operation, T>(given, part, length, std::make_index_sequence<operands>{});
  }
}

template <class Operation, class T, int operands>
void elementwise_row(const void *const *inputs, void *out, int64_t count) {
  bool is_in_place = false;
  for (int i = 0; i < operands; i++) is_in_place |= inputs[i] == out;
  if (is_in_place) elementwise_row_in_place<Operation, T, operands>(inputs, out, count);
  else compute<Operation, T>(inputs, out, count, std::make_index_sequence<operands>{});
}

template <class Operation, int operands, int... dtype>
constexpr void fill_rows(ElementwiseRow (&rows)[dtype_count], std::integer_sequence<int, dtype...>) {
  auto fill = [&](auto type, ElementwiseRow &row) {
    using T = typename decltype(type)::type;
    if constexpr (takes<T>(Operation::kinds)) row = elementwise_row<Operation, T, operands>;
  };
  (fill(Type<Storage<DType(dtype)>>{}, rows[dtype]), ...);
}

template <class Operation, class = void> constexpr bool is_division = false;
template <class Operation>
constexpr bool is_division<Operation, std::void_t<decltype(Operation::divides)>> = Operation::divides;

template <class Operation, size_t... operand> constexpr bool gives_bool(std::index_sequence<operand...>) {
  using T = std::conditional_t<Operation::kinds.floats, float, int32_t>;
  return std::is_same_v<decltype(Operation::of(((void)operand, T{})...)), bool>;
}

template <class Operation, int operands> constexpr ElementwiseOperation elementwise_operation() {
  ElementwiseOperation operation{
      Operation::name, gives_bool<Operation>(std::make_index_sequence<operands>{}), is_division<Operation>, false, {}};
  fill_rows<Operation, operands>(operation.rows, std::make_integer_sequence<int, dtype_count>{});
  return operation;
}

} // namespace orchard::ORCHARD_ISA
