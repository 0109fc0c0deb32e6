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

// What is carried past an element.
template <Scan code, class Number> Number next_of(Number before, Number element, Number coefficient, bool is_first) {
  if constexpr (code == Scan::cumsum) return added(before, element);
  if constexpr (code == Scan::cumprod || code == Scan::exclusive_cumprod) return multiplied(before, element);
  if constexpr (code == Scan::recurrence || code == Scan::shifted_recurrence)
    return is_first ? element : added(multiplied(coefficient, before), element);
  return element;
}

template <Scan code> constexpr int64_t first_carried = code == Scan::cumprod || code == Scan::exclusive_cumprod ? 1 : 0;
template <class T> Result<T> stored(Carried<Compute<T>> value) { return store<Result<T>>(converted<Compute<Result<T>>>(value)); }

// Lines side by side. Where `count` is given it is their number, and what is carried stays in registers.
template <Scan code, class T, bool is_adjacent, int64_t count = 0> void walk(const ScanBatch &batch) {
  using Number = Carried<Compute<T>>;
  constexpr bool is_exclusive = code == Scan::exclusive_cumprod || code == Scan::shift;
  constexpr bool has_coefficients = code == Scan::recurrence || code == Scan::shifted_recurrence;
  int64_t lines = count > 0 ? count : batch.lines;
  int64_t x_across = is_adjacent ? 1 : batch.across[0], a_across = batch.across[1], out_across = is_adjacent ? 1 : batch.across[2];
  Number carried[count > 0 ? count : scan_lines];
  for (int64_t line = 0; line < lines; line++) carried[line] = first_carried<code>;
  for (int64_t k = 0; k < batch.length; k++) {
    const T *x = reinterpret_cast<const T *>(batch.x) + k * batch.along[0];
    Result<T> *out = reinterpret_cast<Result<T> *>(batch.out) + k * batch.along[2];
    const T *a = reinterpret_cast<const T *>(batch.a) + (code == Scan::shifted_recurrence && k > 0 ? k - 1 : k) * batch.along[1];
    for (int64_t line = 0; line < lines; line++) {
      Number element = Number(load(x[line * x_across])), before = carried[line];
      Number coefficient = has_coefficients ? Number(load(a[line * a_across])) : Number(0);
      carried[line] = next_of<code>(before, element, coefficient, k == 0);
      out[line * out_across] = stored<T>(is_exclusive ? before : carried[line]);
    }
  }
}

template <Scan code, class T> void scan(const ScanBatch &batch) {
  if (batch.across[0] == 1 && batch.across[2] == 1 && batch.lines > 1) walk<code, T, true>(batch);
  else if (batch.lines == scan_together) walk<code, T, false, scan_together>(batch);
  else walk<code, T, false>(batch);
}

// ---------------------------------------------------------------- parts of a line

template <class Number> Number &number_in(ScanNumber &carried) {
  if constexpr (std::is_same_v<Number, double>) return carried.real;
  else return carried.whole;
}

template <Scan code, class Number> ScanNumber joined(ScanNumber before, ScanNumber next) {
  ScanNumber result;
  number_in<Number>(result) = next_of<code, Number>(number_in<Number>(before), number_in<Number>(next), 0, false);
  return result;
}

// The elements together, in lanes that make vectors.
template <Scan code, class T, int64_t step> Carried<Compute<T>> total_of(const T *x, int64_t count) {
  using Number = Carried<Compute<T>>;
  constexpr int lanes = 16;
  Number own[lanes];
  for (Number &lane : own) lane = first_carried<code>;
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes)
    for (int lane = 0; lane < lanes; lane++) own[lane] = next_of<code>(own[lane], Number(load(x[(k + lane) * step])), Number(0), false);
  for (int lane = 0; lane < lanes && k < count; k++, lane++) own[lane] = next_of<code>(own[lane], Number(load(x[k * step])), Number(0), false);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) own[lane] = next_of<code>(own[lane], own[lane + half], Number(0), false);
  return own[0];
}

// Tiles of a few segments: what each comes to is known before they are walked along together, so that their chains overlap.
template <Scan code, class T, int64_t step> void part_of(const T *x, Result<T> *out, int64_t count, Carried<Compute<T>> carried) {
  using Number = Carried<Compute<T>>;
  constexpr int64_t segments = scan_together, length = 512;
  int64_t at = 0;
  for (; at + segments * length <= count; at += segments * length) {
    const T *from = x + at * step;
    Result<T> *to = out + at * step;
    Number own[segments];
    for (int64_t segment = 0; segment < segments; segment++) {
      own[segment] = carried;
      carried = next_of<code>(carried, total_of<code, T, step>(from + segment * length * step, length), Number(0), false);
    }
    for (int64_t k = 0; k < length; k++)
      for (int64_t segment = 0; segment < segments; segment++) {
        int64_t place = (segment * length + k) * step;
        own[segment] = next_of<code>(own[segment], Number(load(from[place])), Number(0), false);
        to[place] = stored<T>(own[segment]);
      }
  }
  for (; at < count; at++) {
    carried = next_of<code>(carried, Number(load(x[at * step])), Number(0), false);
    out[at * step] = stored<T>(carried);
  }
}

template <Scan code, class T> ScanNumber total(const char *x, int64_t step, int64_t count) {
  const T *from = reinterpret_cast<const T *>(x);
  ScanNumber result;
  number_in<Carried<Compute<T>>>(result) = step > 0 ? total_of<code, T, 1>(from, count) : total_of<code, T, -1>(from, count);
  return result;
}

template <Scan code, class T> void part(const char *x, char *out, int64_t step, int64_t count, ScanNumber before) {
  auto carried = number_in<Carried<Compute<T>>>(before);
  const T *from = reinterpret_cast<const T *>(x);
  Result<T> *to = reinterpret_cast<Result<T> *>(out);
  if (step > 0) part_of<code, T, 1>(from, to, count, carried);
  else part_of<code, T, -1>(from, to, count, carried);
}

template <class T> constexpr void fill(Scans &table, int dtype) {
  using Number = Carried<Compute<T>>;
  auto put = [&](Scan code, ScanKernel kernel) { table.kernels[int(code)][dtype] = kernel; };
  put(Scan::cumsum, {scan<Scan::cumsum, T>, total<Scan::cumsum, T>, joined<Scan::cumsum, Number>, part<Scan::cumsum, T>});
  put(Scan::cumprod, {scan<Scan::cumprod, T>, total<Scan::cumprod, T>, joined<Scan::cumprod, Number>, part<Scan::cumprod, T>});
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    put(Scan::exclusive_cumprod, {scan<Scan::exclusive_cumprod, T>, nullptr, nullptr, nullptr});
    put(Scan::shift, {scan<Scan::shift, T>, nullptr, nullptr, nullptr});
    put(Scan::recurrence, {scan<Scan::recurrence, T>, nullptr, nullptr, nullptr});
    put(Scan::shifted_recurrence, {scan<Scan::shifted_recurrence, T>, nullptr, nullptr, nullptr});
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
