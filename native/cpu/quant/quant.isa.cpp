#include "weights.h"

#include "few_rows.h"
#include "formats.h"
#include "tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

constexpr int64_t part_values = 32;

// ---------------------------------------------------------------- parts of rows

// Unpacks parts of 32 values of a row: part(i, out).
template <class Format> struct BlockRow {
  const uint8_t *row;

  BlockRow(const Weights &weights, int64_t at) : row(weights.packed + at * weights.row_bytes) {}
  void operator()(int64_t part, int64_t, float *out) const {
    constexpr int parts = Format::values / part_values;
    Format::unpack(row + part / parts * Format::bytes, int(part % parts), out);
  }
};

// A row of 16-bit floats. The last part may have fewer values.
template <class T> struct FloatRow {
  const uint8_t *row;

  FloatRow(const Weights &weights, int64_t at) : row(weights.packed + at * weights.row_bytes) {}
  void operator()(int64_t part, int64_t count, float *out) const {
    const uint8_t *from = row + part * part_values * int64_t(sizeof(T));
    for (int64_t i = 0; i < count; i++) {
      T value;
      std::memcpy(&value, from + i * int64_t(sizeof(T)), sizeof value); // may be unaligned
      out[i] = load(value);
    }
    std::fill(out + count, out + part_values, 0.0f);
  }
};

inline float scale_at(const void *scales, DType dtype, int64_t at) {
  if (dtype == DType::float16) return load(static_cast<const Float16 *>(scales)[at]);
  if (dtype == DType::bfloat16) return load(static_cast<const BFloat16 *>(scales)[at]);
  return static_cast<const float *>(scales)[at];
}

template <int bits, bool is_symmetric> struct GroupRow {
  const Weights &weights;
  const uint8_t *row;
  int64_t first_group;

  GroupRow(const Weights &all, int64_t at)
      : weights(all), row(all.packed + at * all.row_bytes), first_group(at * (all.columns / all.group)) {}
  void operator()(int64_t part, int64_t, float *out) const {
    unpack_levels<bits>(row + part * bits * 4, out);
    const int64_t group = first_group + part * part_values / weights.group;
    const float scale = scale_at(weights.scales, weights.scale_dtype, group);
    if constexpr (is_symmetric) {
      constexpr float center = float(1 << (bits - 1));
      for (int i = 0; i < part_values; i++) out[i] = scale * (out[i] - center);
    } else {
      const float bias = scale_at(weights.biases, weights.scale_dtype, group);
      for (int i = 0; i < part_values; i++) out[i] = scale * out[i] + bias;
    }
  }
};

template <bool is_symmetric, class Use> void with_bits(int64_t bits, Use &&use) {
  switch (bits) {
  case 2: return use(Type<GroupRow<2, is_symmetric>>{});
  case 3: return use(Type<GroupRow<3, is_symmetric>>{});
  case 4: return use(Type<GroupRow<4, is_symmetric>>{});
  case 5: return use(Type<GroupRow<5, is_symmetric>>{});
  case 6: return use(Type<GroupRow<6, is_symmetric>>{});
  default: return use(Type<GroupRow<8, is_symmetric>>{});
  }
}

// Calls use(Type<Row>{}) with the row reader for the format of these weights.
template <class Use> void with_rows(const Weights &weights, Use &&use) {
  switch (weights.packing) {
  case Packing::q4_0: return use(Type<BlockRow<Q4_0>>{});
  case Packing::q4_1: return use(Type<BlockRow<Q4_1>>{});
  case Packing::q5_0: return use(Type<BlockRow<Q5_0>>{});
  case Packing::q5_1: return use(Type<BlockRow<Q5_1>>{});
  case Packing::q8_0: return use(Type<BlockRow<Q8_0>>{});
  case Packing::q2_K: return use(Type<BlockRow<Q2K>>{});
  case Packing::q3_K: return use(Type<BlockRow<Q3K>>{});
  case Packing::q4_K: return use(Type<BlockRow<Q4K>>{});
  case Packing::q5_K: return use(Type<BlockRow<Q5K>>{});
  case Packing::q6_K: return use(Type<BlockRow<Q6K>>{});
  case Packing::iq4_nl: return use(Type<BlockRow<Iq4Nl>>{});
  case Packing::mxfp4: return use(Type<BlockRow<Mxfp4>>{});
  case Packing::f16: return use(Type<FloatRow<Float16>>{});
  case Packing::bf16: return use(Type<FloatRow<BFloat16>>{});
  case Packing::affine: return with_bits<false>(weights.bits, use);
  case Packing::symmetric: return with_bits<true>(weights.bits, use);
  case Packing::count: break;
  }
}

// Unpacks the values from column `first` on.
template <class Row> void unpack_row(const Row &row, int64_t first, int64_t count, float *out) {
  const int64_t from = first / part_values;
  int64_t done = 0;
  for (; done + part_values <= count; done += part_values) row(from + done / part_values, part_values, out + done);
  if (done == count) return;
  float rest[part_values];
  row(from + done / part_values, count - done, rest);
  std::copy_n(rest, count - done, out + done);
}

void unpack(const Weights &weights, int64_t row, int64_t first, int64_t count, float *out) {
#if defined(__AVX2__) || defined(__aarch64__)
  const bool is_unpacked = with_level_rows(weights, [&](auto type) {
    unpack_levels_of<typename decltype(type)::type>(weights, row, first / part_values, count / part_values, out);
  });
  if (is_unpacked) return;
#endif
  with_rows(weights, [&](auto type) { unpack_row(typename decltype(type)::type(weights, row), first, count, out); });
}

// ---------------------------------------------------------------- products

