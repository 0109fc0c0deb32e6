// The fields of a call's block. A block is a struct of doubles, which TypeScript writes as one Float64Array. Integers
// are at most 2^53 and therefore exact. The structs are generated from the descriptions of calls in TypeScript
// (scripts/cpu/generated.ts). A field is checked when it is read, since it may hold any number, NaN included.
#pragma once

#include "dtypes.h"
#include "names.h"
#include "status.h"

#include <cstdint>
#include <string>
#include <type_traits>

namespace orchard {

// 2^53: every integer up to this one is exact in a double.
constexpr int64_t largest_whole = int64_t(1) << 53;

// Throws Failure: a field does not hold the expected kind of number.
[[noreturn]] void refuse_number(double value, const char *expected);

struct Real {
  double value;
  operator double() const { return value; }
};

struct Whole {
  double value;
  operator int64_t() const {
    constexpr double most = static_cast<double>(largest_whole);
    if (!(value >= -most && value <= most)) refuse_number(value, "a whole number of at most 2^53");
    const int64_t whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) != value) refuse_number(value, "a whole number");
    return whole;
  }
};

// An unsigned 32-bit integer: half of a 64-bit one, or a random word.
struct Word {
  double value;
  operator uint32_t() const {
    if (!(value >= 0 && value < 4294967296.0)) refuse_number(value, "a word of 32 bits");
    const uint32_t word = static_cast<uint32_t>(value);
    if (static_cast<double>(word) != value) refuse_number(value, "a word of 32 bits");
    return word;
  }
};

struct Flag {
  double value;
  operator bool() const { return value != 0; }
};

// An element type, by its ordinal in `dtype_names`.
struct DTypeField {
  double value;
  operator DType() const {
    if (!(value >= 0 && value < dtype_count && value == static_cast<int>(value)))
      fail(ORCHARD_CPU_INVALID_ARGUMENT, "there is no dtype with the ordinal " + std::to_string(value));
    return static_cast<DType>(static_cast<int>(value));
  }
};

// A constant of an enumeration declared by ORCHARD_NAMES.
template <class Enumeration> struct Name {
  double value;
  operator Enumeration() const {
    if (!(value >= 0 && value < static_cast<double>(Enumeration::count) && value == static_cast<int>(value)))
      fail(ORCHARD_CPU_INVALID_ARGUMENT,
           std::string("there is no ") + list_of(Enumeration{}).type + " with the ordinal " + std::to_string(value));
    return static_cast<Enumeration>(static_cast<int>(value));
  }
};

// An unsigned 64-bit integer in two halves, the lower one first.
struct WideWord {
  Word low, high;
  operator uint64_t() const { return uint64_t(uint32_t(low)) | uint64_t(uint32_t(high)) << 32; }
};

// Returns the address of an element.
inline const char *element(const void *base, DType dtype, int64_t offset) {
  return static_cast<const char *>(base) + offset * dtype_sizes[static_cast<int>(dtype)];
}
inline char *element(void *base, DType dtype, int64_t offset) {
  return static_cast<char *>(base) + offset * dtype_sizes[static_cast<int>(dtype)];
}

} // namespace orchard
