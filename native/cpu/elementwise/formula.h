// Makes operations (rows.h) from the formulas in kernels/formulas. A file includes it after the formulas, and lists the
// groups of its enumeration:
//
//   UNARY_FLOATS(ORCHARD_MEMBER, in_floats)
//   static constexpr ElementwiseOperation operations[] = {UNARY_NAMES(ORCHARD_OPERATION, 1)};
#pragma once

#include "rows.h"

#define ORCHARD_MEMBER(operation, group) template <> constexpr bool group<operation> = true;
#define ORCHARD_OPERATION(operation, operands) elementwise_operation<Formula<operation>, operands>(),

namespace orchard::ORCHARD_ISA {
namespace {

// The groups of operations: the dtypes for which one has a formula. Tests are defined for every dtype.
template <auto operation> constexpr bool in_floats = false;
template <auto operation> constexpr bool in_integers = false;
template <auto operation> constexpr bool in_bools = false;
template <auto operation> constexpr bool in_tests = false;

// The optional members of an operation (rows.h).
template <auto operation> struct Extra {};

template <auto operation> struct Formula : Extra<operation> {
  static constexpr const char *name = names_of(operation);
  static constexpr Kinds kinds =
      in_tests<operation> ? everything : Kinds{in_floats<operation>, in_integers<operation>, in_bools<operation>};

  template <class T, class... Rest> static auto of(T x, Rest... rest) {
    if constexpr (in_tests<operation>) return tested<T>(x, rest...);
    else if constexpr (std::is_same_v<T, bool>) return OfBools<operation>::of(x, rest...);
    else if constexpr (std::is_integral_v<T>) return OfIntegers<operation>::of(x, rest...);
    else return OfFloats<operation>::of(x, rest...);
  }

private:
  template <class T, class... All> static bool tested(All... all) {
    if constexpr (std::is_integral_v<T>) return Test<operation>::of_whole(all...);
    else return Test<operation>::of_float(all...);
  }
};

} // namespace
} // namespace orchard::ORCHARD_ISA
