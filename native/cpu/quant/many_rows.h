// Products of 16 rows of bytes with 16 rows of weights, piece by piece. A piece is a part of 32 values, or half of one
// if halves have separate scales.
//
//   sum = fma(low_W, scale_x · Σ x, sum), if weights have lows; then sum = fma(Σ x · level, scale_W · scale_x, sum)
//
// A `Unit` sums the products of bytes. It takes signed levels, or unsigned `raw` bytes: level + offset.
#pragma once

#include "../matmul/transpose.h"
#include "few_rows.h"
#include "many.h"
#include "round.h"

#if defined(__AVX512F__)

namespace orchard::ORCHARD_ISA {

using tuning::quant::chunk_parts, tuning::quant::pieces_at_once;

using PieceSums = int32_t[rows_of_block][rows_of_block]; // sums for each row of x and each row of weights

// ---------------------------------------------------------------- x

// Rounds as `pack` of fast.isa.cpp does, by a conversion instruction.
inline void pack_part(const float *x, int64_t row, const ByteBlocks &out, int64_t part) {
  const __m512 halves[2] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
  const __m512i mask = _mm512_set1_epi32(int(magnitude_bits));
  const auto magnitudes = [&](__m512 values) { return _mm512_and_si512(_mm512_castps_si512(values), mask); };
  const __m512i most = _mm512_max_epu32(magnitudes(halves[0]), magnitudes(halves[1]));
  const PartScale part_scale = scale_of(_mm512_reduce_max_epu32(most));
  const __mmask16 is_finite = part_scale.inverse == 0 ? 0 : all_lanes;
  out.scales[part * rows_of_block + row] = part_scale.scale;
  for (int64_t half = 0; half < 2; half++) {
    const __m512i levels = _mm512_maskz_cvtps_epi32(is_finite, halves[half] * _mm512_set1_ps(part_scale.inverse));
    int8_t *to = out.levels + (part * rows_of_block + row) * 32 + half * 16;
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm512_maskz_cvtepi32_epi8(all_lanes, levels));
    const int64_t at = (part * 2 + half) * rows_of_block + row;
    out.sums[at] = _mm512_reduce_add_epi32(levels);
    out.scaled_sums[at] = part_scale.scale * float(out.sums[at]);
  }
}

inline void pack_block(const float *x, int64_t rows, int64_t columns, const ByteBlocks &out) {
  static constexpr float zeros[32] = {};
  for (int64_t row = 0; row < rows_of_block; row++)
    for (int64_t part = 0; part < out.parts; part++)
      pack_part(row < rows ? x + row * columns + part * 32 : zeros, row, out, part);
}

// ---------------------------------------------------------------- weights

// Some parts of 16 rows of weights in the layout of tiles: groups of four levels, alternating between the 16 rows.
struct Panel {
  alignas(64) int8_t levels[chunk_parts][8][rows_of_block][4];
  alignas(64) float scales[chunk_parts * 2][rows_of_block], lows[chunk_parts * 2][rows_of_block]; // for each piece
};

// Unpacks eight parts of a row: scales and lows, and the levels plus `raise`.
template <class Row>
void unpack_step(const Row &row, int64_t step, int parts, int raise, int64_t at, Panel &panel, int8_t *levels) {
  constexpr int halves = Row::has_halves ? 2 : 1;
  const auto head = row.head(step);
  const int64_t first = step * 8 % chunk_parts * halves;
  for (int piece = 0; piece < parts * halves; piece++) {
    panel.scales[first + piece][at] = head.scale(piece / halves, piece % halves);
    if constexpr (Row::has_low) panel.lows[first + piece][at] = head.low(piece / halves, piece % halves);
  }
  for (int part = 0; part < parts; part++) {
    const __m256i raised = _mm256_add_epi8(row.levels(step, part), _mm256_set1_epi8(int8_t(raise)));
    _mm256_store_si256(reinterpret_cast<__m256i *>(levels + part * 32), raised);
  }
}

// Packs the parts from step `step` on of `rows` rows of weights, from row `first` on; missing rows are 0.
template <class Row>
void pack_panel(const Weights &weights, int64_t first, int64_t rows, int64_t step, int64_t parts, int raise,
                Panel &panel) {
  alignas(64) int8_t levels[rows_of_block][8 * 32] = {};
  if (rows < rows_of_block) panel = {};
  const NextRows<Row, 2 * rows_of_block> next(weights, first);
  for (int64_t done = 0; done < parts; done += 8, step++) {
    const int part_count = int(std::min<int64_t>(8, parts - done));
    next.fetch(step);
    for (int64_t row = 0; row < rows; row++)
      unpack_step(Row(weights, first + row), step, part_count, raise, row, panel, levels[row]);
    for (int part = 0; part < part_count; part += 2)
      transpose_square(reinterpret_cast<const float *>(levels[0] + part * 32), 8 * 32 / 4,
                       reinterpret_cast<float *>(panel.levels[done + part]), rows_of_block);
  }
}

// ---------------------------------------------------------------- sums of bytes

// Some pieces of x and of weights.
struct Pieces {
  const int8_t *x, *weights;
  const int32_t *x_sums;
};

