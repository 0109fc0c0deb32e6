// Checks the types of inputs with a thread's position: they must be in the table of kernel inputs (MSL 5.2.3.6), and if
// there are several, vectors of the same size.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Positions and sizes in the whole grid or the threadgroup, with up to three dimensions; all other inputs are one
// number.
constexpr std::string_view positions[] = {"thread_position_in_grid",
                                          "thread_position_in_threadgroup",
                                          "threadgroup_position_in_grid",
                                          "threads_per_grid",
                                          "threads_per_threadgroup",
                                          "threadgroups_per_grid",
                                          "dispatch_threads_per_threadgroup",
                                          "grid_origin",
                                          "grid_size"};
constexpr std::string_view bindings[] = {"buffer", "threadgroup", "texture", "sampler"};

struct Spelling {
  std::string_view name, element;
};
// Other names of the element types.
constexpr Spelling synonyms[] = {
    {"unsigned", "uint"},       {"unsigned int", "uint"},   {"uint32_t", "uint"},  {"unsigned short", "ushort"},
    {"uint16_t", "ushort"},     {"unsigned long", "ulong"}, {"uint64_t", "ulong"}, {"size_t", "ulong"},
    {"unsigned char", "uchar"}, {"uint8_t", "uchar"},       {"int32_t", "int"},    {"int16_t", "short"},
    {"int64_t", "long"},        {"ptrdiff_t", "long"},      {"int8_t", "char"},    {"signed", "int"},
    {"signed int", "int"}};
constexpr std::string_view elements[] = {"uint", "ushort", "ulong", "uchar", "int",  "short",
                                         "long", "char",   "bool",  "float", "half", "bfloat"};

struct PositionType {
  std::string_view element; // empty if the text does not determine it: an alias, or a template's parameter
  int components = 1;
};

void remove_prefix(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) == prefix) text.remove_prefix(prefix.size());
}

// Returns the properties of a type, spelled with a space between tokens: `const metal :: uint3`, `vec < uint , 3 >`.
PositionType type_of(std::string_view text) {
  PositionType type;
  remove_prefix(text, "const ");
  remove_prefix(text, ":: ");
  remove_prefix(text, "metal :: ");
  if (text.substr(0, 6) == "vec < " && text.size() > 12 && text.substr(text.size() - 2) == " >") {
    type.components = text[text.size() - 3] - '0';
    text = text.substr(6, text.size() - 12); // without ` , 3 >`
  } else if (!text.empty() && text.back() >= '2' && text.back() <= '4') {
    type.components = text.back() - '0';
    text.remove_suffix(1);
  }
  for (const Spelling &synonym : synonyms)
    if (text == synonym.name) text = synonym.element;
  if (one_of(text, elements)) type.element = text;
  return type;
}

// If the text does not determine it, because the name is an alias, the strict pass decides.
void check_alias(Rewriter &rewriter, const Declaration &kernel, const KernelParameter &parameter, bool is_position) {
  if (!kernel.templates.empty() || parameter.spelled_type.empty()) return;
  rewriter.strict().insert_after(kernel.tokens.last - 1,
                                 std::string(" static_assert(mrt::") + (is_position ? "is_position" : "is_index") +
                                     "<" + parameter.spelled_type + ">, \"type '" + parameter.spelled_type +
                                     "' is not valid for attribute '" + parameter.source + "'\");");
}

} // namespace

void check_positions(Rewriter &rewriter, const Declaration &kernel, const std::vector<KernelParameter> &parameters) {
  const KernelParameter *first = nullptr;
  for (const KernelParameter &parameter : parameters) {
    if (one_of(parameter.source, bindings)) continue;
    const PositionType type = type_of(parameter.spelled_type);
    const bool is_position = one_of(parameter.source, positions);
    if (type.element.empty()) {
      check_alias(rewriter, kernel, parameter, is_position);
      continue;
    }
    const uint32_t location = parameter.name != none ? parameter.name : parameter.tokens.first;
    if (!one_of(type.element, {"uint", "ushort"}) || type.components > (is_position ? 3 : 1)) {
      rewriter.error(location, "type '" + parameter.spelled_type + "' is not valid for attribute '" + parameter.source +
                                   "': expected " +
                                   (is_position ? "uint or ushort, or a vector of 2 or 3 of them" : "uint or ushort"));
      continue;
    }
    if (!is_position) continue;
    if (!first) first = &parameter;
    else if (type.components != type_of(first->spelled_type).components)
      rewriter.error(location, "attribute '" + parameter.source + "' is of type '" + parameter.spelled_type +
                                   "' beside '" + first->source + "' of type '" + first->spelled_type +
                                   "': expected the same number of components");
  }
}

} // namespace mrt
