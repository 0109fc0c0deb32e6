#include "rewrite/declared_constant.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

namespace mrt {
namespace {

using Value = std::optional<int64_t>;

struct Operator {
  std::string_view text;
  int precedence;
  Value (*apply)(int64_t, int64_t);
};

// Operations that are undefined in C++ give no value here, or wrap around; the compiler reports them.
constexpr Operator operators[] = {
    {"<<", 4,
     [](int64_t a, int64_t b) -> Value { return b >= 0 && b < 63 ? Value(int64_t(uint64_t(a) << b)) : Value(); }},
    {">>", 4, [](int64_t a, int64_t b) -> Value { return b >= 0 && b < 63 ? Value(a >> b) : Value(); }},
    {"*", 6, [](int64_t a, int64_t b) -> Value { return int64_t(uint64_t(a) * uint64_t(b)); }},
    {"/", 6, [](int64_t a, int64_t b) -> Value { return b > 0 ? Value(a / b) : Value(); }},
    {"%", 6, [](int64_t a, int64_t b) -> Value { return b > 0 ? Value(a % b) : Value(); }},
    {"+", 5, [](int64_t a, int64_t b) -> Value { return int64_t(uint64_t(a) + uint64_t(b)); }},
    {"-", 5, [](int64_t a, int64_t b) -> Value { return int64_t(uint64_t(a) - uint64_t(b)); }},
    {"&", 3, [](int64_t a, int64_t b) -> Value { return a & b; }},
    {"^", 2, [](int64_t a, int64_t b) -> Value { return a ^ b; }},
    {"|", 1, [](int64_t a, int64_t b) -> Value { return a | b; }},
};

// An expression parser with precedence climbing.
class Expression {
public:
  explicit Expression(std::string_view text) : remaining(text) {}

  Value whole() {
    Value value = binary(1);
    skip_spaces();
    return remaining.empty() ? value : Value();
  }

private:
  Value binary(int least) {
    Value left = unary();
    while (const Operator *found = next_operator(least)) {
      remaining.remove_prefix(found->text.size());
      Value right = binary(found->precedence + 1);
      left = left && right ? found->apply(*left, *right) : Value();
    }
    return left;
  }

  Value unary() {
    if (take('+')) return unary();
    if (take('-')) return negated(unary(), 0);
    if (take('~')) return negated(unary(), 1);
    if (!take('(')) return literal();
    Value inner = binary(1);
    return take(')') ? inner : Value();
  }

  static Value negated(Value value, int64_t less) {
    return value ? Value(int64_t(0 - uint64_t(*value)) - less) : value;
  }

  Value literal() {
    const std::string digits(remaining.substr(0, remaining.find_first_not_of("0123456789abcdefABCDEFxXuUlL'")));
    bool is_binary = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
    if (digits.empty() || digits[0] < '0' || digits[0] > '9' || digits.find('\'') != std::string::npos) return {};
    char *end = nullptr;
    int64_t value = is_binary ? strtoll(digits.c_str() + 2, &end, 2) : strtoll(digits.c_str(), &end, 0);
    if (std::string_view(end).find_first_not_of("uUlL") != std::string_view::npos) return {};
    remaining.remove_prefix(digits.size());
    return value;
  }

  const Operator *next_operator(int least) {
    skip_spaces();
    for (const Operator &candidate : operators)
      if (remaining.substr(0, candidate.text.size()) == candidate.text)
        return candidate.precedence >= least ? &candidate : nullptr;
    return nullptr;
  }

  bool take(char letter) {
    skip_spaces();
    bool is_next = !remaining.empty() && remaining.front() == letter;
    if (is_next) remaining.remove_prefix(1);
    return is_next;
  }

  void skip_spaces() { remaining.remove_prefix(std::min(remaining.find_first_not_of(" \t\n"), remaining.size())); }

  std::string_view remaining;
};

struct NamedType {
  std::string_view name;
  uint32_t data_type; // of a scalar; a vector of n has n - 1 more
};

constexpr NamedType types[] = {
    {"bool", 53},     {"float", 3},           {"half", 16},          {"bfloat", 121}, {"char", 45},    {"int8_t", 45},
    {"uchar", 49},    {"uint8_t", 49},        {"unsigned char", 49}, {"short", 37},   {"int16_t", 37}, {"ushort", 41},
    {"uint16_t", 41}, {"unsigned short", 41}, {"int", 29},           {"int32_t", 29}, {"uint", 33},    {"uint32_t", 33},
    {"unsigned", 33}, {"unsigned int", 33},   {"long", 81},          {"int64_t", 81}, {"ulong", 85},   {"uint64_t", 85},
    {"size_t", 85},   {"unsigned long", 85},
};

// Recognizes names such as `float3`; vectors of `int8_t` or `unsigned int` have no such name.
bool is_vector_name(std::string_view name, std::string_view scalar) {
  return name.size() == scalar.size() + 1 && name.substr(0, scalar.size()) == scalar && name.back() >= '2' &&
         name.back() <= '4' && scalar.find_first_of(" _") == std::string_view::npos;
}

} // namespace

std::ostream &operator<<(std::ostream &stream, const DeclaredConstant &constant) {
  return stream << constant.name << ' ' << constant.index << ' ' << constant.data_type << ' ' << constant.is_required
                << ' ';
}

std::istream &operator>>(std::istream &stream, DeclaredConstant &constant) {
  return stream >> constant.name >> constant.index >> constant.data_type >> constant.is_required;
}

int64_t evaluate_index(const std::string &expression) {
  Value value = Expression(expression).whole();
  return value && *value >= 0 && *value <= UINT32_MAX ? *value : -1;
}

uint32_t data_type_named(const std::string &type) {
  std::string_view name = type;
  constexpr std::string_view space = "metal :: ";
  if (name.substr(0, space.size()) == space) name.remove_prefix(space.size());
  for (const NamedType &known : types) {
    if (name == known.name) return known.data_type;
    if (is_vector_name(name, known.name)) return known.data_type + uint32_t(name.back() - '1');
  }
  return 0;
}

} // namespace mrt
