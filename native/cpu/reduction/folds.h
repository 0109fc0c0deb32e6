// Reductions whose state is a single number: how an element is added to a state, two states are merged, and the result
// is computed.
//
// Floats are summed in float64, integers in int64, which wraps around. `step` and `merge` have no branches, so that
// loops over them are vectorized.
#pragma once

#include "../lanes.h"
#include "reduction.h"

namespace orchard::ORCHARD_ISA {

template <class C> using Wide = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

inline double plus(double a, double b) { return a + b; }
inline int64_t plus(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline double times(double a, double b) { return a * b; }
inline int64_t times(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class T> constexpr T least() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <class T> constexpr T most() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

// The class of each reduction, for elements of a compute type. A reduction without a class does not compile.
template <Reduction name> struct ReductionOf;
#define REDUCTION(name, Class) REDUCTION_OF(name, Class, true)
#define FLOAT_REDUCTION(name, Class) REDUCTION_OF(name, Class, false)
#define REDUCTION_OF(name, Class, for_integers)                                                                        \
  template <> struct ReductionOf<Reduction::name> {                                                                    \
    template <class C> using Op = Class<C>;                                                                            \
    static constexpr bool takes_integers = for_integers;                                                               \
  };

struct FoldFacts {
  explicit FoldFacts(const ReductionFacts &facts) : facts(facts) {}
  // Whether `step_vectors` and `merge_vectors` do the same to vectors: compilers vectorize comparisons in short loops
  // only then.
  static constexpr bool has_vectors = false;
  static constexpr bool adds_bytes = false; // whether it is the sum of integers of one byte
  const ReductionFacts &facts;
};

template <class C> struct Sum : FoldFacts {
  using FoldFacts::FoldFacts;
  static constexpr bool adds_bytes = std::is_integral_v<C> && sizeof(C) == 1;
  using State = Wide<C>;
  static State identity() { return 0; }
  State step(State a, C x) const { return plus(a, State(x)); }
  State merge(State a, State b) const { return plus(a, b); }
  State result(State a) const { return a; }
};
REDUCTION(sum, Sum)

// Adds the elements that are not NaN.
template <class C> struct NumbersSum : Sum<C> {
  using Sum<C>::Sum;
  double step(double a, C x) const { return a + (x == x ? double(x) : 0.0); }
};
FLOAT_REDUCTION(nansum, NumbersSum)

// Counts the elements that are not NaN.
template <class C> struct NumbersCount : Sum<C> {
  using Sum<C>::Sum;
  double step(double a, C x) const { return a + (x == x ? 1.0 : 0.0); }
};
FLOAT_REDUCTION(nancount, NumbersCount)

template <class C> struct Mean : Sum<C> {
  using Sum<C>::Sum;
  double result(double a) const { return a / double(this->facts.count); }
};
FLOAT_REDUCTION(mean, Mean)

template <class C> struct Product : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = Wide<C>;
  static State identity() { return 1; }
  State step(State a, C x) const { return times(a, State(x)); }
  State merge(State a, State b) const { return times(a, b); }
  State result(State a) const { return a; }
};
REDUCTION(prod, Product)

template <class C> struct Largest : FoldFacts {
  using FoldFacts::FoldFacts;
  static constexpr bool has_vectors = !std::is_same_v<C, bool>;
  template <class V> static V merge_vectors(V a, V x) { return (a >= x) | (a != a) ? a : x; }
  template <class V> static V step_vectors(V a, V x) { return merge_vectors(a, x); }
  using State = C;
  static State identity() { return least<C>(); }
  State step(State a, C x) const { return larger(a, x); }
  State merge(State a, State b) const { return larger(a, b); }
  Wide<C> result(State a) const { return Wide<C>(a); }
};
REDUCTION(amax, Largest)

template <class C> struct Smallest : FoldFacts {
  using FoldFacts::FoldFacts;
  static constexpr bool has_vectors = !std::is_same_v<C, bool>;
  template <class V> static V merge_vectors(V a, V x) { return (a <= x) | (a != a) ? a : x; }
  template <class V> static V step_vectors(V a, V x) { return merge_vectors(a, x); }
  using State = C;
  static State identity() { return most<C>(); }
  State step(State a, C x) const { return smaller(a, x); }
  State merge(State a, State b) const { return smaller(a, b); }
  Wide<C> result(State a) const { return Wide<C>(a); }
};
REDUCTION(amin, Smallest)

// The largest element that is not NaN.
template <class C> struct LargestNumber : Largest<C> {
  using Largest<C>::Largest;
  static C identity() { return std::numeric_limits<C>::quiet_NaN(); }
  template <class V> static V merge_vectors(V a, V x) { return (a >= x) | (x != x) ? a : x; }
  template <class V> static V step_vectors(V a, V x) { return merge_vectors(a, x); }
  C step(C a, C x) const { return merge_vectors(a, x); }
  C merge(C a, C b) const { return merge_vectors(a, b); }
};
FLOAT_REDUCTION(nanmax, LargestNumber)

template <class C> struct SmallestNumber : Smallest<C> {
  using Smallest<C>::Smallest;
  static C identity() { return std::numeric_limits<C>::quiet_NaN(); }
  template <class V> static V merge_vectors(V a, V x) { return (a <= x) | (x != x) ? a : x; }
  template <class V> static V step_vectors(V a, V x) { return merge_vectors(a, x); }
  C step(C a, C x) const { return merge_vectors(a, x); }
  C merge(C a, C b) const { return merge_vectors(a, b); }
};
FLOAT_REDUCTION(nanmin, SmallestNumber)

template <class C> struct Every : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = uint8_t;
  static State identity() { return 1; }
  State step(State a, C x) const { return a & State(x != C(0)); }
  State merge(State a, State b) const { return a & b; }
  int64_t result(State a) const { return a; }
};
REDUCTION(all, Every)

template <class C> struct Some : FoldFacts {
  using FoldFacts::FoldFacts;
  using State = uint8_t;
  static State identity() { return 0; }
  State step(State a, C x) const { return a | State(x != C(0)); }
  State merge(State a, State b) const { return a | b; }
  int64_t result(State a) const { return a; }
};
REDUCTION(any, Some)

// Counts the elements that are not 0.
template <class C> struct Norm0 : Sum<C> {
  using Sum<C>::Sum;
  double step(double a, C x) const { return a + (x != C(0) ? 1.0 : 0.0); }
};
FLOAT_REDUCTION(norm0, Norm0)

template <class C> struct Norm1 : Sum<C> {
  using Sum<C>::Sum;
  double step(double a, C x) const { return a + std::fabs(double(x)); }
};
FLOAT_REDUCTION(norm1, Norm1)

template <class C> struct Norm2 : Sum<C> {
  using Sum<C>::Sum;
  double step(double a, C x) const { return a + double(x) * double(x); }
  double result(double a) const { return std::sqrt(a); }
};
FLOAT_REDUCTION(norm2, Norm2)

template <class C> struct NormInf : Largest<C> {
  using Largest<C>::Largest;
  static C identity() { return 0; }
  C step(C a, C x) const { return larger(a, C(std::fabs(x))); }
  template <class V> static V step_vectors(V a, V x) { return Largest<C>::merge_vectors(a, V(x < 0 ? -x : x)); }
};
FLOAT_REDUCTION(normInf, NormInf)

template <class C> struct NormNegInf : Smallest<C> {
  using Smallest<C>::Smallest;
  C step(C a, C x) const { return smaller(a, C(std::fabs(x))); }
  template <class V> static V step_vectors(V a, V x) { return Smallest<C>::merge_vectors(a, V(x < 0 ? -x : x)); }
};
FLOAT_REDUCTION(normNegInf, NormNegInf)

} // namespace orchard::ORCHARD_ISA
