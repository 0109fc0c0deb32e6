#include "update.h"

#include "../lanes.h"

#include <algorithm>
#include <cmath>

namespace orchard::ORCHARD_ISA {
namespace {

// Elements that are worked on at once: all of a tile stays in the first-level cache.
constexpr int64_t tile = 512;

// A tile in the compute type: the parameter, its gradient, then what step it takes, and its state.
template <class C> struct Tile {
  C p[tile], g[tile], d[tile], state[3][tile];
};

template <class C> struct Rounded {
  C sign, l2, decoupled_decay, step_size, momentum, one_minus_beta1, one_minus_beta2, bias_correction, eps;
  explicit Rounded(const UpdateCoefficients &k)
      : sign(C(k.sign)), l2(C(k.l2)), decoupled_decay(C(k.decoupled_decay)), step_size(C(k.step_size)),
        momentum(C(k.momentum)), one_minus_beta1(C(k.one_minus_beta1)), one_minus_beta2(C(k.one_minus_beta2)),
        bias_correction(C(k.bias_correction)), eps(C(k.eps)) {}
};

// A moving average with the weight 1 - β of the new value.
template <class C> inline C averaged(C x, C one_minus_beta, C g) { return x + one_minus_beta * (g - x); }

template <class C> void add_momentum(Tile<C> &t, const Rounded<C> &k, int64_t count) {
  for (int64_t i = 0; i < count; i++) t.state[0][i] = k.momentum * t.state[0][i] + k.one_minus_beta1 * t.g[i];
}

template <class C> void sgd_momentum(Tile<C> &t, const Rounded<C> &k, int64_t count) {
  add_momentum(t, k, count);
  std::copy_n(t.state[0], count, t.d);
}

template <class C> void sgd_nesterov(Tile<C> &t, const Rounded<C> &k, int64_t count) {
  add_momentum(t, k, count);
  for (int64_t i = 0; i < count; i++) t.d[i] = t.g[i] + k.momentum * t.state[0][i];
}

template <class C> void adam(Tile<C> &t, const Rounded<C> &k, int64_t count, bool has_largest) {
  C *m = t.state[0], *v = t.state[1];
  for (int64_t i = 0; i < count; i++) m[i] = averaged(m[i], k.one_minus_beta1, t.g[i]);
  for (int64_t i = 0; i < count; i++) v[i] = averaged(v[i], k.one_minus_beta2, t.g[i] * t.g[i]);
  if (has_largest)
    for (int64_t i = 0; i < count; i++) t.state[2][i] = larger(t.state[2][i], v[i]);
  const C *w = t.state[has_largest ? 2 : 1];
  for (int64_t i = 0; i < count; i++) t.d[i] = m[i] / (std::sqrt(w[i]) * k.bias_correction + k.eps);
}

template <class C> inline C sign_of(C x) { return C(x > C(0)) - C(x < C(0)) + (x - x); } // NaN stays

template <class C> void lion(Tile<C> &t, const Rounded<C> &k, int64_t count) {
  C *m = t.state[0];
  for (int64_t i = 0; i < count; i++) t.d[i] = sign_of(averaged(m[i], k.one_minus_beta1, t.g[i]));
  for (int64_t i = 0; i < count; i++) m[i] = averaged(m[i], k.one_minus_beta2, t.g[i]);
}

// The step d that an element takes, of the gradient g; the state as it is afterwards.
template <class C> void find_step(UpdateRule rule, Tile<C> &t, const Rounded<C> &k, int64_t count) {
  switch (rule) {
  case UpdateRule::sgd: std::copy_n(t.g, count, t.d); return;
  case UpdateRule::sgdMomentum: return sgd_momentum(t, k, count);
  case UpdateRule::sgdNesterov: return sgd_nesterov(t, k, count);
  case UpdateRule::adam: return adam(t, k, count, false);
  case UpdateRule::adamAmsgrad: return adam(t, k, count, true);
  case UpdateRule::lion: return lion(t, k, count);
  case UpdateRule::count: return;
  }
}

// Calls use(Type<storage>{}) for what is computed in C.
template <class C, class Use> void with_float(DType dtype, Use use) {
  if constexpr (std::is_same_v<C, double>) use(Type<double>{});
  else if (dtype == DType::float32) use(Type<float>{});
  else if (dtype == DType::float16) use(Type<Float16>{});
  else use(Type<BFloat16>{});
}

template <class C> void read(DType dtype, const char *elements, int64_t start, C *out, int64_t count) {
  with_float<C>(dtype, [=](auto type) {
    using T = typename decltype(type)::type;
    widen(reinterpret_cast<const T *>(elements) + start, out, count);
  });
}

template <class C> void write(DType dtype, const C *in, char *elements, int64_t start, int64_t count) {
  with_float<C>(dtype, [=](auto type) {
    using T = typename decltype(type)::type;
    narrow(in, reinterpret_cast<T *>(elements) + start, count);
  });
}

template <class C> void update_tile(const UpdateElements &u, const Rounded<C> &k, int64_t start, int64_t count) {
  Tile<C> t;
  const int planes = update_planes(u.rule);
  const C *state = reinterpret_cast<const C *>(u.state_before) + start;
  C *next = reinterpret_cast<C *>(u.state_after) + start;
  read(u.gradient_dtype, u.gradient, start, t.g, count);
  if (u.has_master) std::copy_n(state + planes * u.plane, count, t.p);
  else read(u.dtype, u.before, start, t.p, count);
  for (int plane = 0; plane < planes; plane++) std::copy_n(state + plane * u.plane, count, t.state[plane]);
  for (int64_t i = 0; i < count; i++) t.g[i] = k.sign * t.g[i] + k.l2 * t.p[i];
  find_step(u.rule, t, k, count);
  for (int64_t i = 0; i < count; i++) t.p[i] -= k.decoupled_decay * t.p[i] + k.step_size * t.d[i];
  for (int plane = 0; plane < planes; plane++) std::copy_n(t.state[plane], count, next + plane * u.plane);
  if (u.has_master) std::copy_n(t.p, count, next + planes * u.plane);
  write(u.dtype, t.p, u.after, start, count);
}

template <class C> void update(const UpdateElements &u) {
  const Rounded<C> k(u.coefficients);
  for (int64_t start = 0; start < u.count; start += tile) update_tile(u, k, start, std::min(tile, u.count - start));
}

} // namespace

extern const Updates updates = {update<double>, update<float>};

} // namespace orchard::ORCHARD_ISA
