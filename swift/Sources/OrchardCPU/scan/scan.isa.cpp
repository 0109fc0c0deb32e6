#include "scan.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Floats are carried in float64, integers in int64, which wraps around.
template <class C> using Carried = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;
template <class T> using Result = std::conditional_t<std::is_floating_point_v<Compute<T>>, T, int64_t>;

inline double multiplied(double a, double b) { return a * b; }
inline double added(double a, double b) { return a + b; }
inline int64_t multiplied(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
inline int64_t added(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

template <Scan code, class T, bool is_adjacent> void walk(const ScanBatch &batch) {
  using Number = Carried<Compute<T>>;
  constexpr bool is_product = code == Scan::cumprod || code == Scan::exclusive_cumprod;
  constexpr bool is_exclusive = code == Scan::exclusive_cumprod || code == Scan::shift;
  constexpr bool is_recurrence = code == Scan::recurrence || code == Scan::shifted_recurrence;
  Number carried[scan_lines];
  for (int64_t line = 0; line < batch.lines; line++) carried[line] = is_product ? 1 : 0;
  int64_t x_across = is_adjacent ? 1 : batch.across[0], out_across = is_adjacent ? 1 : batch.across[2];
  for (int64_t k = 0; k < batch.length; k++) {
    const T *x = reinterpret_cast<const T *>(batch.x) + k * batch.along[0];
    Result<T> *out = reinterpret_cast<Result<T> *>(batch.out) + k * batch.along[2];
    int64_t a_at = code == Scan::shifted_recurrence ? k - 1 : k;
    const T *a = reinterpret_cast<const T *>(batch.a) + a_at * batch.along[1];
    for (int64_t line = 0; line < batch.lines; line++) {
      Number element = Number(load(x[line * x_across])), before = carried[line], next = element;
      if constexpr (code == Scan::cumsum) next = added(before, element);
      else if constexpr (is_product) next = multiplied(before, element);
      else if constexpr (is_recurrence) next = k == 0 ? element : added(multiplied(Number(load(a[line * batch.across[1]])), before), element);
      carried[line] = next;
      Number result = is_exclusive ? before : next;
      out[line * out_across] = store<Result<T>>(converted<Compute<Result<T>>>(result));
    }
  }
}

template <Scan code, class T> void scan(const ScanBatch &batch) {
  if (batch.across[0] == 1 && batch.across[2] == 1) walk<code, T, true>(batch);
  else walk<code, T, false>(batch);
}

template <class T> constexpr void fill(Scans &table, int dtype) {
  auto put = [&](Scan code, ScanKernel kernel) { table.kernels[int(code)][dtype] = kernel; };
  put(Scan::cumsum, scan<Scan::cumsum, T>);
  put(Scan::cumprod, scan<Scan::cumprod, T>);
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    put(Scan::exclusive_cumprod, scan<Scan::exclusive_cumprod, T>);
    put(Scan::shift, scan<Scan::shift, T>);
    put(Scan::recurrence, scan<Scan::recurrence, T>);
    put(Scan::shifted_recurrence, scan<Scan::shifted_recurrence, T>);
  }
}

template <int... dtype> constexpr Scans all_kernels(std::integer_sequence<int, dtype...>) {
  Scans table{};
  (fill<Storage<DType(dtype)>>(table, dtype), ...);
  return table;
}

} // namespace

extern const Scans scans = all_kernels(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