inline float merged(float (&sums)[part_values]) {
  for (int half = part_values / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  return sums[0];
}

// Multiplies `rows` rows of x, `pitch` apart, by one row of weights. Each part of the weights is unpacked once, in
// registers.
template <int rows, class Row>
void dot_rows(const Row &row, const float *x, int64_t pitch, int64_t columns, float *out, int64_t stride) {
  float sums[rows][part_values] = {};
  float values[part_values];
  int64_t column = 0;
  for (; column + part_values <= columns; column += part_values) {
    row(column / part_values, part_values, values);
    for (int at = 0; at < rows; at++)
      for (int i = 0; i < part_values; i++) sums[at][i] += x[at * pitch + column + i] * values[i];
  }
  if (column < columns) {
    row(column / part_values, columns - column, values);
    for (int at = 0; at < rows; at++)
      for (int64_t i = 0; i < columns - column; i++) sums[at][i] += x[at * pitch + column + i] * values[i];
  }
  for (int at = 0; at < rows; at++) out[at * stride] += merged(sums[at]);
}

using tuning::quant::few_rows;

template <class Row>
void dot_some(const Row &row, const float *x, int64_t count, int64_t pitch, int64_t columns, float *out,
              int64_t stride) {
  switch (count) {
  case 1: return dot_rows<1>(row, x, pitch, columns, out, stride);
  case 2: return dot_rows<2>(row, x, pitch, columns, out, stride);
  case 3: return dot_rows<3>(row, x, pitch, columns, out, stride);
  default: return dot_rows<4>(row, x, pitch, columns, out, stride);
  }
}

// Unpacked values in memory, with the interface of a row reader.
struct Unpacked {
  const float *values;
  void operator()(int64_t part, int64_t count, float *out) const {
    std::copy_n(values + part * part_values, count, out);
  }
};

// For many rows of x, weights are unpacked to memory once, in tiles of this size.
constexpr int64_t tile_rows = 8, tile_columns = tuning::quant::unpacked_columns;

template <class Row>
void multiply_many(const Weights &weights, const float *x, int64_t count, int64_t begin, int64_t end, float *out) {
  float tile[tile_rows][tile_columns];
  const int64_t columns = weights.columns;
  for (int64_t n = begin; n < end; n += tile_rows) {
    const int64_t rows = std::min(tile_rows, end - n);
    for (int64_t first = 0; first < columns; first += tile_columns) {
      const int64_t width = std::min(tile_columns, columns - first);
      for (int64_t row = 0; row < rows; row++) unpack_row(Row(weights, n + row), first, width, tile[row]);
      for (int64_t at = 0; at < count; at += few_rows)
        for (int64_t row = 0; row < rows; row++)
          dot_some(Unpacked{tile[row]}, x + at * columns + first, std::min(few_rows, count - at), columns, width,
                   out + at * weights.rows + n + row, weights.rows);
    }
  }
}

// Returns false if the instruction set lacks the vectors for it.
bool multiply_levels(const Weights &weights, const float *x, int64_t count, int64_t begin, int64_t end, float *out) {
#if defined(__AVX2__) || defined(__aarch64__)
  return with_level_rows(
      weights, [&](auto type) { multiply_few<typename decltype(type)::type>(weights, x, count, begin, end, out); });
#else
  (void)weights, (void)x, (void)count, (void)begin, (void)end, (void)out;
  return false;
#endif
}

void multiply(const Weights &weights, const float *x, int64_t count, int64_t begin, int64_t end, float *out) {
  if (multiply_levels(weights, x, count, begin, end, out)) return;
  const int64_t columns = weights.columns;
  for (int64_t at = 0; at < count; at++) std::fill(out + at * weights.rows + begin, out + at * weights.rows + end, 0);
  with_rows(weights, [&](auto type) {
    using Row = typename decltype(type)::type;
    if (count > few_rows) return multiply_many<Row>(weights, x, count, begin, end, out);
    for (int64_t n = begin; n < end; n++) dot_some(Row(weights, n), x, count, columns, columns, out + n, weights.rows);
  });
}

void multiply_transposed(const Weights &weights, const float *g, int64_t count, int64_t begin, int64_t end,
                         float *out) {
  float values[transposed_columns];
  const int64_t columns = end - begin;
  for (int64_t at = 0; at < count; at++) std::fill_n(out + at * weights.columns + begin, columns, 0.0f);
  with_rows(weights, [&](auto type) {
    for (int64_t n = 0; n < weights.rows; n++) {
      unpack_row(typename decltype(type)::type(weights, n), begin, columns, values);
      for (int64_t at = 0; at < count; at++) {
        const float factor = g[at * weights.rows + n];
        float *to = out + at * weights.columns + begin;
        for (int64_t i = 0; i < columns; i++) to[i] += factor * values[i];
      }
    }
  });
}

void widen_from(const void *in, DType dtype, float *out, int64_t count) {
  if (dtype == DType::float16) widen(static_cast<const Float16 *>(in), out, count);
  else if (dtype == DType::bfloat16) widen(static_cast<const BFloat16 *>(in), out, count);
  else std::copy_n(static_cast<const float *>(in), count, out);
}

void narrow_to(const float *in, DType dtype, void *out, int64_t count) {
  if (dtype == DType::float16) narrow(in, static_cast<Float16 *>(out), count);
  else if (dtype == DType::bfloat16) narrow(in, static_cast<BFloat16 *>(out), count);
  else std::copy_n(in, count, static_cast<float *>(out));
}

} // namespace

extern const QuantKernels quant_kernels = {unpack, multiply, multiply_transposed, widen_from, narrow_to};

} // namespace orchard::ORCHARD_ISA
