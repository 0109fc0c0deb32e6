#include "gradient.h"

#include "../elementwise/math.h"
#include "../independent.h"
#include "../parallel.h"
#include "../tuning.h"

#include <algorithm>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::recurrent::task_numbers;

template <class Body> void for_rows(int64_t batch, int64_t size, Body body) {
  parallel_for(batch, std::max<int64_t>(1, task_numbers / size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) body(row);
  });
}

template <class T> void open_gates(int64_t batch, int64_t size, T *gates, const T *cell, T *next) {
  for_rows(batch, size, [=](int64_t row) {
    T *write = gates + row * 4 * size, *forget = write + size, *candidate = forget + size, *shown = candidate + size;
    const T *before = cell + row * size;
    T *after = next + row * size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < size; i++) {
      const T opened = sigmoid(write[i]), kept = sigmoid(forget[i]), found = tanh(candidate[i]);
      after[i] = kept * before[i] + opened * found;
      write[i] = opened, forget[i] = kept, candidate[i] = found, shown[i] = sigmoid(shown[i]);
    }
  });
}

// With ċ = ∂c + ∂h o (1 − tanh² c):  ∂i = ċ g,  ∂f = ċ c₋₁,  ∂g = ċ i,  ∂o = ∂h tanh c,  ∂c₋₁ = ċ f; times the
// derivatives of the activations.
template <class T> void lstm_step(const RecurrentGradientStep<T> &s) {
  const int64_t size = s.size;
  for_rows(s.batch, size, [=](int64_t row) {
    T *write = s.gates + row * 4 * size, *forget = write + size, *candidate = forget + size, *shown = candidate + size;
    const T *before = s.cell_before + row * size, *after = s.cell_after + row * size;
    const T *gradient = s.gradient + row * size, *later = s.of_later + row * size;
    T *of_cell = s.of_cell + row * size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < size; i++) {
      const T of_state = gradient[i] + later[i], visible = tanh(after[i]);
      const T opened = write[i], kept = forget[i], found = candidate[i], seen = shown[i];
      const T total = of_cell[i] + of_state * seen * (1 - visible * visible);
      write[i] = total * found * opened * (1 - opened);
      forget[i] = total * before[i] * kept * (1 - kept);
      candidate[i] = total * opened * (1 - found * found);
      shown[i] = of_state * visible * seen * (1 - seen);
      of_cell[i] = total * kept;
    }
  });
}

// ∂n = ∂h (1 − z),  ∂z = ∂h (h₋₁ − n),  ∂r = ∂n (1 − n²) s; times the derivatives of the activations.
template <class T> void gru_step(const RecurrentGradientStep<T> &s) {
  const int64_t size = s.size;
  for_rows(s.batch, size, [=](int64_t row) {
    const T *x = s.inputs + row * 3 * size, *before = s.before + row * size;
    const T *gradient = s.gradient + row * size, *later = s.of_later + row * size;
    T *of_inputs = s.gates + row * 3 * size, *sums = s.sums + row * 3 * size, *direct = s.direct + row * size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < size; i++) {
      const T of_state = gradient[i] + later[i], sum = sums[2 * size + i];
      const T reset = sigmoid(x[i] + sums[i]), update = sigmoid(x[size + i] + sums[size + i]);
      const T candidate = tanh(x[2 * size + i] + reset * sum);
      const T of_candidate = of_state * (1 - update) * (1 - candidate * candidate);
      const T of_reset = of_candidate * sum * reset * (1 - reset);
      const T of_update = of_state * (before[i] - candidate) * update * (1 - update);
      of_inputs[i] = of_reset, of_inputs[size + i] = of_update, of_inputs[2 * size + i] = of_candidate;
      sums[i] = of_reset, sums[size + i] = of_update, sums[2 * size + i] = of_candidate * reset;
      direct[i] = of_state * update;
    }
  });
}

template <class T, bool is_tanh> void elman_step(const RecurrentGradientStep<T> &s) {
  const int64_t size = s.size;
  for_rows(s.batch, size, [=](int64_t row) {
    const T *after = s.after + row * size, *gradient = s.gradient + row * size, *later = s.of_later + row * size;
    T *out = s.gates + row * size;
    ORCHARD_INDEPENDENT for (int64_t i = 0; i < size; i++) {
      const T of_state = gradient[i] + later[i];
      out[i] = is_tanh ? of_state * (1 - after[i] * after[i]) : after[i] <= 0 ? T(0) : of_state;
    }
  });
}

template <class T> constexpr RecurrentGradientKernel<T> kernel() {
  return {open_gates<T>, {lstm_step<T>, gru_step<T>, elman_step<T, true>, elman_step<T, false>}};
}

} // namespace

extern const RecurrentGradientKernels recurrent_gradient_kernels = {kernel<double>(), kernel<float>()};

} // namespace orchard::ORCHARD_ISA
