#include "rewrite/diagnostics.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

namespace mrt {
namespace {

bool is_word(char letter) { return isalnum((unsigned char)letter) || letter == '_'; }

// ---------------------------------------------------------------- wording

struct Wording {
  std::string_view clang, metal;
};
// Translations of clang's messages for C++ for OpenCL to Metal's terms. Whole messages come first, then names.
constexpr Wording messages[] = {
    {"non-kernel function variable cannot be declared in local address space",
     "variable in 'threadgroup' address space can only be declared in a kernel function"},
    {"program scope variable must reside in global or constant address space",
     "program scope variable must reside in constant address space"},
    {"OpenCL C++", "Metal"},
    {"C++ for OpenCL", "Metal"},
    {"OpenCL", "Metal"},
};
constexpr Wording names[] = {{"__global_device", "device"}, {"__global_host", "constant"}, {"__global", "device"},
                             {"__local", "threadgroup"},    {"__private", "thread"},       {"__constant", "constant"},
                             {"_Float16", "half"},          {"__bf16", "bfloat"}};

void replace_all(std::string &text, std::string_view from, std::string_view to, bool whole_words) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    bool inside = whole_words && ((at && is_word(text[at - 1])) ||
                                  (at + from.size() < text.size() && is_word(text[at + from.size()])));
    if (!inside) text.replace(at, from.size(), to);
    at += inside ? from.size() : to.size();
  }
}

// Shortens a failed static assertion of the headers to its message, since the requirement contains internal names.
void leave_out_requirement(std::string &message) {
  constexpr std::string_view start = "static assertion failed due to requirement '";
  if (message.compare(0, start.size(), start) != 0) return;
  for (std::string_view own : {"invalid vector element type", "' is not valid for attribute '"})
    if (message.find(own) != std::string::npos) message.erase(0, message.find("': ") + 3);
}

std::string metal_wording(std::string message, bool hide_generic = true) {
  leave_out_requirement(message);
  for (const Wording &wording : messages) replace_all(message, wording.clang, wording.metal, false);
  for (const Wording &wording : names) replace_all(message, wording.clang, wording.metal, true);
  if (hide_generic) replace_all(message, "__generic ", "", false);
  for (const char *prefix : {"mrt_type_", "mrt_word_"}) replace_all(message, prefix, "", false);
  return message;
}

// ---------------------------------------------------------------- reading clang's output

struct Printout {
  std::string file, message;
  uint32_t line = 0, column = 0;
  Diagnostic::Severity severity = Diagnostic::error;
};

// Parses "file:line:column: severity: message"; returns false for any other line.
bool parse_line(const std::string &line, Printout &out) {
  constexpr std::array<std::pair<std::string_view, Diagnostic::Severity>, 4> severities = {
      {{": error: ", Diagnostic::error},
       {": fatal error: ", Diagnostic::error},
       {": warning: ", Diagnostic::warning},
       {": note: ", Diagnostic::note}}};
  for (auto [word, severity] : severities) {
    size_t at = line.find(word);
    if (at == std::string::npos) continue;
    out.message = line.substr(at + word.size());
    out.severity = severity;
    size_t column = line.rfind(':', at - 1), row = column == std::string::npos ? column : line.rfind(':', column - 1);
    if (row == std::string::npos || row == 0) return out.file = line.substr(0, at), true;
    out.file = line.substr(0, row);
    out.line = uint32_t(atoi(line.c_str() + row + 1));
    out.column = uint32_t(atoi(line.c_str() + column + 1));
    return true;
  }
  return false;
}

std::vector<Printout> parse_lines(const std::string &output) {
  std::vector<Printout> printouts;
  for (size_t start = 0; start < output.size();) {
    size_t end = std::min(output.find('\n', start), output.size());
    Printout printout;
    if (parse_line(output.substr(start, end - start), printout)) printouts.push_back(printout);
    start = end + 1;
  }
  return printouts;
}

// Removes "[-Wunused-variable]" and the like: Metal's compiler does not print flags, as users can't set them.
std::string without_flag(std::string message) {
  size_t at = message.rfind(" [-W");
  if (at != std::string::npos && message.back() == ']') message.resize(at);
  return message;
}

