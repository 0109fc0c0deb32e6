#include "finish.h"

#include "../elementwise/activations.h"
#include "../elementwise/gated.h"

#include <utility>

namespace orchard::ORCHARD_ISA {
namespace {

template <FinishActivation activation, class T> inline T activated(const Finish<T> &finish, T x) {
  if constexpr (activation == FinishActivation::relu) return x < T(0) ? T(0) : x;
  else if constexpr (activation == FinishActivation::leaky) return x < T(0) ? x * finish.alpha : x;
  else if constexpr (activation == FinishActivation::clamp) return clamped(x, finish.alpha, finish.beta);
  else if constexpr (activation == FinishActivation::sigmoid) return gate<LogisticShare>(x);
  else if constexpr (activation == FinishActivation::silu) return gated<LogisticShare>(x);
  else if constexpr (activation == FinishActivation::hardsigmoid)
    return clamped(x * finish.alpha + finish.beta, T(0), T(1));
  else if constexpr (activation == FinishActivation::hardswish) return x * hardsigmoid(x);
  else {
    static_assert(activation == FinishActivation::none, "an activation without a formula");
    return x;
  }
}

template <FinishActivation activation, class T>
void finish_row(const Finish<T> &finish, T bias, const T *__restrict added, T *__restrict y, int64_t count) {
  const Finish<T> local = finish;
  if (added)
    for (int64_t i = 0; i < count; i++)
      y[i] = activated<activation>(local, y[i] + bias + added[i]) * local.scale + local.shift;
  else
    for (int64_t i = 0; i < count; i++) y[i] = activated<activation>(local, y[i] + bias) * local.scale + local.shift;
}

template <class T, int... activation> constexpr FinishKernel<T> all(std::integer_sequence<int, activation...>) {
  return {{finish_row<FinishActivation(activation), T>...}};
}

constexpr auto every = std::make_integer_sequence<int, static_cast<int>(FinishActivation::count)>{};

} // namespace

extern const FinishKernels finish_kernels = {all<double>(every), all<float>(every)};

} // namespace orchard::ORCHARD_ISA
