// Products of up to four rows of x at a time with rows of weights, on AVX2 and NEON. Some parts of several rows of
// weights are unpacked in registers. A value is scale · level + low in float32, as `dequantize` computes it. Sums are
// in float32, one vector for each element of the result, whose lanes are merged as a binary tree.
#pragma once

#include "nibble_tables.h"
#include "rows_avx.h"
#include "rows_neon.h"

#include <algorithm>
#include <utility>

#if defined(__AVX2__) || defined(__aarch64__)

namespace orchard::ORCHARD_ISA {

constexpr int part_vectors = 32 / float_lanes;

#if defined(__AVX512F__)
template <class Row> constexpr bool has_tables = Nibbles<Row>::are_there;
#else
template <class Row> constexpr bool has_tables = false;
#endif

// Permutes sixteen values of x to the lane order of table lookups. The inverse permutes lanes to the order of values.
template <class Row> Floats in_lanes(Floats x) {
#if defined(__AVX512F__)
  if constexpr (has_tables<Row>) return Nibbles<Row>::in_lanes(x);
#endif
  return x;
}
template <class Row> Floats out_of_lanes(Floats lanes) {
#if defined(__AVX512F__)
  if constexpr (has_tables<Row>) return Nibbles<Row>::out_of_lanes(lanes);
#endif
  return lanes;
}

// Computes the values of a part of a row, in the order of `in_lanes`.
template <class Row>
[[gnu::always_inline]] inline void values_of(const Row &row, const typename Row::Head &head, int64_t block, int part,
                                             Floats (&out)[part_vectors]) {
#if defined(__AVX512F__)
  if constexpr (has_tables<Row>) {
    const auto *levels = reinterpret_cast<const uint8_t *>(Nibbles<Row>::levels);
    Floats table = floats_of(signed_lanes_of(bytes16(levels))) * all_of(head.scale(part, 0));
    if constexpr (Row::has_low) table += all_of(head.low(part, 0));
    return Nibbles<Row>::look_up(row, block, part, table, out);
  }
#endif
  const auto levels = row.levels(block, part);
  for (int v = 0; v < part_vectors; v++) {
    const int half = Row::has_halves ? v * 2 / part_vectors : 0;
    out[v] = Row::floats(levels, v) * all_of(head.scale(part, half));
    if constexpr (Row::has_low) out[v] += all_of(head.low(part, half));
  }
}

// Unpacks `parts` parts of a row from part `first` on.
template <class Row>
void unpack_levels_of(const Weights &weights, int64_t at, int64_t first, int64_t parts, float *out) {
  const Row row(weights, at);
  for (int64_t part = first; part < first + parts;) {
    const int64_t block = part / Row::block_parts;
    const auto head = row.head(block);
    const int64_t end = std::min(first + parts, (block + 1) * Row::block_parts);
    for (; part < end; part++, out += 32) {
      Floats values[part_vectors];
      values_of(row, head, block, int(part - block * Row::block_parts), values);
      for (int v = 0; v < part_vectors; v++) {
        const Floats ordered = out_of_lanes<Row>(values[v]);
        __builtin_memcpy(out + v * float_lanes, &ordered, sizeof ordered);
      }
    }
  }
}

// Prefetches the rows after those that are being multiplied, which are adjacent. Processors prefetch within a page
// only, and a row may be shorter than a page.
template <class Row, int rows> struct NextRows {
  const uint8_t *levels;
  const uint8_t *scales, *biases; // scales of groups, which are stored separately from the levels
  int64_t number_bytes;           // bytes of scales of a block, for all rows

  NextRows(const Weights &weights, int64_t first) : levels(weights.packed + (first + rows) * weights.row_bytes) {
    if constexpr (!Row::has_groups) return;
    const int64_t size = weights.scale_dtype == DType::float32 ? 4 : 2;
    const int64_t from = (first + rows) * (weights.columns / weights.group) * size;
    scales = static_cast<const uint8_t *>(weights.scales) + from;
    if constexpr (Row::has_low) biases = static_cast<const uint8_t *>(weights.biases) + from;
    number_bytes = rows * (Row::block_parts * 32 / weights.group) * size;
  }
  // Always inlined: GCC assumes that a function that only prefetches has no effects, and drops its calls.
  [[gnu::always_inline]] void fetch(int64_t block) const {
    constexpr int64_t bytes = rows * Row::block_bytes;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(levels + block * bytes + at);
    if constexpr (!Row::has_groups) return;
    for (int64_t at = block * number_bytes; at < (block + 1) * number_bytes; at += 64) {
      __builtin_prefetch(scales + at);
      if constexpr (Row::has_low) __builtin_prefetch(biases + at);
    }
  }
};

// Adds the products of some parts of rows of weights with the same parts of `count` rows of x, `pitch` apart. With
// table lookups, all rows process one part of x at a time; otherwise each row processes all of the parts.
template <class Row, int rows, int count> struct BlockProduct {
  const Row (&all)[rows];
  const typename Row::Head (&heads)[rows];
  const int64_t block, pitch;
  const float *x; // of the block

  Floats x_vector(int at, int part, int v) const {
    return in_lanes<Row>(floats_at(x + at * pitch + part * 32 + v * float_lanes));
  }
  [[gnu::always_inline]] void add_part(int part, Floats (&sums)[rows][count]) const {
    Floats x_vectors[count][part_vectors];
    for (int at = 0; at < count; at++)
      for (int v = 0; v < part_vectors; v++) x_vectors[at][v] = x_vector(at, part, v);
    for (int row = 0; row < rows; row++) {
      Floats values[part_vectors];
      values_of(all[row], heads[row], block, part, values);
      for (int v = 0; v < part_vectors; v++)
        for (int at = 0; at < count; at++) sums[row][at] = fused(values[v], x_vectors[at][v], sums[row][at]);
    }
  }
  [[gnu::always_inline]] void add_part_of_row(int row, int part, Floats (&sums)[count]) const {
    Floats values[part_vectors];
    values_of(all[row], heads[row], block, part, values);
    for (int v = 0; v < part_vectors; v++)
      for (int at = 0; at < count; at++) sums[at] = fused(values[v], x_vector(at, part, v), sums[at]);
  }
  [[gnu::always_inline]] void add(int parts, Floats (&sums)[rows][count]) const {
    if constexpr (has_tables<Row>) {
      int part = 0;
      for (; part + 2 <= parts; part += 2) add_part(part, sums), add_part(part + 1, sums);
      if (part < parts) add_part(part, sums);
      return;
    }
    for (int row = 0; row < rows; row++) {
      Floats row_sums[count]; // in registers
      for (int at = 0; at < count; at++) row_sums[at] = sums[row][at];
#pragma GCC unroll 8
      for (int part = 0; part < parts; part++) add_part_of_row(row, part, row_sums);
      for (int at = 0; at < count; at++) sums[row][at] = row_sums[at];
    }
  }
};

// out[at · stride + r] = Σ x[at · pitch + k] W[first + r, k] for as many rows r of weights as there are indices, and
// `count` rows of x.
template <class Row, int count, size_t... r>
void multiply_rows(std::index_sequence<r...>, const Weights &weights, int64_t first, const float *x, int64_t pitch,
                   float *out, int64_t stride) {
  constexpr int rows = sizeof...(r);
  const Row all[rows] = {Row(weights, first + int64_t(r))...};
  const NextRows<Row, rows> next(weights, first);
  Floats sums[rows][count] = {};
  const int64_t parts = weights.columns / 32;
  const auto add = [&](int64_t block, int part_count) __attribute__((always_inline)) {
    next.fetch(block);
    const typename Row::Head heads[rows] = {all[r].head(block)...};
    const float *from = x + block * Row::block_parts * 32;
    BlockProduct<Row, rows, count>{all, heads, block, pitch, from}.add(part_count, sums);
  };
  for (int64_t block = 0; block < parts / Row::block_parts; block++) add(block, Row::block_parts);
  if (parts % Row::block_parts != 0) add(parts / Row::block_parts, int(parts % Row::block_parts));
  for (int row = 0; row < rows; row++)
    for (int at = 0; at < count; at++) out[at * stride + row] = sum_of(out_of_lanes<Row>(sums[row][at]));
}

// Multiplies rows `begin` to `end` of weights: four at a time for one row of x, two for several; twice as many with
// table lookups.
template <class Row, int count>
void multiply_few(const Weights &weights, const float *x, int64_t begin, int64_t end, float *out) {
  constexpr int together = (count == 1 ? 4 : 2) * (has_tables<Row> ? 2 : 1);
  int64_t n = begin;
  for (; n + together <= end; n += together)
    multiply_rows<Row, count>(std::make_index_sequence<together>(), weights, n, x, weights.columns, out + n,
                              weights.rows);
  for (; n < end; n++)
    multiply_rows<Row, count>(std::make_index_sequence<1>(), weights, n, x, weights.columns, out + n, weights.rows);
}

template <class Row>
void multiply_few(const Weights &weights, const float *x, int64_t count, int64_t begin, int64_t end, float *out) {
  const int64_t x_pitch = weights.columns, out_pitch = weights.rows;
  for (; count >= 4; count -= 4, x += 4 * x_pitch, out += 4 * out_pitch)
    multiply_few<Row, 4>(weights, x, begin, end, out);
  if (count & 2) {
    multiply_few<Row, 2>(weights, x, begin, end, out);
    x += 2 * x_pitch, out += 2 * out_pitch;
  }
  if (count & 1) multiply_few<Row, 1>(weights, x, begin, end, out);
}

template <bool is_symmetric, class Use> void with_level_bits(int64_t bits, Use &&use) {
  switch (bits) {
  case 2: return use(Type<GroupLevelRow<2, is_symmetric>>{});
  case 3: return use(Type<GroupLevelRow<3, is_symmetric>>{});
  case 4: return use(Type<GroupLevelRow<4, is_symmetric>>{});
  case 5: return use(Type<GroupLevelRow<5, is_symmetric>>{});
  case 6: return use(Type<GroupLevelRow<6, is_symmetric>>{});
  default: return use(Type<GroupLevelRow<8, is_symmetric>>{});
  }
}

// Calls use(Type<Row>{}) with the row reader for the format of these weights. Returns false if the format has no
// levels.
template <class Use> bool with_level_rows(const Weights &weights, Use &&use) {
  switch (weights.packing) {
  case Packing::q4_0: use(Type<LevelRow<Q4_0>>{}); return true;
  case Packing::q4_1: use(Type<LevelRow<Q4_1>>{}); return true;
  case Packing::q5_0: use(Type<LevelRow<Q5_0>>{}); return true;
  case Packing::q5_1: use(Type<LevelRow<Q5_1>>{}); return true;
  case Packing::q8_0: use(Type<LevelRow<Q8_0>>{}); return true;
  case Packing::q2_K: use(Type<LevelRow<Q2K>>{}); return true;
  case Packing::q3_K: use(Type<LevelRow<Q3K>>{}); return true;
  case Packing::q4_K: use(Type<LevelRow<Q4K>>{}); return true;
  case Packing::q5_K: use(Type<LevelRow<Q5K>>{}); return true;
  case Packing::q6_K: use(Type<LevelRow<Q6K>>{}); return true;
  case Packing::iq4_nl: use(Type<LevelRow<Iq4Nl>>{}); return true;
  case Packing::mxfp4: use(Type<LevelRow<Mxfp4>>{}); return true;
  case Packing::affine: with_level_bits<false>(weights.bits, use); return true;
  case Packing::symmetric: with_level_bits<true>(weights.bits, use); return true;
  case Packing::f16:
  case Packing::bf16:
  case Packing::count: break;
  }
  return false;
}

} // namespace orchard::ORCHARD_ISA

#endif