std::string without_qualifiers(std::string type) {
  for (const char *word : {"const", "volatile", "device", "threadgroup", "constant", "thread"})
    for (size_t at; (at = type.find(std::string(word) + " ")) != std::string::npos && (!at || !is_word(type[at - 1]));)
      type.erase(at, strlen(word) + 1);
  const std::string library = "metal::";
  for (size_t at; (at = type.find(library)) != std::string::npos;) type.erase(at, library.size());
  return type;
}

// Returns the type itself, whose template arguments may be pointers and name address spaces.
std::string without_template_arguments(const std::string &type) {
  std::string out;
  int depth = 0;
  for (char letter : type) {
    depth -= letter == '>';
    if (depth == 0 && letter != '>') out += letter;
    depth += letter == '<';
  }
  return out;
}

bool is_qualified(const std::string &type) {
  const std::string plain = without_template_arguments(type);
  return plain != without_qualifiers(plain);
}

bool is_pointer(const std::string &type) { return without_template_arguments(type).find('*') != std::string::npos; }

std::vector<std::string> quoted_parts(const std::string &message) {
  std::vector<std::string> parts;
  for (size_t open = message.find('\''); open != std::string::npos;) {
    size_t close = message.find('\'', open + 1);
    if (close == std::string::npos) break;
    parts.push_back(message.substr(open + 1, close - open - 1));
    open = message.find('\'', close + 1);
  }
  return parts;
}

// Terms in an error, or in a note that explains it, that indicate a difference between C++ for OpenCL and Metal. In C++
// for OpenCL, the object of `this` and temporaries are in the generic address space, while in Metal they are in the
// thread's. Functions as template arguments do not match.
constexpr const char *opencl_terms[] = {"__generic",
                                        "address space unqualified",
                                        "temporary object because of address space mismatch",
                                        "changes address space",
                                        "default address space, but method expects object in address space 'thread'",
                                        "invalid explicitly-specified argument for template parameter",
                                        "bfloat' to 'thread bool'"};

