// Blocks of a transposed copy. A block is read into one buffer, row by row, transposed square by square into another,
// and written from there. Both buffers stay in the L1 cache, whatever the operands' strides are. Without them, cache
// lines whose addresses differ by a power of two would evict each other.
#include "copy.h"

#include "../elementwise/stream.h"
#include "../matmul/transpose.h"

#include <algorithm>
#include <cstring>

namespace orchard::ORCHARD_ISA {
namespace {

// Elements per side: a row is at least two cache lines, and both buffers fit in the L1 cache.
template <class T> constexpr int64_t side = sizeof(T) == 1 ? 128 : sizeof(T) == 8 ? 32 : 64;

// to[c * side + r] = from[r * side + c], for a square of as many rows as a vector has lanes.
template <class T> inline void transpose_lanes(const T *from, T *to) {
  constexpr int part = 16 / int(sizeof(T));
  for (int first = 0; first < lanes<T>; first += part) {
    Vector<T> columns[part];
#pragma GCC unroll 16
    for (int r = 0; r < part; r++) columns[r] = load_parts(from + r * side<T> + first, part * side<T>);
    transpose_parts<T, part>(columns);
#pragma GCC unroll 16
    for (int c = 0; c < part; c++) store_vector<T>(columns[c], to + (first + c) * side<T>);
  }
}

// Copies `count` lines of `bytes` bytes; neither exceeds a side of the block.
template <class T>
inline void copy_lines(const char *from, int64_t from_stride, char *to, int64_t to_stride, int64_t count,
                       int64_t bytes) {
  constexpr int64_t most = side<T> * sizeof(T);
  if (bytes == most)
    for (int64_t line = 0; line < count; line++) std::memcpy(to + line * to_stride, from + line * from_stride, most);
  else
    for (int64_t line = 0; line < count; line++) std::memcpy(to + line * to_stride, from + line * from_stride, bytes);
}

// Copies the block into the buffer. The rows of the buffer are adjacent elements of the source.
template <class T> inline void read_block(const TransposeBlock &block, char *buffer) {
  const int64_t pitch = side<T> * sizeof(T), step = block.columns.from;
  if (step == sizeof(T))
    return copy_lines<T>(block.from, block.rows.from, buffer, pitch, block.rows.size, block.columns.size * sizeof(T));
  for (int64_t r = 0; r < block.rows.size; r++)
    for (int64_t c = 0; c < block.columns.size; c++)
      reinterpret_cast<T *>(buffer + r * pitch)[c] =
          *reinterpret_cast<const T *>(block.from + r * block.rows.from + c * step);
}

template <class T> void transpose_block(const TransposeBlock &block) {
  constexpr int64_t pitch = side<T> * sizeof(T);
  char memory[2 * side<T> * pitch + stream_line];
  char *in = memory + (-reinterpret_cast<uintptr_t>(memory)) % stream_line, *out = in + side<T> * pitch;
  const int64_t rows = block.rows.size, columns = block.columns.size, bytes = rows * sizeof(T);
  read_block<T>(block, in);
  for (int64_t r = 0; r < rows; r += lanes<T>)
    for (int64_t c = 0; c < columns; c += lanes<T>)
      transpose_lanes(reinterpret_cast<const T *>(in) + r * side<T> + c, reinterpret_cast<T *>(out) + c * side<T> + r);
  if (!block.is_streamed) return copy_lines<T>(out, pitch, block.to, block.columns.to, columns, bytes);
  auto stream = orchard::streams().copy;
  for (int64_t c = 0; c < columns; c++) stream(out + c * pitch, block.to + c * block.columns.to, bytes);
}

// Calls use(std::integral_constant<int64_t, count>{}) for a count of 1 to `few`; the last block of a long axis may have
// one element.
template <class Use> inline void with_few(int64_t count, Use use) {
  if (count == 1) use(std::integral_constant<int64_t, 1>{});
  else if (count == 2) use(std::integral_constant<int64_t, 2>{});
  else if (count == 3) use(std::integral_constant<int64_t, 3>{});
  else use(std::integral_constant<int64_t, few>{});
}

// to[l * to_stride + i] = from[l * from_stride + i * step] for i < count.
template <class T, class Count>
inline void gather_few(const T *from, int64_t from_stride, int64_t step, T *to, int64_t to_stride, int64_t lines,
                       Count count) {
  for (int64_t l = 0; l < lines; l++)
    for (int64_t i = 0; i < count; i++) to[l * to_stride + i] = from[l * from_stride + i * step];
}

// to[i * to_stride + l] = from[l * from_stride + i * step] for i < count.
template <class T, class Count>
inline void spread_few(const T *from, int64_t from_stride, int64_t step, T *to, int64_t to_stride, int64_t lines,
                       Count count) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t l = 0; l < lines; l++) to[i * to_stride + l] = from[l * from_stride + i * step];
}

template <class T> void transpose_few(const TransposeBlock &block) {
  const T *from = reinterpret_cast<const T *>(block.from);
  T *to = reinterpret_cast<T *>(block.to);
  constexpr int64_t size = sizeof(T);
  const int64_t down = block.rows.from / size, along = block.columns.from / size, across = block.columns.to / size;
  if (block.rows.size <= few)
    with_few(block.rows.size,
             [&](auto count) { gather_few(from, along, down, to, across, block.columns.size, count); });
  else
    with_few(block.columns.size,
             [&](auto count) { spread_few(from, down, along, to, across, block.rows.size, count); });
}

} // namespace

extern const Transposes transposes = {
    {side<uint8_t>, side<uint16_t>, side<uint32_t>, side<uint64_t>},
    {transpose_block<uint8_t>, transpose_block<uint16_t>, transpose_block<uint32_t>, transpose_block<uint64_t>},
    {transpose_few<uint8_t>, transpose_few<uint16_t>, transpose_few<uint32_t>, transpose_few<uint64_t>}};

} // namespace orchard::ORCHARD_ISA
