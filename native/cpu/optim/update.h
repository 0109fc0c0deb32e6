// A step of an optimizer over the elements of a parameter: the rules of src/optim/rules.ts.
#pragma once

#include "../block.h"

namespace orchard {

// In the order of `ruleNames` in src/optim/rules.ts.
enum class UpdateRule : int { sgd, sgd_momentum, sgd_nesterov, adam, adam_amsgrad, lion };
inline constexpr int update_rule_count = 6;

// What each rule remembers of an element, in planes of the state; the master weights follow.
inline constexpr int update_planes[update_rule_count] = {0, 1, 1, 2, 3, 1};

// In the order of `coefficientNames` there.
struct UpdateCoefficients {
  double sign, l2, shrink, step_size, keep, take1, take2, root, eps;
};

// Adjacent elements of a parameter. What is before may be what is after.
struct UpdateElements {
  UpdateRule rule;
  bool has_master;
  DType dtype, gradient_dtype;
  UpdateCoefficients coefficients;
  const char *state_before; // of the first element, in the first plane
  char *state_after;
  int64_t plane; // elements from one plane to the next
  const char *before, *gradient;
  char *after;
  int64_t count;
};

// Parameters that are float64, and others.
struct Updates {
  void (*wide)(const UpdateElements &);
  void (*narrow)(const UpdateElements &);
};

} // namespace orchard

ORCHARD_ISA_TABLE(Updates, updates)
