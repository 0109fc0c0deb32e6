#include "recurrent.h"

#include "../elementwise/math.h"
#include "../independent.h"
#include "../matmul/transpose.h"
#include "../parallel.h"
#include "../tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::recurrent::chunk;
using tuning::recurrent::task_numbers;

// The numbers of one row, from a column on.
template <class T> struct RecurrentRow {
  const T *inputs, *sums, *hidden, *cell;
  T *next, *next_cell;
  int64_t size, count; // of a gate, and of the numbers to compute
};

// i, f, g, o = σ, σ, tanh, σ of the sums;  c ← f c + i g,  h ← o tanh(c)
template <class T> struct Lstm {
  static void row(const RecurrentRow<T> &r) {
    const T *write = r.sums, *forget = write + r.size, *candidate = forget + r.size, *shown = candidate + r.size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < r.count; i++) {
      const T next = sigmoid(forget[i]) * r.cell[i] + sigmoid(write[i]) * tanh(candidate[i]);
      r.next_cell[i] = next;
      r.next[i] = sigmoid(shown[i]) * tanh(next);
    }
  }
};

// r, z = σ(x + s),  n = tanh(x + r s),  h ← n + z (h − n)
template <class T> struct Gru {
  static void row(const RecurrentRow<T> &r) {
    const T *x = r.inputs, *s = r.sums;
    const int64_t size = r.size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < r.count; i++) {
      const T reset = sigmoid(x[i] + s[i]), update = sigmoid(x[size + i] + s[size + i]),
              candidate = tanh(x[2 * size + i] + reset * s[2 * size + i]);
      r.next[i] = candidate + update * (r.hidden[i] - candidate);
    }
  }
};

template <class T> struct Tanh {
  static void row(const RecurrentRow<T> &r) {
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < r.count; i++) r.next[i] = tanh(r.sums[i]);
  }
};

template <class T> struct Relu {
  static void row(const RecurrentRow<T> &r) {
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < r.count; i++) r.next[i] =
        r.sums[i] < 0 ? T(0) : r.sums[i]; // NaN stays NaN
  }
};

template <class T> inline T *moved(char *data, int64_t by) { return data ? reinterpret_cast<T *>(data) + by : nullptr; }
template <class T> inline const T *moved(const char *data, int64_t by) {
  return data ? reinterpret_cast<const T *>(data) + by : nullptr;
}

template <class T, class Kind> void activate(const RecurrentStep &step) {
  const int64_t chunks = (step.size - 1) / chunk + 1;
  parallel_for(step.batch * chunks, std::max<int64_t>(1, task_numbers / std::min(step.size, chunk)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end; at++) {
                   const int64_t row = at / chunks, first = at % chunks * chunk;
                   Kind::row({moved<T>(step.inputs, row * step.inputs_stride + first),
                              moved<T>(step.sums, row * step.sums_stride + first),
                              moved<T>(step.hidden, row * step.hidden_stride + first),
                              moved<T>(step.cell, row * step.cell_stride + first),
                              moved<T>(step.next, row * step.next_stride + first),
                              moved<T>(step.next_cell, row * step.next_cell_stride + first), step.size,
                              std::min(chunk, step.size - first)});
                 }
               });
}

template <class T> void transpose_matrix(const char *from, int64_t stride, int64_t rows, int64_t columns, char *to) {
  const T *in = reinterpret_cast<const T *>(from);
  T *out = reinterpret_cast<T *>(to);
  constexpr int64_t side = lanes<T>;
  const int64_t strips = (rows - 1) / side + 1;
  parallel_for(strips, std::max<int64_t>(1, (1 << 14) / (side * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * side; row < std::min(end * side, rows); row += side) {
      int64_t column = 0;
      if (row + side <= rows)
        for (; column + side <= columns; column += side)
          transpose_square(in + row * stride + column, stride, out + column * rows + row, rows);
      for (; column < columns; column++)
        for (int64_t r = row; r < std::min(row + side, rows); r++) out[column * rows + r] = in[r * stride + column];
    }
  });
}

} // namespace

static_assert(static_cast<int>(RecurrentKind::count) == 4, "each kind needs its functions");
extern const RecurrentKernels recurrent_kernels = {{{activate<double, Lstm<double>>, activate<float, Lstm<float>>},
                                                    {activate<double, Gru<double>>, activate<float, Gru<float>>},
                                                    {activate<double, Tanh<double>>, activate<float, Tanh<float>>},
                                                    {activate<double, Relu<double>>, activate<float, Relu<float>>}},
                                                   {transpose_matrix<double>, transpose_matrix<float>}};

} // namespace orchard::ORCHARD_ISA
