#include "scatter.h"

namespace orchard::ORCHARD_ISA {
namespace {

// For each element, multiplies the product of the elements before it, in order, by the product of those after it.
template <class T, class Index> void find_others(const Scatter &scatter, const ScatterPart &part) {
  const Index *index = static_cast<const Index *>(part.index);
  const T *source = static_cast<const T *>(part.source), *x = static_cast<const T *>(part.x);
  T *out = static_cast<T *>(part.out);
  const int64_t count = part.count;
  double *running = part.sums, *before = part.sums + scatter.size * count;
  int64_t across[4];
  for (int operand = 0; operand < 4; operand++) across[operand] = scatter.slices.run_stride(operand);
  const auto at = [&](ScatterOperand operand, int64_t step, int64_t slice) {
    return step * scatter.strides[operand] + slice * across[operand];
  };
  for (int64_t place = 0; place < scatter.size; place++)
    for (int64_t slice = 0; slice < count; slice++)
      running[place * count + slice] = scatter.includes_self ? double(x[at(scatter_x, place, slice)]) : 1.0;
  for (int64_t step = 0; step < scatter.length; step++)
    for (int64_t slice = 0; slice < count; slice++) {
      const int64_t place = index[at(scatter_index, step, slice)];
      if (uint64_t(place) >= uint64_t(scatter.size)) return part.refuse(part.bad, place);
      double &product = running[place * count + slice];
      before[step * count + slice] = product;
      product *= double(source[at(scatter_source, step, slice)]);
    }
  std::fill_n(running, scatter.size * count, 1.0);
  for (int64_t step = scatter.length - 1; step >= 0; step--)
    for (int64_t slice = 0; slice < count; slice++) {
      const int64_t place = index[at(scatter_index, step, slice)];
      if (uint64_t(place) >= uint64_t(scatter.size)) return part.refuse(part.bad, place);
      double &product = running[place * count + slice];
      out[at(scatter_out, step, slice)] = static_cast<T>(before[step * count + slice] * product);
      product *= double(source[at(scatter_source, step, slice)]);
    }
}

} // namespace

extern const ScatterOthersKernels scatter_others_kernels = {
    {{find_others<float, int64_t>, find_others<float, int32_t>},
     {find_others<double, int64_t>, find_others<double, int32_t>}}};

} // namespace orchard::ORCHARD_ISA