template <bool has_halves> Pieces pieces_of(const ByteBlocks &x, int64_t part, const Panel &panel, int64_t at) {
  const int64_t x_part = part + (has_halves ? at / 2 : at);
  const int8_t *weights = &panel.levels[0][0][0][0] + at * (has_halves ? 256 : 512);
  return {x.levels + x_part * rows_of_block * 32, weights, x.sums + x_part * rows_of_block * 2};
}

// Sums by AVX512_VNNI.
struct VectorUnit {
  static constexpr bool takes_raw = true;

  template <bool has_halves> struct Use {};

  template <bool has_halves, bool is_signed>
  [[gnu::noinline]] static void sum(const Pieces &all, int64_t count, int offset, PieceSums *out) {
    for (int64_t at = 0; at < count; at++) {
      const int64_t part = has_halves ? at / 2 : at, half = has_halves ? at % 2 : 0;
      const int8_t *x = all.x + part * rows_of_block * 32 + half * 16;
      const int32_t *x_sums = all.x_sums + (part * 2 + half) * rows_of_block;
      constexpr int fours = has_halves ? 4 : 8;
      const int8_t *weights = all.weights + at * fours * 64;
      __m512i sums[rows_of_block];
#pragma GCC unroll 16
      for (int64_t row = 0; row < rows_of_block; row++)
        sums[row] = is_signed ? _mm512_set1_epi32(-offset * (x_sums[row] + (has_halves ? 0 : x_sums[row + 16])))
                              : _mm512_setzero_si512();
      for (int64_t four = 0; four < fours; four++) {
        const __m512i weight_bytes = _mm512_load_si512(weights + four * 64);
#pragma GCC unroll 16
        for (int64_t row = 0; row < rows_of_block; row++)
          __asm__("vpdpbusd %2%{1to16%}, %1, %0"
                  : "+v"(sums[row])
                  : "v"(weight_bytes), "m"(*reinterpret_cast<const int32_t *>(x + row * 32 + four * 4)));
      }
#pragma GCC unroll 16
      for (int64_t row = 0; row < rows_of_block; row++) _mm512_store_si512(out[at][row], sums[row]);
    }
  }
};

// Sums by AMX, with the instructions of `Tiles`: four products at a time, each in a separate register.
template <class Tiles> struct TileUnit {
  static constexpr bool takes_raw = false;

  // Configures the tile registers of a thread, and releases them in the destructor.
  template <bool has_halves> struct Use {
    Use() {
      static constexpr TileConfiguration layout = configuration();
      Tiles::set_up(layout);
    }
    ~Use() { Tiles::release(); }
    Use(const Use &) = delete;

    static constexpr TileConfiguration configuration() {
      TileConfiguration layout;
      for (int left = 4; left < 6; left++) layout.bytes_of_row[left] = has_halves ? 16 : 32;
      for (int right = 6; right < 8; right++) layout.rows[right] = has_halves ? 4 : 8;
      return layout;
    }
  };

  template <int at, bool has_halves, bool is_signed> static void multiply(const Pieces &all) {
    constexpr int64_t x_offset = has_halves ? at / 2 * rows_of_block * 32 + at % 2 * 16 : at * rows_of_block * 32;
    constexpr int left = 4 + at % 2, right = 6 + at % 2;
    Tiles::template load<left>(all.x + x_offset, 32);
    Tiles::template load<right>(all.weights + at * (has_halves ? 256 : 512), 64);
    Tiles::template zero<at>();
    Tiles::template add_product<at, left, right, is_signed>();
  }

  // Not inlined: the compiler does not know that tile loads read memory that was stored before.
  template <bool has_halves, bool is_signed>
  [[gnu::noinline]] static void sum(const Pieces &all, int64_t count, int, PieceSums *out) {
    multiply<0, has_halves, is_signed>(all);
    if (count > 1) multiply<1, has_halves, is_signed>(all);
    if (count > 2) multiply<2, has_halves, is_signed>(all);
    if (count > 3) multiply<3, has_halves, is_signed>(all);
    Tiles::template store<0>(out[0], 64);
    if (count > 1) Tiles::template store<1>(out[1], 64);
    if (count > 2) Tiles::template store<2>(out[2], 64);
    if (count > 3) Tiles::template store<3>(out[3], 64);
  }
};

// ---------------------------------------------------------------- sums of floats

