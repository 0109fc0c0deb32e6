// Enumerations that TypeScript refers to by name: when it loads the dylib, it looks up a name's ordinal in
// `orchard_cpu_tables`.
//
//   ORCHARD_NAMES(Scan, cumsum, cumprod, shift)   in a header: the enumeration, with `count` as its last constant
//   ORCHARD_EXPORT_NAMES(Scan)                    in one .cpp, never in an .isa.cpp: the list is registered while the
//                                                 dylib is being loaded, when no code of an .isa.cpp may run
#pragma once

#include <string>

namespace orchard {

// The names as written in the source, separated by ", ".
struct NameList {
  const char *type;
  const char *names;
};

// Registers a list for `orchard_cpu_tables`. `names` is called when the tables are read.
struct ExportedNames {
  ExportedNames(const char *type, std::string (*names)());

  const char *type;
  std::string (*names)();
  const ExportedNames *next;
};

} // namespace orchard

#define ORCHARD_NAMES(Type, ...)                                                                                       \
  enum class Type : int { __VA_ARGS__, count };                                                                        \
  constexpr ::orchard::NameList list_of(Type) { return {#Type, #__VA_ARGS__}; }

#define ORCHARD_EXPORT_NAMES(Type)                                                                                     \
  static const ::orchard::ExportedNames Type##_names{#Type, [] { return std::string(list_of(Type{}).names); }};
