// The function "renorm". Sums are in float64 and rounded once, in an order that does not depend on the number of
// threads.
#include "renorm.h"

#include "../functions.h"
#include "../memory.h"
#include "../parallel.h"
#include "tuning.h"

#include <algorithm>

using namespace orchard;

namespace {

using tuning::distance::renorm_task_elements;
using tuning::distance::shortest_renorm_run;

struct RenormProblem {
  DType dtype;
  int64_t outer, count, inner;
  double order, largest, eps;
  const char *x;
  char *out;
  const RenormKernels &kernels;

  const char *from(int64_t at) const { return element(x, dtype, at); }
  char *to(int64_t at) const { return element(out, dtype, at); }

  double factor_of(double total) const {
    return dtype == DType::float64 ? ORCHARD_ISA::renorm_factor<double>(total, order, largest, eps)
                                   : ORCHARD_ISA::renorm_factor<float>(total, order, largest, eps);
  }
  double joined(double total, double part) const {
    if (!std::isinf(order)) return total + part;
    return part > total || part != part ? part : total;
  }
};

// Slices of long runs: each is summed and scaled at once.
void by_slices(const RenormProblem &all) {
  const int64_t of_slice = all.outer * all.inner;
  parallel_for(all.count, std::max<int64_t>(1, renorm_task_elements / of_slice), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * all.inner;
    if (all.outer == 1)
      return all.kernels.rows(all.from(first), all.to(first), end - begin, all.inner, all.order, all.largest, all.eps);
    for (int64_t slice = begin; slice < end; slice++) {
      double total = 0;
      for (int64_t i = 0; i < all.outer; i++)
        total =
            all.joined(total, all.kernels.part(all.from((i * all.count + slice) * all.inner), all.inner, all.order));
      const double factor = all.factor_of(total);
      for (int64_t i = 0; i < all.outer; i++) {
        const int64_t at = (i * all.count + slice) * all.inner;
        all.kernels.scale(all.from(at), all.to(at), all.inner, factor);
      }
    }
  });
}

// Slices of short runs: a task sums the columns of some slices over all rows.
void by_rows(const RenormProblem &all) {
  const int64_t row = all.count * all.inner;
  Scratch<double> sums(row), factors(all.count);
  const int64_t slices =
      std::max<int64_t>(1, std::max<int64_t>(renorm_task_elements / all.outer, shortest_renorm_run) / all.inner);
  parallel_for(all.count, slices, [&](int64_t begin, int64_t end) {
    double *of_task = sums.data() + begin * all.inner;
    const int64_t width = (end - begin) * all.inner;
    std::fill_n(of_task, width, 0.0);
    for (int64_t i = 0; i < all.outer; i++)
      all.kernels.add_row(all.from(i * row + begin * all.inner), width, all.order, of_task);
    for (int64_t slice = begin; slice < end; slice++) {
      double total = sums.data()[slice * all.inner];
      for (int64_t k = 1; k < all.inner; k++) total = all.joined(total, sums.data()[slice * all.inner + k]);
      factors.data()[slice] = all.factor_of(total);
    }
    for (int64_t i = 0; i < all.outer; i++) {
      const int64_t at = i * row + begin * all.inner;
      all.kernels.scale_row(all.from(at), all.to(at), width, all.inner, factors.data() + begin);
    }
  });
}

void renorm(const RenormBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const int64_t outer = block.outer, count = block.count, inner = block.inner;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  const Extent extent = Extent(inner).along(count, inner).along(outer, scratch_product({count, inner}));
  const char *x = operands.input(0, dtype, block.offsets[0], extent);
  char *out = operands.result(1, dtype, block.offsets[1], extent);
  if (extent.is_empty()) return;
  const RenormProblem problem{dtype,         outer,     count, inner, block.order,
                              block.largest, block.eps, x,     out,   renorms().kernels[static_cast<int>(dtype)]};
  if (inner >= shortest_renorm_run || outer == 1) by_slices(problem);
  else by_rows(problem);
}

ORCHARD_FUNCTION("renorm", renorm, RenormBlock, 2)

} // namespace
