#include "short_rows.h"

#include "../matmul/transpose.h"

namespace orchard::ORCHARD_ISA {
namespace {

// Fetches the next group of rows, if the rows are dense: many short streams are not fetched by the processor.
template <class T> inline void fetch(const T *next, int64_t count) {
  constexpr int64_t line = 64 / int64_t(sizeof(T));
  for (int64_t i = 0; i < count; i += line) __builtin_prefetch(next + i, 0, 3);
}

// Loads of whole vectors may reach beyond the end of the last row, so its group is copied one by one unless that memory
// may be read.
template <class T> void to_columns(const ShortRowsBlock &block, char *result) {
  constexpr int64_t excess = 16 / int64_t(sizeof(T)) - 1;
  const T *from = reinterpret_cast<const T *>(block.from);
  T *to = reinterpret_cast<T *>(result);
  const int64_t count = block.count, length = block.length, distance = block.distance;
  const auto is_readable = [&](int64_t after) { // the elements after the first `after` rows
    return after < count ? (count - after - 1) * distance + length >= excess : block.following >= excess;
  };
  int64_t row = 0;
  for (; row + lanes<T> <= count && is_readable(row + lanes<T>); row += lanes<T>) {
    fetch(from + (row + lanes<T>)*distance, lanes<T> * length);
    for (int64_t i = 0; i < length; i += lanes<T>)
      transpose_rows<T>([&](int r) { return from + (row + r) * distance + i; }, to + i * count + row, count,
                        length - i);
  }
  for (int64_t i = 0; i < length; i++)
    for (int64_t r = row; r < count; r++) to[i * count + r] = from[r * distance + i];
}

} // namespace

extern const ShortRowCopies short_row_copies = {
    {to_columns<uint8_t>, to_columns<uint16_t>, to_columns<uint32_t>, to_columns<uint64_t>}};

} // namespace orchard::ORCHARD_ISA
