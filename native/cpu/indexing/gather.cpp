// The function "gather". Elements are moved as bits, so only their size matters.
#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "../streamed.h"
#include "indexing.h"
#include "indices.h"
#include "row_walk.h"
#include "tuning.h"

#include <cstring>

using namespace orchard;

namespace {

using namespace tuning::indexing;
enum Operand { from_x, from_index, to_out };

template <class T>
void copy_run(const T *from, int64_t from_stride, T *to, int64_t to_stride, int64_t length, bool is_streamed) {
  const int64_t bytes = length * int64_t(sizeof(T));
  if (from_stride == 1 && to_stride == 1) {
    if (is_streamed && bytes >= least_streamed_row) ORCHARD_ISA::stream_row(from, to, bytes);
    else std::memcpy(to, from, bytes);
    return;
  }
  for (int64_t i = 0; i < length; i++) to[i * to_stride] = from[i * from_stride];
}

void fetch_row(const void *row, int64_t bytes) {
  for (int64_t at = 0; at < std::min(bytes, fetched_bytes); at += stream_line)
    __builtin_prefetch(static_cast<const char *>(row) + at);
}

// The indexed axis. `added` is its size if negative indices count from the end, and otherwise 0.
struct Axis {
  int64_t size, stride, added;

  int64_t place(int64_t index) const { return index + (index < 0 ? added : 0); }
};

template <class T, class Index>
void gather_elements(const Nest<3> &nest, const Axis &axis, const T *x, const Index *index, T *out, int64_t begin,
                     int64_t end, bool is_streamed, BadIndex &bad) {
  int64_t x_stride = nest.run_stride(from_x), index_stride = nest.run_stride(from_index),
          out_stride = nest.run_stride(to_out);
  walk_runs(nest, begin, end,
            [&](const int64_t (&offsets)[3], int64_t first, int64_t length, const int64_t (&next)[3]) {
              const T *from = x + offsets[from_x];
              const Index *at = index + offsets[from_index];
              T *to = out + offsets[to_out];
              if (index_stride == 0) {
                const int64_t only = axis.place(*at);
                if (!is_in_range(only, axis.size)) return bad.set(*at);
                if (x_stride == 1 && length >= least_fetched && first + length < end) {
                  const int64_t row = axis.place(index[next[from_index]]);
                  if (is_in_range(row, axis.size))
                    fetch_row(x + next[from_x] + row * axis.stride, length * int64_t(sizeof(T)));
                }
                return copy_run(from + only * axis.stride, x_stride, to, out_stride, length, is_streamed);
              }
              for (int64_t i = 0; i < length; i++) {
                const int64_t given = at[i * index_stride], place = axis.place(given);
                if (__builtin_expect(!is_in_range(place, axis.size), false)) return bad.set(given);
                to[i * out_stride] = from[i * x_stride + place * axis.stride];
              }
            });
}

// Indices along the innermost axis that are the same for all runs, as in indexSelect: checked, and turned into offsets,
// once instead of for each run.
class SharedIndices {
public:
  template <class Index>
  SharedIndices(const Nest<3> &nest, const Axis &axis, const Index *index, BadIndex &bad)
      : offsets_(are_shared(nest) ? nest.run_length() : 0) {
    if (!are_shared(nest)) return;
    for (int64_t i = 0; i < nest.run_length(); i++) {
      const int64_t given = index[i * nest.run_stride(from_index)], place = axis.place(given);
      if (!is_in_range(place, axis.size)) {
        bad.set(given);
        return;
      }
      offsets_.data()[i] = place * axis.stride + i * nest.run_stride(from_x);
    }
    are_valid_ = true;
  }

  bool are_valid() const { return are_valid_; }

  template <class T> void gather(const Nest<3> &nest, const T *x, T *out, int64_t begin, int64_t end) const {
    const int next = nest.rank - 2;
    const int64_t *offsets = offsets_.data(), out_stride = nest.run_stride(to_out), run = nest.run_length();
    for (int64_t at = begin; at < end;) {
      int64_t places[3];
      nest.find_offsets(at / run * run, places);
      // the runs along the next axis, whose places follow without divisions
      for (int64_t left = nest.shape[next] - at / run % nest.shape[next]; left > 0 && at < end; left--) {
        const int64_t first = at % run, last = std::min(run, first + end - at);
        const T *from = x + places[from_x];
        T *to = out + places[to_out];
        for (int64_t i = first; i < last; i++) to[i * out_stride] = from[offsets[i]];
        places[from_x] += nest.strides[from_x][next], places[to_out] += nest.strides[to_out][next];
        at += last - first;
      }
    }
  }

private:
  static bool are_shared(const Nest<3> &nest) {
    bool is_shared = nest.rank > 1 && nest.run_stride(from_index) != 0 && nest.run_length() <= most_shared;
    for (int axis = 0; axis + 1 < nest.rank; axis++) is_shared = is_shared && nest.strides[from_index][axis] == 0;
    return is_shared && nest.count() > nest.run_length();
  }

  mutable Scratch<int64_t> offsets_;
  bool are_valid_ = false;
};

template <class Use> void with_size(int64_t bytes, Use &&use) {
  switch (bytes) {
  case 1: return use(Type<uint8_t>{});
  case 2: return use(Type<uint16_t>{});
  case 4: return use(Type<uint32_t>{});
  default: return use(Type<uint64_t>{});
  }
}

// out[…, i, …] = x[…, index[…, i, …], …]
void gather(const GatherBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Nest<3> nest = block.nest;
  const int64_t size = block.size;
  const Axis axis{size, block.stride, block.wraps ? size : 0};
  const char *x =
      operands.input(from_x, dtype, block.offsets[from_x], nest.extent(from_x).along(axis.size, axis.stride));
  char *out = operands.result(to_out, dtype, block.offsets[to_out], nest.extent(to_out));
  BadIndex bad;
  auto gather_by = [&](auto *indices) {
    with_size(dtype_sizes[static_cast<int>(dtype)], [&](auto type) {
      using T = typename decltype(type)::type;
      const bool streams_rows = is_streamed(nest.count() * int64_t(sizeof(T)));
      const bool copies_rows = nest.run_stride(from_index) == 0 && nest.run_length() >= least_fetched;
      const int64_t grain = copies_rows ? gather_bytes / int64_t(sizeof(T)) : gathered_elements;
      const SharedIndices shared(nest, axis, indices, bad);
      parallel_for(nest.count(), grain, [&](int64_t begin, int64_t end) {
        if (shared.are_valid())
          return shared.gather(nest, reinterpret_cast<const T *>(x), reinterpret_cast<T *>(out), begin, end);
        gather_elements(nest, axis, reinterpret_cast<const T *>(x), indices, reinterpret_cast<T *>(out), begin, end,
                        streams_rows, bad);
        if (streams_rows) streams().finish();
      });
    });
  };
  with_indices(operands, from_index, block.index_dtype, block.offsets[from_index], nest.extent(from_index), gather_by);
  bad.check(axis.size);
}

ORCHARD_FUNCTION("gather", gather, GatherBlock, 3)

} // namespace
