// One optimizer step for the elements of a parameter, by the rules of src/optim/rules.ts.
#pragma once

// One parameter.
// - dtype, gradient_dtype: the gradient is float64 if and only if its parameter is
// - plane: distance between planes of the state, in elements
// - start: first element, in each plane
#include "../../.build/generated/update_block.h"

#include "../block.h"

namespace orchard {

// Returns the number of state planes of a rule. The master weights, if any, follow them.
constexpr int update_planes(UpdateRule rule) {
  switch (rule) {
  case UpdateRule::sgd: return 0;
  case UpdateRule::sgdMomentum:
  case UpdateRule::sgdNesterov:
  case UpdateRule::lion:
  case UpdateRule::rmsprop:
  case UpdateRule::adagrad: return 1;
  case UpdateRule::adam:
  case UpdateRule::rmspropMomentum:
  case UpdateRule::rmspropCentered:
  case UpdateRule::adadelta:
  case UpdateRule::adamax:
  case UpdateRule::nadam:
  case UpdateRule::radam: return 2;
  case UpdateRule::adamAmsgrad:
  case UpdateRule::rmspropCenteredMomentum: return 3;
  case UpdateRule::count: break;
  }
  return 0;
}

struct UpdateCoefficients {
  double sign, l2, decoupled_decay, step_size, momentum, one_minus_beta1, one_minus_beta2, bias_correction, eps;
};

// Adjacent elements of a parameter. Inputs and outputs may be the same memory.
struct UpdateElements {
  UpdateRule rule;
  bool has_master;
  DType dtype, gradient_dtype;
  UpdateCoefficients coefficients;
  const char *state_before; // state of the first element in the first plane
  char *state_after;
  int64_t plane; // distance between planes, in elements
  const char *before, *gradient;
  char *after;
  int64_t count;
};

// `wide` is for float64 parameters, `narrow` for others.
struct Updates {
  void (*wide)(const UpdateElements &);
  void (*narrow)(const UpdateElements &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Updates, updates)
