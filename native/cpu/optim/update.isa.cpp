#include "update.h"

#include "../lanes.h"
#include "../independent.h"
#include "../tuning.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

using tuning::optim::tile;

// The number of elements that are converted at once: a tile fits in the L1 cache.

template <class C> struct Rounded {
  C sign, l2, decoupled_decay, step_size, momentum, one_minus_beta1, one_minus_beta2, bias_correction, eps;
  explicit Rounded(const UpdateCoefficients &k)
      : sign(C(k.sign)), l2(C(k.l2)), decoupled_decay(C(k.decoupled_decay)), step_size(C(k.step_size)),
        momentum(C(k.momentum)), one_minus_beta1(C(k.one_minus_beta1)), one_minus_beta2(C(k.one_minus_beta2)),
        bias_correction(C(k.bias_correction)), eps(C(k.eps)) {}
};

// Returns a moving average in which the new value has weight 1 - β.
template <class C> inline C averaged(C x, C one_minus_beta, C g) { return x + one_minus_beta * (g - x); }

template <class C> inline C sign_of(C x) { return C(x > C(0)) - C(x < C(0)) + (x - x); } // NaN stays NaN

// Returns g divided by the root of the moving average of its squares, or of its variance if `centered`; with momentum
// unless `momentum` is null.
template <bool centered, class C> inline C root_mean_square(C g, C &v, C &m, C *momentum, const Rounded<C> &k) {
  v = averaged(v, k.one_minus_beta2, C(g * g));
  C square = v;
  if constexpr (centered) {
    m = averaged(m, k.one_minus_beta2, g);
    square = larger(C(v - m * m), C(0)); // rounding may make the difference negative
  }
  const C d = g / (std::sqrt(square) + k.eps);
  return momentum ? (*momentum = k.momentum * *momentum + d) : d;
}

// Returns the step d of an element with gradient g, and updates the state.
template <UpdateRule rule, class C> inline C step_of(C g, C (&state)[3], const Rounded<C> &k) {
  C &m = state[0], &v = state[1], &largest = state[2];
  if constexpr (rule == UpdateRule::sgd) return g;
  else if constexpr (rule == UpdateRule::sgdMomentum || rule == UpdateRule::sgdNesterov) {
    m = k.momentum * m + k.one_minus_beta1 * g;
    return rule == UpdateRule::sgdNesterov ? g + k.momentum * m : m;
  } else if constexpr (rule == UpdateRule::lion) {
    C d = sign_of(averaged(m, k.one_minus_beta1, g));
    m = averaged(m, k.one_minus_beta2, g);
    return d;
  } else if constexpr (rule == UpdateRule::rmsprop) {
    return root_mean_square<false>(g, m, v, static_cast<C *>(nullptr), k);
  } else if constexpr (rule == UpdateRule::rmspropMomentum) {
    return root_mean_square<false>(g, m, largest, &v, k);
  } else if constexpr (rule == UpdateRule::rmspropCentered) {
    return root_mean_square<true>(g, m, v, static_cast<C *>(nullptr), k);
  } else if constexpr (rule == UpdateRule::rmspropCenteredMomentum) {
    return root_mean_square<true>(g, m, v, &largest, k);
  } else if constexpr (rule == UpdateRule::adagrad) {
    m = m + g * g;
    return g / (std::sqrt(m) + k.eps);
  } else if constexpr (rule == UpdateRule::adadelta) {
    m = averaged(m, k.one_minus_beta2, C(g * g));
    const C d = std::sqrt(v + k.eps) / std::sqrt(m + k.eps) * g;
    v = averaged(v, k.one_minus_beta2, C(d * d));
    return d;
  } else if constexpr (rule == UpdateRule::adamax) {
    m = averaged(m, k.one_minus_beta1, g);
    v = larger(C(k.momentum * v), C(std::abs(g) + k.eps));
    return m / v;
  } else if constexpr (rule == UpdateRule::nadam) {
    m = averaged(m, k.one_minus_beta1, g);
    v = averaged(v, k.one_minus_beta2, C(g * g));
    return (m + k.momentum * g) / (std::sqrt(v) * k.bias_correction + k.eps);
  } else if constexpr (rule == UpdateRule::radam) {
    m = averaged(m, k.one_minus_beta1, g);
    v = averaged(v, k.one_minus_beta2, C(g * g));
    return m / (k.bias_correction == C(0) ? C(1) : std::sqrt(v) + k.eps);
  } else {
    static_assert(rule == UpdateRule::adam || rule == UpdateRule::adamAmsgrad);
    m = averaged(m, k.one_minus_beta1, g);
    v = averaged(v, k.one_minus_beta2, C(g * g));
    if constexpr (rule == UpdateRule::adamAmsgrad) largest = larger(largest, v);
    return m / (std::sqrt(rule == UpdateRule::adamAmsgrad ? largest : v) * k.bias_correction + k.eps);
  }
}

// Elements in the compute type. Inputs and outputs may be the same memory.
template <class C> struct Wide {
  const C *p, *g;
  C *after;
  const C *state[3];
  C *next[3];
};