// Adds the pieces of weights from piece `at` of a panel on, multiplied with the parts of x from part `part` on.
template <bool has_halves, bool has_low>
[[gnu::noinline]] inline void add_pieces(const PieceSums *pieces, int64_t count, const ByteBlocks &x, int64_t part,
                                         const Panel &panel, int64_t at, float (&out)[rows_of_block][rows_of_block]) {
  __m512 sums[rows_of_block];
#pragma GCC unroll 16
  for (int64_t row = 0; row < rows_of_block; row++) sums[row] = _mm512_load_ps(out[row]);
  for (int64_t piece = 0; piece < count; piece++) {
    const int64_t x_part = part + (has_halves ? piece / 2 : piece);
    const float *x_scales = x.scales + x_part * rows_of_block;
    const __m512 scales = _mm512_load_ps(panel.scales[at + piece]);
    if constexpr (has_low) {
      const __m512 lows = _mm512_load_ps(panel.lows[at + piece]);
      const float *halves = x.scaled_sums + x_part * 2 * rows_of_block;
      alignas(64) float x_sums[rows_of_block];
      if constexpr (has_halves) _mm512_store_ps(x_sums, _mm512_loadu_ps(halves + piece % 2 * rows_of_block));
      else _mm512_store_ps(x_sums, _mm512_loadu_ps(halves) + _mm512_loadu_ps(halves + rows_of_block));
#pragma GCC unroll 16
      for (int64_t row = 0; row < rows_of_block; row++)
        sums[row] = _mm512_fmadd_ps(lows, _mm512_set1_ps(x_sums[row]), sums[row]);
    }
#pragma GCC unroll 16
    for (int64_t row = 0; row < rows_of_block; row++) {
      const __m512 piece_sums = floats_of(_mm512_load_si512(pieces[piece][row]));
      sums[row] = _mm512_fmadd_ps(piece_sums, _mm512_mul_ps(scales, _mm512_set1_ps(x_scales[row])), sums[row]);
    }
  }
#pragma GCC unroll 16
  for (int64_t row = 0; row < rows_of_block; row++) _mm512_store_ps(out[row], sums[row]);
}

// The elements of the result for 16 rows of x and 16 rows of weights; `rows` and `columns` say how many of them exist.
struct Corner {
  float *out;
  int64_t pitch, rows, columns;

  __mmask16 there() const { return __mmask16((1u << columns) - 1); }
  void load(float (&sums)[rows_of_block][rows_of_block]) const {
    for (int64_t row = 0; row < rows; row++)
      _mm512_store_ps(sums[row], _mm512_maskz_loadu_ps(there(), out + row * pitch));
  }
  void store(const float (&sums)[rows_of_block][rows_of_block]) const {
    for (int64_t row = 0; row < rows; row++)
      _mm512_mask_storeu_ps(out + row * pitch, there(), _mm512_load_ps(sums[row]));
  }
};

// Adds the parts of a panel, which begins at part `first`; for the first panel, sums start at 0. Bytes of the next
// pieces are summed before the floats of the previous ones, so that a CPU may do both at once.
template <class Unit, bool has_halves, bool has_low>
[[gnu::noinline]] inline void add_panel(const ByteBlocks &x, int64_t first, int64_t parts, const Panel &panel,
                                        int offset, const Corner &corner) {
  alignas(64) float sums[rows_of_block][rows_of_block] = {};
  alignas(64) PieceSums pieces[2][pieces_at_once];
  if (first > 0) corner.load(sums);
  const int64_t count = parts * (has_halves ? 2 : 1);
  const auto piece_count = [&](int64_t at) { return std::min(pieces_at_once, count - at); };
  const auto sum = [&](int64_t at) {
    Unit::template sum<has_halves, !has_low>(pieces_of<has_halves>(x, first, panel, at), piece_count(at), offset,
                                             pieces[at / pieces_at_once % 2]);
  };
  sum(0);
  for (int64_t at = 0; at < count; at += pieces_at_once) {
    if (at + pieces_at_once < count) sum(at + pieces_at_once);
    add_pieces<has_halves, has_low>(pieces[at / pieces_at_once % 2], piece_count(at), x,
                                    first + (has_halves ? at / 2 : at), panel, at, sums);
  }
  corner.store(sums);
}

// As ManyRowsProduct, two panels at a time: a chunk of both panels and a chunk of x stay in the L1 cache.
template <class Unit, class Row>
void multiply_many_rows(const Weights &weights, const ByteBlocks &x, int64_t count, int64_t begin, int64_t end,
                        float *out) {
  static_assert(Row::has_low == (Row::offset == 0), "levels have signs where there are no lows");
  constexpr int raise = Unit::takes_raw ? Row::offset : 0;
  const typename Unit::template Use<Row::has_halves> use;
  (void)use;
  Panel panels[2];
  for (int64_t n = begin; n < end; n += 2 * rows_of_block)
    for (int64_t first = 0; first < x.parts; first += chunk_parts) {
      const int64_t parts = std::min(chunk_parts, x.parts - first);
      const auto width = [&](int panel) { return std::min(rows_of_block, end - n - panel * rows_of_block); };
      for (int panel = 0; panel < 2 && width(panel) > 0; panel++)
        pack_panel<Row>(weights, n + panel * rows_of_block, width(panel), first / 8, parts, raise, panels[panel]);
      for (int64_t row = 0; row < count; row += rows_of_block)
        for (int panel = 0; panel < 2 && width(panel) > 0; panel++) {
          const Corner corner = {out + row * weights.rows + n + panel * rows_of_block, weights.rows,
                                 std::min(rows_of_block, count - row), width(panel)};
          add_panel<Unit, Row::has_halves, Row::has_low>(x.block(row / rows_of_block), first, parts, panels[panel],
                                                         Row::offset, corner);
        }
    }
}

} // namespace orchard::ORCHARD_ISA

#endif
