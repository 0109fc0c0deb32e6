// The function "neighbors". Sums are in float64 and rounded once.
#include "trapezoid.h"

#include "../functions.h"
#include "../parallel.h"
#include "tuning.h"

using namespace orchard;

namespace {

using tuning::scan::trapezoid_elements;

ORCHARD_EXPORT_NAMES(Neighbors)

void neighbors(const NeighborsBlock &block, Operands operands) {
  const DType dtype = block.dtype;
  const Slices<2> slices(block.slices);
  const Neighbors function = block.function;
  const double distance = block.distance;
  const int64_t length = slices.length;
  if (dtype > DType::bfloat16)
    fail(ORCHARD_CPU_UNSUPPORTED, std::string("expected floats, got ") + dtype_names[static_cast<int>(dtype)]);
  if (length < 2) fail(ORCHARD_CPU_INVALID_ARGUMENT, "expected slices of at least two samples");
  const char *y = operands.input(0, dtype, slices.offsets[0], slices.extent(0));
  char *out =
      operands.result(1, dtype, slices.offsets[1], slices.extent(1, function == Neighbors::integral ? 1 : length - 1));
  if (slices.is_empty()) return;
  const ComputeNeighbors compute = neighbors_of().run[static_cast<int>(dtype)];
  parallel_for(slices.count(), std::max<int64_t>(1, trapezoid_elements / length), [&](int64_t begin, int64_t end) {
    for_each_run(slices.nest, begin, end, [&](const int64_t (&offsets)[2], int64_t, int64_t count) {
      compute({element(y, dtype, offsets[0]),
               element(out, dtype, offsets[1]),
               length,
               count,
               {slices.along[0], slices.along[1]},
               {slices.nest.run_stride(0), slices.nest.run_stride(1)},
               function,
               distance});
    });
  });
}

ORCHARD_FUNCTION("neighbors", neighbors, NeighborsBlock, 2)

} // namespace