bool is_integer_type(const std::string &type) {
  constexpr std::string_view types[] = {"bool",         "char",          "uchar",         "short",
                                        "ushort",       "int",           "uint",          "long",
                                        "ulong",        "signed char",   "unsigned char", "unsigned short",
                                        "unsigned int", "unsigned long", "size_t",        "ptrdiff_t"};
  return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

// Returns whether C++ for OpenCL rejects something that Metal accepts.
bool is_false_alarm(const std::string &message) {
  auto starts = [&](std::string_view prefix) { return message.compare(0, prefix.size(), prefix) == 0; };
  std::vector<std::string> quoted = quoted_parts(message);
  // A conditional operator whose branches are an object in some address space and a temporary of the same class.
  if (starts("incompatible operand types")) // each type may be followed by (aka 'another name')
    for (size_t first = 0; first < quoted.size(); first++)
      for (size_t second = first + 1; second < quoted.size(); second++)
        if (without_qualifiers(quoted[first]) == without_qualifiers(quoted[second])) return true;
  // The branches of `?:`, of the same class: the type of an `auto` variable in a template includes its address space,
  // and the type of the other branch does not.
  if (starts("incompatible operand types ('") && quoted.size() == 2)
    return !is_pointer(quoted[0]) && without_qualifiers(quoted[0] + " ") == without_qualifiers(quoted[1] + " ");
  // An object in the constant address space: clang requires a constructor that is qualified with the address space.
  if (starts("no matching constructor for initialization of 'const constant ")) return true;
  // A function as a template argument: its type is a pointer without an address space, which clang does not match. The
  // flat pass checks it.
  if (starts("reference to overloaded function could not be resolved")) return true;
  if (starts("explicit instantiation of '") &&
      message.find("does not refer to a function template") != std::string::npos)
    return true;
  // The flat pass decides whether a value is a constant expression; in the strict pass, objects in the constant address
  // space never are.
  if (starts("constexpr variable '") &&
      message.find("must be initialized by a constant expression") != std::string::npos)
    return true;
  // In the strict pass, a temporary has no address space. So clang can't choose between assignment operators for
  // different address spaces, whether the temporary is the right side or the object that is assigned to.
  if (starts("use of overloaded operator '=' is ambiguous") && quoted.size() >= 3) return !is_qualified(quoted.back());
  if (starts("cannot initialize object parameter of type 'const thread ") && quoted.size() >= 2)
    return !is_qualified(quoted[1]);
  // A constant member of a class, defined outside the class.
  if (starts("variable in constant address space must be initialized")) return true;
  // `pointer += object`, where the object converts to a number.
  if (starts("invalid operands to binary expression ('") && quoted.size() == 2)
    return is_pointer(quoted[0]) && !is_pointer(quoted[1]);
  // Metal's bfloat converts to integers implicitly. In the strict pass, where it is a class, this conversion would make
  // arithmetic ambiguous.
  if (starts("assigning to '") && quoted.size() >= 2)
    return !is_pointer(quoted[0]) && without_qualifiers(quoted.back()) == "bfloat";
  // `Q q = {p}`, where p is in the constant address space. The flat pass reports conversions between classes.
  if (starts("no viable conversion from 'const constant ") && !is_pointer(quoted[0])) return true;
  if (starts("no viable conversion from '") && quoted.size() >= 2) // the flat pass uses no address spaces here
    return without_qualifiers(quoted[0]) == "bfloat" && is_integer_type(without_qualifiers(quoted[1])) &&
           quoted[1] != without_qualifiers(quoted[1]);
  return false;
}

// Returns the address space to which a pointer or reference type refers, such as `__global` for `__global float
// *__private`. It is empty if the type gives none: for objects of `this`, temporaries, and types that a template
// deduces.
std::string_view referred_space(std::string_view type) {
  const size_t star = type.rfind('*');
  if (star != std::string_view::npos) type = type.substr(0, star);
  const size_t inner = type.rfind('*');
  if (inner != std::string_view::npos) type.remove_prefix(inner + 1);
  type = type.substr(0, type.find('<')); // without template arguments
  for (std::string_view space : {"__global", "__local", "__constant", "__private"})
    if (type.find(space) != std::string_view::npos) return space;
  return {};
}

// Returns whether a message is `assigning 'A' to 'B' changes address space of pointer` or `binding reference of type
// 'A' to value of type 'B' changes address space`, and both types give an address space. If a type is followed by (aka
// 'another name'), the latter is used.
bool crosses_spaces(const std::string &message) {
  if (message.find("changes address space") == std::string::npos) return false;
  const size_t middle = message.find(" to ");
  if (middle == std::string::npos) return false;
  const std::vector<std::string> before = quoted_parts(message.substr(0, middle)),
                                 after = quoted_parts(message.substr(middle));
  if (before.empty() || after.empty()) return false;
  const std::string_view first = referred_space(before.back()), second = referred_space(after.back());
  return !first.empty() && !second.empty() && first != second;
}

} // namespace

// ---------------------------------------------------------------- the user's lines

SourceLines::SourceLines(const std::string &source) {
  runs.push_back({"program_source", 1, {}});
  for (size_t start = 0; start < source.size();) {
    size_t end = std::min(source.find('\n', start), source.size()), hash = source.find_first_not_of(" \t", start);
    std::string line = source.substr(start, end - start);
    runs.back().lines.push_back(line);
    start = end + 1;
    if (hash >= end || source[hash] != '#') continue;
    size_t word = source.find_first_not_of(" \t", hash + 1), digits = word;
    if (!source.compare(word, 4, "line")) digits = source.find_first_not_of(" \t", word + 4);
    if (digits >= end || !isdigit((unsigned char)source[digits])) continue;
    std::string file = runs.back().file;
    size_t open = source.find('"', digits), close = open < end ? source.find('"', open + 1) : open;
    if (close < end) file = source.substr(open + 1, close - open - 1);
    runs.push_back({file, uint32_t(atoi(source.c_str() + digits)), {}});
  }
}

const std::string *SourceLines::line(const std::string &file, uint32_t number) const {
  // Searches from the end: a header that the host inserts before the program has the same file name and line numbers.
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    if (run->file == file && number >= run->first && number - run->first < run->lines.size())
      return &run->lines[number - run->first];
  return nullptr;
}

