#include "runs.h"

#include "../linalg/vectors.h"

namespace orchard::ORCHARD_ISA {
namespace {

template <class T> void add_multiple(T *__restrict to, const T *__restrict from, T factor, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

template <class T> void add(T *__restrict to, const T *__restrict from, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

template <class T> T product(const T *x, const T *y, int64_t count) { return dot(x, y, count); }

} // namespace

extern const RunKernels run_kernels = {{add_multiple<double>, add<double>, product<double>},
                                       {add_multiple<float>, add<float>, product<float>}};

} // namespace orchard::ORCHARD_ISA
