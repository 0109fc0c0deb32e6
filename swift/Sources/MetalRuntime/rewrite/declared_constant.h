// A function constant as declared in the source, known before anything is compiled.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace mrt {

struct DeclaredConstant {
  std::string name;
  int64_t index = -1;     // -1: only the compiler knows
  uint32_t data_type = 0; // MTLDataType; 0: only the compiler knows
  bool is_required = false;

  bool is_known() const { return index >= 0 && data_type != 0; }
};

// Write and read the fields, each followed by a space, for a file in the cache.
std::ostream &operator<<(std::ostream &stream, const DeclaredConstant &constant);
std::istream &operator>>(std::istream &stream, DeclaredConstant &constant);

// Returns the value of an expression such as `600 + 1` or `(1 << 2) | 3`: integers with C++'s operators. Returns -1 if
// it contains a name, or if the value is negative.
int64_t evaluate_index(const std::string &expression);

// Returns the MTLDataType of a type such as `uint`, `unsigned int`, `metal::float4` or `uint16_t`; 0 for a name that
// Metal does not define.
uint32_t data_type_named(const std::string &type);

} // namespace mrt
