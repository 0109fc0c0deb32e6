// The function "neighbors". Sums are in float64 and rounded once.
#include "trapezoid.h"

#include "../functions.h"
#include "../parallel.h"
#include "parts.h"
#include "tuning.h"

using namespace orchard;

namespace {

using namespace tuning::scan;

ORCHARD_EXPORT_NAMES(Neighbors)

// Integrals of a few long slices of adjacent samples, whose parts are computed by several threads.
void integrate_long_slices(const Slices<2> &slices, DType dtype, const char *y, char *out, double distance) {
  const auto total_of = neighbors_of().total[static_cast<int>(dtype)];
  const ComputeNeighbors compute = neighbors_of().run[static_cast<int>(dtype)];
  for (int64_t slice = 0; slice < slices.count(); slice++) {
    int64_t offsets[2];
    slices.find_offsets(slice, offsets);
    const auto at = [&](int64_t place) { return element(y, dtype, offsets[0] + place); };
    const auto total = [&](int64_t begin, int64_t count) { return total_of(at(begin), count); };
    const auto joined = [](double before, double next) { return before + next; };
    run_parts<double>(slices.length - 1, total, joined, [&](int64_t begin, int64_t count, double before) {
      char *to = element(out, dtype, offsets[1] + begin);
      compute({at(begin), to, count + 1, 1, {1, 1}, {0, 0}, Neighbors::integrals, distance, {}, before});
    });
  }
}

// Slopes of long slices of adjacent samples, whose parts are computed by several threads.
void slopes_of_long_slices(const Slices<2> &slices, DType dtype, const char *y, char *out, double distance) {
  const ComputeNeighbors compute = neighbors_of().run[static_cast<int>(dtype)];
  for (int64_t slice = 0; slice < slices.count(); slice++) {
    int64_t offsets[2];
    slices.find_offsets(slice, offsets);
    parallel_for(slices.length, trapezoid_elements, [&](int64_t begin, int64_t end) {
      const int64_t first = std::max<int64_t>(begin - 1, 0), last = std::min(end + 1, slices.length);
      compute({element(y, dtype, offsets[0] + first),
               element(out, dtype, offsets[1] + first),
               last - first,
               1,
               {1, 1},
               {0, 0},
               Neighbors::slopes,
               distance,
               {begin == 0, end == slices.length},
               0});
    });
  }
}

int64_t results_of(Neighbors function, int64_t length) {
  switch (function) {
  case Neighbors::integral: return 1;
  case Neighbors::slopes: return length;
  case Neighbors::integrals:
  case Neighbors::differences:
  case Neighbors::count: break;
  }
  return length - 1;
}

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
  char *out = operands.result(1, dtype, slices.offsets[1], slices.extent(1, results_of(function, length)));
  if (slices.is_empty()) return;
  if (slices.along[0] == 1 && slices.along[1] == 1 && length > long_slice && slices.count() < few_slices) {
    if (function == Neighbors::integrals) return integrate_long_slices(slices, dtype, y, out, distance);
    if (function == Neighbors::slopes) return slopes_of_long_slices(slices, dtype, y, out, distance);
  }
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
               distance,
               {true, true},
               0});
    });
  });
}

ORCHARD_FUNCTION("neighbors", neighbors, NeighborsBlock, 2)

} // namespace
