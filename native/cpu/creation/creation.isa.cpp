#include "creation.h"

#include <cstring>
#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

template <class Bits> void fill_row(void *out, uint64_t bits, int64_t count, int64_t stride) {
  Bits *row = static_cast<Bits *>(out);
  Bits value = static_cast<Bits>(bits);
  if (stride == 1)
    for (int64_t i = 0; i < count; i++) row[i] = value;
  else
    for (int64_t i = 0; i < count; i++) row[i * stride] = value;
}

constexpr int line_bytes = 64;

// Fills a run of 1 to 2 · count elements with two vectors that overlap.
template <class Bits, int count> inline void fill_ends(Bits *run, Bits value, int64_t length) {
  if (length >= count) {
    typedef Bits Repeated __attribute__((vector_size(count * sizeof(Bits))));
    const Repeated repeated = Repeated{} + value;
    std::memcpy(run, &repeated, sizeof repeated);
    std::memcpy(run + length - count, &repeated, sizeof repeated);
  } else if constexpr (count > 1) fill_ends<Bits, count / 2>(run, value, length);
}

template <class Bits> void repeat(const RepeatedRuns &runs) {
  constexpr int line = line_bytes / int(sizeof(Bits));
  const Bits *from = static_cast<const Bits *>(runs.from);
  Bits *to = static_cast<Bits *>(runs.to);
  for (int64_t run = 0; run < runs.runs; run++, from += runs.across, to += runs.pitch) {
    const Bits value = *from;
    int64_t done = 0;
    for (; done + 2 * line < runs.length; done += line) fill_ends<Bits, line>(to + done, value, line);
    fill_ends<Bits, line>(to + done, value, runs.length - done);
  }
}

// Rounds a float64 to the dtype as if once. For float16 and bfloat16 the intermediate float32 is rounded to odd: of the
// two nearest numbers, the one whose last bit is odd. Then two roundings give the same result as one (Boldo and
// Melquiond, 2008).
template <class T> inline T rounded(double value) {
  if constexpr (std::is_same_v<T, double>) return value;
  else if constexpr (std::is_same_v<T, float>) return float(value);
  else {
    float nearest = float(value);
    uint32_t bits = bits_of(nearest);
    bool is_exact = double(nearest) == value || value != value;
    bool is_beyond = (double(nearest) > value) == (value > 0);
    uint32_t inward = is_beyond ? bits - 1 : bits; // the nearest float32 toward zero
    return store<T>(float_of(is_exact ? bits : inward | 1));
  }
}

template <class T> void range_row(const FloatRange &range, int64_t begin, int64_t end, void *out) {
  T *row = static_cast<T *>(out);
  for (int64_t i = begin; i < end; i++) {
    double forward = range.start + double(i) * range.step;
    double backward = range.end - double(range.count - 1 - i) * range.step;
    row[i - begin] = rounded<T>(i < range.forward ? forward : backward);
  }
}

// Truncates: computes the floor, then adds one if the value is negative and not an integer.
inline int64_t whole_step(const WholeRange &range, int64_t i) {
  int64_t value = int64_t(uint64_t(range.start) + uint64_t(i) * uint64_t(range.step));
  if (range.divisor == 1) return value;
  int64_t part = i * range.remainder;
  int64_t remainder = part % range.divisor;
  int64_t floor = part / range.divisor - (remainder < 0);
  int64_t result = int64_t(uint64_t(value) + uint64_t(floor));
  return result + (result < 0 && remainder != 0);
}

template <class T> void whole_range_row(const WholeRange &range, int64_t begin, int64_t end, void *out) {
  T *row = static_cast<T *>(out);
  for (int64_t i = begin; i < end; i++) row[i - begin] = store<T>(converted<Compute<T>>(whole_step(range, i)));
}

template <int... dtype> constexpr Creations all(std::integer_sequence<int, dtype...>) {
  Creations table{{fill_row<uint8_t>, fill_row<uint16_t>, fill_row<uint32_t>, fill_row<uint64_t>},
                  {repeat<uint8_t>, repeat<uint16_t>, repeat<uint32_t>, repeat<uint64_t>},
                  {},
                  {}};
  auto add = [&table](auto type, int at) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<T>>) table.range[at] = range_row<T>;
    else table.whole_range[at] = whole_range_row<T>;
  };
  (add(Type<Storage<DType(dtype)>>{}, dtype), ...);
  return table;
}

} // namespace

extern const Creations creations = all(std::make_integer_sequence<int, dtype_count>{});

} // namespace orchard::ORCHARD_ISA
