// Steps that move tiles, and the loop over tiles.
#include "tile_code.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orchard::ORCHARD_ISA {
namespace {

void load(ORCHARD_TILE) {
  next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector, int i) { return loaded(step, at, i); });
}

void fill(ORCHARD_TILE) {
  const Vector value = repeated(step->value);
  next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector, int) { return value; });
}

void store(ORCHARD_TILE) {
  float *to = step->place + at;
  next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector x, int i) {
    std::memcpy(to + i * tile_lanes, &x, sizeof x);
    return x;
  });
}

#if defined(__x86_64__)
inline void stream_vector(float *to, Vector x) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, x);
#elif defined(__AVX__)
  _mm256_stream_ps(to, x);
#else
  _mm_stream_ps(to, x);
#endif
}

void stream(ORCHARD_TILE) {
  float *to = step->place + at;
  next_tile(step, at, a, b, c, d, e, f, g, h, [=](Vector x, int i) {
    stream_vector(to + i * tile_lanes, x);
    return x;
  });
}
#endif

void stop(ORCHARD_TILE) {}

TileCode code_of_move(TileMove move) {
  switch (move) {
  case TileMove::load: return code_of(load);
  case TileMove::fill: return code_of(fill);
  case TileMove::store: return code_of(store);
#if defined(__x86_64__)
  case TileMove::stream: return code_of(stream);
#else
  case TileMove::stream: return nullptr;
#endif
  case TileMove::stop: return code_of(stop);
  }
  return nullptr;
}

void run(const TileStep *steps, int64_t count) {
  const auto first = reinterpret_cast<TileHandler>(steps->code);
  const Vector none{};
  for (int64_t tile = 0; tile < count; tile++)
    first(steps, tile * tile_vectors * tile_lanes, none, none, none, none, none, none, none, none);
#if defined(__AVX__)
  _mm256_zeroupper(); // compilers leave this to `stop`, which can't do it with vectors as arguments
#endif
}

} // namespace

extern const Tiles tiles = {tile_vectors * tile_lanes, code_of_move, unary_tile, binary_tile, run};

} // namespace orchard::ORCHARD_ISA
