// out[…, i, …] = x[…, index[…, i, …], …]. Elements are moved and never looked at, so a kernel knows only their size.
#include "../parallel.h"
#include "indices.h"
#include "nest.h"

using namespace orchard;

namespace {
constexpr int64_t grain = 1 << 15;
enum Operand { from_x, from_index, to_out };

struct Gather {
  Nest<3> nest; // of x, without the axis that is indexed; of the index; of out
  int64_t stride; // of x, along the axis that is indexed
};

template <class T>
void copy_run(const T *from, int64_t from_stride, T *to, int64_t to_stride, int64_t length) {
  if (from_stride == 1 && to_stride == 1) std::memcpy(to, from, length * sizeof(T));
  else
    for (int64_t i = 0; i < length; i++) to[i * to_stride] = from[i * from_stride];
}

template <class T, class Index>
void gather_elements(const Gather &gather, const T *x, const Index *index, T *out, int64_t begin, int64_t end) {
  const Nest<3> &nest = gather.nest;
  int64_t x_stride = nest.run_stride(from_x), index_stride = nest.run_stride(from_index), out_stride = nest.run_stride(to_out);
  for_each_run(nest, begin, end, [&](const int64_t(&places)[3], int64_t, int64_t length) {
    const T *from = x + places[from_x];
    const Index *at = index + places[from_index];
    T *to = out + places[to_out];
    if (index_stride == 0) return copy_run(from + int64_t(*at) * gather.stride, x_stride, to, out_stride, length);
    for (int64_t i = 0; i < length; i++)
      to[i * out_stride] = from[i * x_stride + int64_t(at[i * index_stride]) * gather.stride];
  });
}

template <class Use> void with_size(int64_t bytes, Use &&use) {
  switch (bytes) {
  case 1: return use(Type<uint8_t>{});
  case 2: return use(Type<uint16_t>{});
  case 4: return use(Type<uint32_t>{});
  default: return use(Type<uint64_t>{});
  }
}
} // namespace

int32_t orchard_cpu_gather(const double *block, const void *x, const void *index, void *out) {
  return guarded([&] {
    BlockReader reader(block);
    DType dtype = reader.dtype();
    DType index_dtype = reader.dtype();
    const char *source = element(x, dtype, reader.whole());
    int64_t index_offset = reader.whole();
    char *target = element(out, dtype, reader.whole());
    Gather gather;
    gather.stride = reader.whole();
    gather.nest = read_nest<3>(reader);
    with_indices(index_dtype, index, index_offset, [&](auto *indices) {
      with_size(dtype_sizes[static_cast<int>(dtype)], [&](auto type) {
        using T = typename decltype(type)::type;
        parallel_for(gather.nest.count(), grain, [&](int64_t begin, int64_t end) {
          gather_elements(gather, reinterpret_cast<const T *>(source), indices, reinterpret_cast<T *>(target), begin, end);
        });
      });
    });
  });
}