// Compares the user's line with the tokens of that line from left to right. A token that is not in the line came from a
// macro: its position is the current one, where the macro's name is.
uint32_t source_column(const TokenList &tokens, uint32_t token, const SourceLines &lines) {
  const Token &target = tokens[token];
  const std::string *line = lines.line(tokens.files[target.file], target.source_line);
  if (!line) return target.column;
  uint32_t first = token;
  while (first > 0 && tokens[first - 1].file == target.file && tokens[first - 1].source_line == target.source_line)
    first--;
  size_t at = 0;
  for (uint32_t index = first;; index++) {
    size_t found = line->find(tokens[index].text, at);
    bool is_name = tokens[index].kind == TokenKind::identifier;
    while (found != std::string::npos && is_name &&
           ((found && is_word((*line)[found - 1])) ||
            (found + tokens[index].text.size() < line->size() && is_word((*line)[found + tokens[index].text.size()]))))
      found = line->find(tokens[index].text, found + 1);
    if (index == token) {
      if (found == std::string::npos) found = line->find_first_not_of(" \t", at);
      return uint32_t(found == std::string::npos ? line->size() : found) + 1;
    }
    if (found != std::string::npos) at = found + tokens[index].text.size();
  }
}

Diagnostic diagnostic_at(const TokenList &tokens, uint32_t token, const SourceLines &lines,
                         Diagnostic::Severity severity, std::string message) {
  return {severity, tokens.files[tokens[token].file], tokens[token].source_line, source_column(tokens, token, lines),
          std::move(message)};
}

namespace {

struct Group { // an error or a warning, and the notes that explain it
  Printout head;
  std::vector<Printout> notes;
};

std::vector<Group> group_notes(const std::string &output) {
  std::vector<Group> groups;
  for (Printout &printout : parse_lines(output)) {
    if (printout.severity != Diagnostic::note) groups.push_back({std::move(printout), {}});
    else if (!groups.empty()) groups.back().notes.push_back(std::move(printout));
  }
  return groups;
}

// `f(x + 1)` for a method or an object f with a parameter `const thread T &`: a temporary has no address space.
bool passes_temporary(const Group &group) {
  const auto starts = [&](std::string_view prefix) {
    return group.head.message.compare(0, prefix.size(), prefix) == 0;
  };
  if (!starts("no matching member function for call to '") &&
      !starts("no matching function for call to object of type"))
    return false;
  return std::any_of(group.notes.begin(), group.notes.end(), [](const Printout &note) {
    return note.message.find("cannot bind reference in default address space to object in address space '__private'") !=
           std::string::npos;
  });
}

// Returns whether a message reports an address of a vector's element, which only the strict text tests (addresses.cpp).
// Its message comes from a header of Metal's library.
bool is_of_test(const Printout &printout) {
  return printout.message.find("address of vector element") != std::string::npos ||
         printout.message.find("bind to vector element") != std::string::npos;
}

bool is_false_alarm(const Group &group) {
  if (crosses_spaces(group.head.message) || is_of_test(group.head)) return false;
  if (is_false_alarm(metal_wording(group.head.message)) || passes_temporary(group)) return true;
  auto speaks_of = [&](const Printout &printout) {
    // A failure without a reason: the function was found invalid before. That may have been a false alarm; otherwise,
    // that error has been reported.
    bool without_reason =
        printout.message.find("substitution failure [") != std::string::npos && printout.message.back() == ']';
    return without_reason || std::any_of(std::begin(opencl_terms), std::end(opencl_terms), [&](const char *word) {
             return metal_wording(printout.message, false).find(word) != std::string::npos;
           });
  };
  return speaks_of(group.head) || std::any_of(group.notes.begin(), group.notes.end(), speaks_of);
}

// If clang finds an error in a function's body, it ignores the function, and so chooses a different one for later
// calls. After a false alarm, only the flat pass reports errors that have nothing to do with address spaces.
bool is_of_strict_pass(const Group &group) {
  const auto speaks_of = [](const Printout &printout) {
    return is_of_test(printout) || printout.message.find("address space") != std::string::npos;
  };
  return speaks_of(group.head) || std::any_of(group.notes.begin(), group.notes.end(), speaks_of);
}

} // namespace

