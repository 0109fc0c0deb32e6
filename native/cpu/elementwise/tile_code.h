// The code of tile steps (tiles.h), from the formulas of elements.
#pragma once

#include "tiles.h"

#include <cstring>

namespace orchard::ORCHARD_ISA {

#if defined(__AVX512F__)
constexpr int tile_lanes = 16;
#elif defined(__AVX__)
constexpr int tile_lanes = 8;
#else
constexpr int tile_lanes = 4;
#endif
constexpr int tile_vectors = 8; // as many as calling conventions pass in registers
using Vector = float __attribute__((vector_size(tile_lanes * sizeof(float))));

// `at` is the number of the tile's first element.
using TileHandler = void (*)(const TileStep *step, int64_t at, Vector a, Vector b, Vector c, Vector d, Vector e,
                             Vector f, Vector g, Vector h);

#define ORCHARD_TILE                                                                                                   \
  [[maybe_unused]] const TileStep *step, [[maybe_unused]] int64_t at, [[maybe_unused]] Vector a,                       \
      [[maybe_unused]] Vector b, [[maybe_unused]] Vector c, [[maybe_unused]] Vector d, [[maybe_unused]] Vector e,      \
      [[maybe_unused]] Vector f, [[maybe_unused]] Vector g, [[maybe_unused]] Vector h

// Continues with the accumulator use(a, 0), use(b, 1), …. Compilers make this call a jump.
template <class Use> inline __attribute__((always_inline)) void next_tile(ORCHARD_TILE, Use use) {
  const auto code = reinterpret_cast<TileHandler>(step[1].code);
  code(step + 1, at, use(a, 0), use(b, 1), use(c, 2), use(d, 3), use(e, 4), use(f, 5), use(g, 6), use(h, 7));
}

inline Vector loaded(const TileStep *step, int64_t at, int vector) {
  Vector value;
  std::memcpy(&value, step->place + at + vector * tile_lanes, sizeof value);
  return value;
}

inline Vector repeated(float value) {
  Vector all;
  for (int lane = 0; lane < tile_lanes; lane++) all[lane] = value;
  return all;
}

// Computes each lane. Compilers turn the loop into vector instructions.
template <class Operation, class... In> inline __attribute__((always_inline)) Vector lanes_of(In... in) {
  float results[tile_lanes];
  for (int lane = 0; lane < tile_lanes; lane++) results[lane] = Operation::of(in[lane]...);
  Vector all;
  std::memcpy(&all, results, sizeof all);
  return all;
}

// The operation whose first operand is the accumulator.
template <class Operation> inline __attribute__((always_inline)) Vector accumulated(Vector x, Vector second) {
  return lanes_of<Operation>(x, second);
}

template <class Operation> void unary_step(ORCHARD_TILE) {
  next_tile(step, at, a, b, c, d, e, f, g, h, [](Vector x, int) { return lanes_of<Operation>(x); });
}

template <class Operation, TileForm form> void binary_step(ORCHARD_TILE) {
  if constexpr (form == TileForm::both)
    next_tile(step, at, a, b, c, d, e, f, g, h, [](Vector x, int) { return lanes_of<Operation>(x, x); });
  else if constexpr (form == TileForm::with_memory)
    next_tile(step, at, a, b, c, d, e, f, g, h,
              [=](Vector x, int i) { return accumulated<Operation>(x, loaded(step, at, i)); });
  else if constexpr (form == TileForm::memory_first)
    next_tile(step, at, a, b, c, d, e, f, g, h,
              [=](Vector x, int i) { return lanes_of<Operation>(loaded(step, at, i), x); });
  else {
    const Vector value = repeated(step->value);
    if constexpr (form == TileForm::with_value)
      next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector x, int) { return accumulated<Operation>(x, value); });
    else next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector x, int) { return lanes_of<Operation>(value, x); });
  }
}

inline TileCode code_of(TileHandler handler) { return reinterpret_cast<TileCode>(handler); }

// Both return null for an operation without code.
TileCode unary_tile(int64_t operation);
TileCode binary_tile(int64_t operation, TileForm form);

} // namespace orchard::ORCHARD_ISA
