// Factors one matrix at a time by blocks of Householder reflections.
#pragma once

#include "batches.h"
#include "reflections.h"
#include "tuning.h"

namespace orchard {

inline int64_t block_width(int64_t reflections) { return reflections <= 64 ? narrow_block : wide_block; }

// Computes with blocks of reflections of up to `rows` rows, in scratch memory from the caller. Uses all threads if
// `tiles` has a part for each, else only the calling thread.
template <class T> class BlockedQr {
public:
  static int64_t elements(int64_t rows, int64_t reflections) {
    return Block<T>::elements(rows, block_width(reflections)) + factor_work(rows);
  }

  BlockedQr(int64_t rows, int64_t reflections, T *memory, ScratchParts<T> *tiles = nullptr)
      : width_(block_width(reflections)), memory_(memory), work_(memory + Block<T>::elements(rows, width_)),
        tiles_(tiles) {}

  // Factors A = Q R: replaces A by R and the vectors of the reflections.
  void factor(const Part<T> &a, T *tau) {
    const int64_t count = std::min(a.rows, a.columns);
    for (int64_t first = 0; first < count; first += width_) {
      const int64_t width = std::min(width_, count - first);
      kernels().factor(a.from(first, first).with_columns(width), tau + first, work_);
      if (first + width < a.columns) apply(pack(a, tau, first, width), a.from(first, first + width), true);
    }
  }

  // Writes the first columns of Q from `count` reflections stored in `a`. `a` and `q` may be the same matrix.
  void form(const Part<T> &a, const T *tau, int64_t count, const Part<T> &q) {
    for (int64_t row = 0; row < q.rows; row++)
      for (int64_t column = std::min(count, q.columns); column < q.columns; column++)
        q.data[row * q.stride + column] = T(row == column);
    for (int64_t first = last_block(count); first >= 0; first -= width_) {
      const int64_t width = std::min(width_, count - first);
      const Block<T> block = pack(a, tau, first, width);
      for (int64_t row = 0; row < q.rows; row++)
        for (int64_t column = first; column < std::min(first + width, q.columns); column++)
          q.data[row * q.stride + column] = T(row == column);
      if (first < q.columns) apply(block, q.from(first, first), false);
    }
  }

  // Replaces C by Q C or Qᵀ C.
  void multiply(const Part<T> &a, const T *tau, int64_t count, const Part<T> &c, bool transpose) {
    const auto step = [&](int64_t first) {
      apply(pack(a, tau, first, std::min(width_, count - first)), c.from(first, 0), transpose);
    };
    if (transpose)
      for (int64_t first = 0; first < count; first += width_) step(first);
    else
      for (int64_t first = last_block(count); first >= 0; first -= width_) step(first);
  }

private:
  static const ReflectionKernel<T> &kernels() { return reflection_kernels().of<T>(); }
  int64_t last_block(int64_t count) const { return count == 0 ? -1 : (count - 1) / width_ * width_; }

  Block<T> pack(const Part<T> &a, const T *tau, int64_t first, int64_t count) {
    const Part<T> part = a.from(first, first);
    const Block<T> block(memory_, part.rows, width_);
    kernels().pack({part.data, part.rows, count, part.stride}, tau + first, block, work_);
    return block;
  }

  void apply(const Block<T> &block, const Part<T> &c, bool transpose) {
    if (!tiles_) return kernels().apply(block, c, transpose, work_);
    const int64_t tiles = (c.columns + tile_columns - 1) / tile_columns;
    parallel_for(tiles, 1, [&](int64_t begin, int64_t end) {
      typename ScratchParts<T>::Part scratch(*tiles_);
      const int64_t first = begin * tile_columns, columns = std::min(c.columns, end * tile_columns) - first;
      kernels().apply(block, c.from(0, first).with_columns(columns), transpose, scratch.data());
    });
  }

  int64_t width_;
  T *memory_, *work_;
  ScratchParts<T> *tiles_;
};

// Calls body(matrix, qr, scratch) for each matrix of a batch, with up to `rows` rows and `reflections` reflections.
// `scratch` has `elements` elements. If there are fewer matrices than threads and each is large, all threads share each
// matrix.
template <class T, class Body>
void for_each_qr(int64_t batch, int64_t rows, int64_t reflections, int64_t operations, int64_t elements, Body &&body) {
  const int64_t qr_elements = BlockedQr<T>::elements(rows, reflections);
  if (batch >= thread_count() || operations < tuning::qr::divided_operations)
    return for_each_matrix<T>(batch, operations, qr_elements + elements, [&](int64_t matrix, T *scratch) {
      BlockedQr<T> qr(rows, reflections, scratch + elements);
      body(matrix, qr, scratch);
    });
  Scratch<T> scratch(qr_elements + elements);
  ScratchParts<T> tiles(thread_count(), apply_work(rows));
  for (int64_t matrix = 0; matrix < batch; matrix++) {
    BlockedQr<T> qr(rows, reflections, scratch.data() + elements, &tiles);
    body(matrix, qr, scratch.data());
  }
}

} // namespace orchard