// One loop computes everything, so that loads overlap with divisions and square roots.
template <UpdateRule rule, class C> void step(const Wide<C> wide, const Rounded<C> k, int64_t count) {
  constexpr int planes = update_planes(rule);
  const C *p = wide.p, *g = wide.g;
  C *after = wide.after;
  ORCHARD_INDEPENDENT
  for (int64_t i = 0; i < count; i++) {
    C state[3];
    for (int plane = 0; plane < planes; plane++) state[plane] = wide.state[plane][i];
    C d = step_of<rule>(C(k.sign * g[i] + k.l2 * p[i]), state, k);
    after[i] = p[i] - (k.decoupled_decay * p[i] + k.step_size * d);
    for (int plane = 0; plane < planes; plane++) wide.next[plane][i] = state[plane];
  }
}

template <class C> using Step = void (*)(Wide<C>, Rounded<C>, int64_t);
template <class C> Step<C> step_by(UpdateRule rule) {
  switch (rule) {
  case UpdateRule::sgd: return step<UpdateRule::sgd, C>;
  case UpdateRule::sgdMomentum: return step<UpdateRule::sgdMomentum, C>;
  case UpdateRule::sgdNesterov: return step<UpdateRule::sgdNesterov, C>;
  case UpdateRule::adam: return step<UpdateRule::adam, C>;
  case UpdateRule::adamAmsgrad: return step<UpdateRule::adamAmsgrad, C>;
  case UpdateRule::lion: return step<UpdateRule::lion, C>;
  case UpdateRule::rmsprop: return step<UpdateRule::rmsprop, C>;
  case UpdateRule::rmspropMomentum: return step<UpdateRule::rmspropMomentum, C>;
  case UpdateRule::rmspropCentered: return step<UpdateRule::rmspropCentered, C>;
  case UpdateRule::rmspropCenteredMomentum: return step<UpdateRule::rmspropCenteredMomentum, C>;
  case UpdateRule::adagrad: return step<UpdateRule::adagrad, C>;
  case UpdateRule::adadelta: return step<UpdateRule::adadelta, C>;
  case UpdateRule::adamax: return step<UpdateRule::adamax, C>;
  case UpdateRule::nadam: return step<UpdateRule::nadam, C>;
  case UpdateRule::radam: return step<UpdateRule::radam, C>;
  case UpdateRule::count: break;
  }
  return nullptr;
}

// Calls use(Type<storage>{}) for a dtype whose compute type is C.
template <class C, class Use> void with_float(DType dtype, Use use) {
  if constexpr (std::is_same_v<C, double>) use(Type<double>{});
  else if (dtype == DType::float32) use(Type<float>{});
  else if (dtype == DType::float16) use(Type<Float16>{});
  else use(Type<BFloat16>{});
}

template <class C> constexpr bool is_computed(DType dtype) {
  return dtype == (std::is_same_v<C, double> ? DType::float64 : DType::float32);
}

template <class C> C *read(DType dtype, const char *elements, int64_t start, C *out, int64_t count) {
  with_float<C>(dtype, [=](auto type) {
    using T = typename decltype(type)::type;
    widen(reinterpret_cast<const T *>(elements) + start, out, count);
  });
  return out;
}

template <class C> void write(DType dtype, const C *in, char *elements, int64_t start, int64_t count) {
  with_float<C>(dtype, [=](auto type) {
    using T = typename decltype(type)::type;
    narrow(in, reinterpret_cast<T *>(elements) + start, count);
  });
}

// Updates adjacent elements from `start` on. If some are stored in another type and need conversion, `count` is at most
// a tile.
template <class C> void update_some(const UpdateElements &u, Step<C> step, int64_t start, int64_t count) {
  C p[tile], g[tile];
  const bool is_converted = !is_computed<C>(u.dtype);
  const int planes = update_planes(u.rule);
  const C *state = reinterpret_cast<const C *>(u.state_before) + start;
  C *next = reinterpret_cast<C *>(u.state_after) + start;
  Wide<C> wide{reinterpret_cast<const C *>(u.before) + start,
               reinterpret_cast<const C *>(u.gradient) + start,
               reinterpret_cast<C *>(u.after) + start,
               {},
               {}};
  for (int plane = 0; plane < planes; plane++) {
    wide.state[plane] = state + plane * u.plane;
    wide.next[plane] = next + plane * u.plane;
  }
  if (!is_computed<C>(u.gradient_dtype)) wide.g = read(u.gradient_dtype, u.gradient, start, g, count);
  if (u.has_master) wide.p = state + planes * u.plane, wide.after = next + planes * u.plane;
  else if (is_converted) wide.p = wide.after = read(u.dtype, u.before, start, p, count);
  step(wide, Rounded<C>(u.coefficients), count);
  if (is_converted || u.has_master) write(u.dtype, wide.after, u.after, start, count);
}

template <class C> void update(const UpdateElements &u) {
  const Step<C> step = step_by<C>(u.rule);
  if (is_computed<C>(u.dtype) && is_computed<C>(u.gradient_dtype) && !u.has_master)
    return update_some(u, step, 0, u.count);
  for (int64_t start = 0; start < u.count; start += tile) update_some(u, step, start, std::min(tile, u.count - start));
}

} // namespace

extern const Updates updates = {update<double>, update<float>};

} // namespace orchard::ORCHARD_ISA