std::vector<Diagnostic> parse_clang(const std::string &output, const TokenList &tokens, const Printed &printed,
                                    const SourceLines &lines, bool strict) {
  std::vector<Diagnostic> diagnostics;
  uint32_t dismissed_line = 0;
  const std::vector<Group> groups = group_notes(output);
  const bool has_false_alarms = strict && std::any_of(groups.begin(), groups.end(), [](const Group &group) {
                                  return group.head.severity == Diagnostic::error && is_false_alarm(group);
                                });
  auto find_token = [&](const Printout &printout) {
    return printout.file == "<stdin>" ? printed.token_at(printout.line, printout.column) : UINT32_MAX;
  };
  for (const Group &group : groups) {
    if (has_false_alarms && group.head.severity == Diagnostic::error && !is_of_strict_pass(group)) continue;
    // Later diagnostics on the line of a false alarm are its consequences.
    bool in_program = group.head.file == "<stdin>";
    if (is_false_alarm(group) || (in_program && group.head.line == dismissed_line)) {
      if (in_program) dismissed_line = group.head.line;
      continue;
    }
    std::string message = metal_wording(without_flag(group.head.message));
    uint32_t token = find_token(group.head);
    bool located = token != UINT32_MAX;
    if (located) diagnostics.push_back(diagnostic_at(tokens, token, lines, group.head.severity, message));
    for (const Printout &note : group.notes) {
      if ((token = find_token(note)) == UINT32_MAX) continue;
      diagnostics.push_back(diagnostic_at(tokens, token, lines, located ? Diagnostic::note : group.head.severity,
                                          located ? metal_wording(without_flag(note.message)) : message));
      located = true;
    }
    if (!located) diagnostics.push_back({group.head.severity, "program_source", 0, 0, message});
  }
  return diagnostics;
}

std::vector<Diagnostic> parse_preprocessor(const std::string &output) {
  std::vector<Diagnostic> diagnostics;
  for (const Printout &printout : parse_lines(output)) {
    bool is_ours = printout.file.find('/') != std::string::npos && printout.severity == Diagnostic::note;
    if (!is_ours)
      diagnostics.push_back({printout.severity, printout.file == "<stdin>" ? "program_source" : printout.file,
                             printout.line, printout.column, without_flag(printout.message)});
  }
  return diagnostics;
}

std::string recursion_message(const std::string &caller, const std::string &callee, bool is_itself) {
  return "function '" + callee + "' calls " + (is_itself ? "itself" : "'" + caller + "' in turn") +
         ": recursion is not supported in Metal";
}

bool has_errors(const std::vector<Diagnostic> &diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic &diagnostic) { return diagnostic.severity == Diagnostic::error; });
}

std::string render(std::vector<Diagnostic> diagnostics, const SourceLines &lines) {
  // A note stays after the diagnostic that it explains.
  std::vector<std::vector<Diagnostic>> groups;
  for (Diagnostic &diagnostic : diagnostics) {
    if (diagnostic.severity != Diagnostic::note || groups.empty()) groups.emplace_back();
    groups.back().push_back(std::move(diagnostic));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto &a, const auto &b) {
    return std::make_pair(a[0].line, a[0].column) < std::make_pair(b[0].line, b[0].column);
  });
  constexpr const char *severities[] = {"error", "warning", "note"};
  std::string text;
  std::set<std::string> seen;
  for (const auto &group : groups)
    for (const Diagnostic &diagnostic : group) {
      std::string head =
          diagnostic.file +
          (diagnostic.line ? ":" + std::to_string(diagnostic.line) + ":" + std::to_string(diagnostic.column) : "") +
          ": " + severities[diagnostic.severity] + ": " + diagnostic.message + "\n";
      if (!seen.insert(head).second) {
        if (&diagnostic == &group[0]) break;
        continue;
      }
      text += head;
      const std::string *line = lines.line(diagnostic.file, diagnostic.line);
      if (line && diagnostic.column) text += *line + "\n" + std::string(diagnostic.column - 1, ' ') + "^\n";
    }
  return text;
}

} // namespace mrt
