#include "scan.h"

#include "../lanes.h"
#include "running_sums.h"
#include "tuning.h"

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::scan::part_tile;

// The carried value is float64 for floats, and int64 for integers, which wraps around.
template <class C> using Carried = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;
template <class T> using Result = std::conditional_t<std::is_floating_point_v<Compute<T>>, T, int64_t>;

inline double multiplied(double a, double b) { return a * b; }
inline int64_t multiplied(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// Returns the value that is carried to the next element.
template <Scan code, class Number> Number next_of(Number before, Number element, Number coefficient, bool is_first) {
  if constexpr (code == Scan::cumsum) return added(before, element);
  else if constexpr (code == Scan::cumprod || code == Scan::exclusiveCumprod) return multiplied(before, element);
  else if constexpr (code == Scan::recurrence || code == Scan::shiftedRecurrence)
    return is_first ? element : added(multiplied(coefficient, before), element);
  else {
    static_assert(code == Scan::shift);
    return element;
  }
}

template <Scan code> constexpr int64_t first_carried = code == Scan::cumprod || code == Scan::exclusiveCumprod ? 1 : 0;
template <class T> Result<T> stored(Carried<Compute<T>> value) {
  return store<Result<T>>(converted<Compute<Result<T>>>(value));
}

// Scans slices. If the number of slices is given as `count`, the carried values stay in registers.
template <Scan code, class T, bool is_adjacent, int64_t count = 0> void walk(const SliceBatch &batch) {
  using Number = Carried<Compute<T>>;
  constexpr bool is_exclusive = code == Scan::exclusiveCumprod || code == Scan::shift;
  constexpr bool has_coefficients = code == Scan::recurrence || code == Scan::shiftedRecurrence;
  int64_t slices = count > 0 ? count : batch.slices;
  int64_t x_across = is_adjacent ? 1 : batch.across[0], a_across = batch.across[1],
          out_across = is_adjacent ? 1 : batch.across[2];
  Number carried[count > 0 ? count : max_adjacent_slices];
  for (int64_t slice = 0; slice < slices; slice++) carried[slice] = first_carried<code>;
  for (int64_t k = 0; k < batch.length; k++) {
    const T *x = reinterpret_cast<const T *>(batch.x) + k * batch.along[0];
    Result<T> *out = reinterpret_cast<Result<T> *>(batch.out) + k * batch.along[2];
    const T *a = reinterpret_cast<const T *>(batch.second) +
                 (code == Scan::shiftedRecurrence && k > 0 ? k - 1 : k) * batch.along[1];
    for (int64_t slice = 0; slice < slices; slice++) {
      Number element = Number(load(x[slice * x_across])), before = carried[slice];
      Number coefficient = has_coefficients ? Number(load(a[slice * a_across])) : Number(0);
      carried[slice] = next_of<code>(before, element, coefficient, k == 0);
      out[slice * out_across] = stored<T>(is_exclusive ? before : carried[slice]);
    }
  }
}

// A few adjacent slices, as in the columns of a narrow matrix.
template <Scan code, class T> void walk_adjacent(const SliceBatch &batch) {
  switch (batch.slices) {
  case 2: return walk<code, T, true, 2>(batch);
  case 3: return walk<code, T, true, 3>(batch);
  case 4: return walk<code, T, true, 4>(batch);
  case 5: return walk<code, T, true, 5>(batch);
  case 6: return walk<code, T, true, 6>(batch);
  default: return walk<code, T, true>(batch);
  }
}

template <Scan code, class T> void scan(const SliceBatch &batch) {
  if (batch.across[0] == 1 && batch.across[2] == 1 && batch.slices > 1) walk_adjacent<code, T>(batch);
  else if (batch.slices == slices_together) walk<code, T, false, slices_together>(batch);
  else if (batch.slices == 1) walk<code, T, false, 1>(batch);
  else walk<code, T, false>(batch);
}

// ---------------------------------------------------------------- parts of a slice

template <class Number> Number &number_in(ScanNumber &carried) {
  if constexpr (std::is_same_v<Number, double>) return carried.real;
  else return carried.whole;
}

template <class Number> ScanNumber joined(ScanNumber before, ScanNumber next) {
  ScanNumber result;
  number_in<Number>(result) = added(number_in<Number>(before), number_in<Number>(next));
  return result;
}

// Returns the sum of the elements, added in independent chains, so that the loop is vectorized.
template <class T, int64_t step> Carried<Compute<T>> total_of(const T *x, int64_t count) {
  using Number = Carried<Compute<T>>;
  constexpr int chains = 32;
  Number sums[chains] = {};
  int64_t k = 0;
  for (; k + chains <= count; k += chains)
    for (int chain = 0; chain < chains; chain++) sums[chain] = added(sums[chain], Number(load(x[(k + chain) * step])));
  for (int chain = 0; chain < chains && k < count; k++, chain++)
    sums[chain] = added(sums[chain], Number(load(x[k * step])));
  for (int half = chains / 2; half > 0; half /= 2)
    for (int chain = 0; chain < half; chain++) sums[chain] = added(sums[chain], sums[chain + half]);
  return sums[0];
}

template <class T> ScanNumber total(const char *x, int64_t step, int64_t count) {
  const T *from = reinterpret_cast<const T *>(x);
  ScanNumber result;
  number_in<Carried<Compute<T>>>(result) = step > 0 ? total_of<T, 1>(from, count) : total_of<T, -1>(from, count);
  return result;
}

template <class T, int64_t step> void part_of(const ScanPart &part) {
  using Number = Carried<Compute<T>>;
  const T *x = reinterpret_cast<const T *>(part.x), *next = reinterpret_cast<const T *>(part.next);
  Result<T> *out = reinterpret_cast<Result<T> *>(part.out);
  ScanNumber before = part.before;
  Number carried = number_in<Number>(before);
  alignas(64) Number numbers[part_tile];
  ResultRow<Result<T>, part_tile> results(part.is_streamed);
  for (int64_t start = 0; start < part.count; start += part_tile) {
    int64_t size = std::min(part_tile, part.count - start), whole = (size + eight - 1) / eight * eight;
    int64_t lowest = step > 0 ? start : 1 - start - size;
    for (int64_t k = 0; k < size; k++) numbers[k] = Number(load(x[(start + k) * step]));
    for (int64_t k = size; k < whole; k++) numbers[k] = 0;
    Fetch<T>{next}(lowest, size);
    carried = run_on(numbers, whole, carried);
    Compute<Result<T>> *to = results.begin(out + lowest);
    for (int64_t k = 0; k < size; k++) to[step > 0 ? k : size - 1 - k] = converted<Compute<Result<T>>>(numbers[k]);
    results.end(out + lowest, size);
  }
  results.finish();
}

template <class T> void part(const ScanPart &slice_part) {
  if (slice_part.step > 0) part_of<T, 1>(slice_part);
  else part_of<T, -1>(slice_part);
}

// cumprod has no functions for parts: the product of a part may be infinite although the slice's product is 0. Integers
// support only cumsum and cumprod.
template <Scan code, class T> constexpr ScanKernel kernel_of() {
  constexpr bool is_float = std::is_floating_point_v<Compute<T>>;
  if constexpr (code == Scan::cumsum) return {scan<code, T>, total<T>, joined<Carried<Compute<T>>>, part<T>};
  else if constexpr (code == Scan::cumprod || is_float) return {scan<code, T>, nullptr, nullptr, nullptr};
  else return {};
}

template <class T, int... code> constexpr void fill(Scans &table, int dtype, std::integer_sequence<int, code...>) {
  ((table.kernels[code][dtype] = kernel_of<Scan(code), T>()), ...);
}

template <int... dtype> constexpr Scans all_kernels(std::integer_sequence<int, dtype...>) {
  Scans table{};
  (fill<Storage<DType(dtype)>>(table, dtype, std::make_integer_sequence<int, scan_count>{}), ...);
  return table;
}

} // namespace

extern const Scans scans = all_kernels(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
