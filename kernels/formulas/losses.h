// The losses of single elements, for C++ and Metal, which include this table inside a namespace, after the functions
// that it calls. Both define
//   LOSS(NAME, name, operands, value, by_x, by_target, by_third)
// with the loss's constant in Metal and in C++, its number of operands, its value, and the derivatives with respect to
// the first three operands.
//
// x is the operand and t the target; w and v are a third and a fourth operand, 1 if there is none; p and q are the
// parameters. T is the type of the elements: float16 and bfloat16 are computed in float32.

// The derivative of the binary cross entropy of a logit: (1 - t) σ(x) - v t σ(-x), where one exponential gives both
// sigmoids.
template <typename T> inline T logit_slope(T x, T t, T v) {
    T e = exp(-fabs(x));
    T near_one = T(1) / (T(1) + e);
    T near_zero = e * near_one;
    return (T(1) - t) * (x < T(0) ? near_zero : near_one) - v * t * (x < T(0) ? near_one : near_zero);
}

// The binary cross entropy of a probability, and its derivative. Logarithms and the divisor are limited, as in PyTorch.
template <typename T> inline T probability_entropy(T x, T t) {
    return (t - T(1)) * at_least(log1p(-x), T(-100)) - t * at_least(log(x), T(-100));
}
template <typename T> inline T probability_slope(T x, T t) { return (x - t) / at_least(x * (T(1) - x), T(1e-12)); }

// The derivative of |x|: 0 at 0, NaN stays NaN.
template <typename T> inline T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }

// With c, the difference limited to ±p, the value is q c (d - c / 2), and the derivative q c.
template <typename T> inline T huber_loss(T difference, T p, T q) {
    T limited = bounded(difference, -p, p);
    return q * (limited * (difference - T(0.5) * limited));
}

// max(p - x, 0) for targets other than 1, and x for targets other than -1.
template <typename T> inline T hinge_loss(T x, T t, T p) {
    return (t == T(1) ? T(0) : at_least(p - x, T(0))) + (t == T(-1) ? T(0) : x);
}
template <typename T> inline T hinge_slope(T x, T t, T p) {
    return (t == T(-1) ? T(0) : T(1)) - (t != T(1) && p - x > T(0) ? T(1) : T(0));
}

// The factor of the derivatives of max(p - w (x - t), 0): 1 where it is above 0.
template <typename T> inline T ranking_share(T x, T t, T w, T p) { return p - w * (x - t) > T(0) ? T(1) : T(0); }

// t log t, which is 0 at 0.
template <typename T> inline T entropy_term(T t) { return t == T(0) ? T(0) : t * log(t); }

// (log v + (x - t)² / v) / 2 + q for a variance v of at least p, and its derivatives. Below p, the derivative with
// respect to the variance is that of p, as in PyTorch.
template <typename T> inline T gaussian_loss(T d, T v, T q) { return T(0.5) * (log(v) + d * d / v) + q; }
template <typename T> inline T variance_slope(T d, T v) { return T(0.5) * (T(1) - d * d / v) / v; }

LOSS(SQUARED_ERROR, squaredError, 2, (x - t) * (x - t), T(2) * (x - t), T(2) * (t - x), T(0))
LOSS(ABSOLUTE_ERROR, absoluteError, 2, fabs(x - t), sign_of(x - t), sign_of(t - x), T(0))
LOSS(HUBER, huber, 2, huber_loss(x - t, p, q), q *bounded(x - t, -p, p), q *bounded(t - x, -p, p), T(0))
LOSS(BINARY_CROSS_ENTROPY, binaryCrossEntropy, 2, (T(1) - t) * x - log_sigmoid(x), logit_slope(x, t, T(1)), -x, T(0))
LOSS(
    WEIGHTED_BINARY_CROSS_ENTROPY,
    weightedBinaryCrossEntropy,
    4,
    w *((T(1) - t) * x - (T(1) - t + v * t) * log_sigmoid(x)),
    w *logit_slope(x, t, v),
    w *((T(1) - v) * log_sigmoid(x) - x),
    T(0))
LOSS(
    PROBABILITY_CROSS_ENTROPY,
    probabilityCrossEntropy,
    2,
    probability_entropy(x, t),
    probability_slope(x, t),
    log1p(-x) - log(x),
    T(0))
LOSS(
    WEIGHTED_PROBABILITY_CROSS_ENTROPY,
    weightedProbabilityCrossEntropy,
    3,
    w *probability_entropy(x, t),
    w *probability_slope(x, t),
    w *(log1p(-x) - log(x)),
    probability_entropy(x, t))
LOSS(SOFT_MARGIN, softMargin, 2, -log_sigmoid(t *x), -t *sigmoid(-t *x), -x *sigmoid(-t *x), T(0))
LOSS(HINGE, hinge, 2, hinge_loss(x, t, p), hinge_slope(x, t, p), T(0), T(0))
LOSS(
    RANKING,
    ranking,
    3,
    at_least(p - w * (x - t), T(0)),
    -w *ranking_share(x, t, w, p),
    w *ranking_share(x, t, w, p),
    (t - x) * ranking_share(x, t, w, p))
LOSS(DIVERGENCE, divergence, 2, entropy_term(t) - t * x, -t, (t == T(0) ? t / t : log(t) + T(1)) - x, T(0))
LOSS(LOG_DIVERGENCE, logDivergence, 2, exp(t) * (t - x), -exp(t), exp(t) * (t - x + T(1)), T(0))
LOSS(POISSON_OF_LOG, poissonOfLog, 2, exp(x) - t * x, exp(x) - t, -x, T(0))
LOSS(POISSON, poisson, 2, x - t * log(x + p), T(1) - t / (x + p), -log(x + p), T(0))
LOSS(
    GAUSSIAN,
    gaussian,
    3,
    gaussian_loss(x - t, at_least(w, p), q),
    (x - t) / at_least(w, p),
    (t - x) / at_least(w, p),
    variance_slope(x - t, at_least(w, p)))
