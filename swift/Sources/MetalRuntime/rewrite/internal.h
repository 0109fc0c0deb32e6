// Definitions shared by the parts of the rewriter.
#pragma once

#include "rewrite/rewriter.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

namespace mrt {

struct FunctionConstant {
  std::string name, path; // path: such as "a::b::"
  std::string index;      // an expression; empty if the constant is derived from others
  std::string type;       // for a constant with an index: its type as spelled
  uint32_t declaration;
  std::set<std::string> required, optional; // the constants from which a derived constant is computed
};

struct KernelParameter {
  Range tokens; // without attributes
  uint32_t name = none;
  std::string spelled_type, flat_type, pointee; // flat_type: its spelling in the flat text
  std::string source;                           // mrt::ArgumentSource
  std::string space;                            // "device", "constant", "threadgroup" or empty
  std::string index;                            // an expression, or empty
  bool coherent = false;                        // declared coherent(device)
  uint32_t gate = none;                         // token that names the function constant of the attribute
};

// How a kernel uses a function constant, as in MrtEntry::constants_used.
enum class ConstantUse : uint8_t { none, optional, required };

struct Kernel {
  uint32_t declaration;
  std::string name;
  std::vector<KernelParameter> parameters;
  std::vector<ConstantUse> constants_used; // by position among the constants with an index
  std::string max_threads = "0";
};

// A name mentioned in a function's body: `name`, `qualifier::name`, or a member's.
struct Mention {
  std::string_view name, qualifier;
  bool is_member;
  bool operator<(const Mention &other) const {
    return std::tie(name, qualifier, is_member) < std::tie(other.name, other.qualifier, other.is_member);
  }
};

// The names that a function mentions; for a class, those in its bases and in the initializers of its members.
struct FunctionMentions {
  uint32_t name;                   // token of the name
  std::string path;                // such as "a::b::"; for a member, it includes the class
  std::string_view owner;          // that class, or empty
  std::set<Mention> names, guards; // guards: inside is_function_constant_defined( )
};

// The names in a function that refer to its local variables (locals.cpp).
class Locals {
public:
  Locals(const TokenList &tokens, const Declaration &function);
  // Returns whether the token declares or refers to a local variable. Must be called for tokens in order.
  bool hide(uint32_t index);

private:
  void take_parameters(Range range, std::initializer_list<std::string_view> ends);

  const TokenList &tokens;
  const uint32_t end;
  std::vector<uint32_t> closing;              // the open brackets
  std::map<std::string_view, uint32_t> until; // the end of each variable's scope
};

// The names that each function and class of the program mentions (mentions.cpp).
struct Mentions {
  std::vector<FunctionMentions> functions;
  std::map<std::string_view, std::vector<size_t>> by_name;
  std::set<std::string_view> scopes; // names of classes and namespaces
  // Names mentioned outside functions, such as the types of members and aliases: objects of these types may have any
  // name.
  std::set<std::string_view> outside;
  std::map<std::string_view, std::set<Mention>> instantiations; // in explicit instantiations, by the function's name
};

struct Rewriter {
  const TokenList &tokens;
  const SourceLines &lines;
  Program program;
  uint32_t version;
  Rewritten &result;
  std::vector<FunctionConstant> constants;
  std::vector<Kernel> kernels;
  Mentions mentions;
  std::set<uint32_t> renamed; // first tokens of the methods that have a different name in the flat text (objects.cpp)

  Edits &flat() { return result.flat; }
  Edits &strict() { return result.strict; }
  void erase(uint32_t first, uint32_t last) { flat().erase(first, last), strict().erase(first, last); }
  void replace(uint32_t token, const std::string &text) { flat().replace(token, text), strict().replace(token, text); }
  void report(uint32_t token, Diagnostic::Severity severity, std::string message) {
    result.diagnostics.push_back(diagnostic_at(tokens, token, lines, severity, std::move(message)));
  }
  void error(uint32_t token, std::string message) { report(token, Diagnostic::error, std::move(message)); }
  std::string text(Range range) const { return tokens.join(range.first, range.last); }
  std::string text(uint32_t token) const { return std::string(tokens[token].text); }
  const std::string &path(const Declaration &declaration) const { return program.scopes[declaration.scope].path; }
};

inline bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}
template <size_t count> bool one_of(std::string_view text, const std::string_view (&list)[count]) {
  return std::find(list, list + count, text) != list + count;
}
inline bool is_space(std::string_view text) { return one_of(text, {"device", "threadgroup", "constant", "thread"}); }
std::string quote(std::string_view text);                      // a C string literal
std::string flat_space(std::string_view space, bool is_const); // as spelled in a spaced flat text

// The passes, in the order in which they run; each is in a file named after it, unless noted.
void leave_out_stages(TokenList &tokens, const SourceLines &lines, std::vector<Diagnostic> &diagnostics);
void take_coherence(TokenList &tokens, const SourceLines &lines, uint32_t version,
                    std::vector<Diagnostic> &diagnostics);
void check_language(Rewriter &rewriter); // rules.cpp
void check_calls(Rewriter &rewriter);
bool may_recurse(const Rewriter &rewriter); // recursion.cpp
void check_addresses(Rewriter &rewriter);
void place_objects(Rewriter &rewriter); // methods.cpp
// Returns whether a declaration is a method that names no address space and whose object is in `thread`.
bool has_object_in_thread(const Rewriter &rewriter, const Declaration &declaration);
void rewrite_inputs(Rewriter &rewriter);
// Returns the attribute that makes a program-scope variable a kernel input; null if there is none.
const Attribute *program_input(const Rewriter &rewriter, const Declaration &declaration);
bool is_kernel_input(std::string_view attribute); // kernels.cpp
void rewrite_lambdas(Rewriter &rewriter);
void rewrite_spellings(Rewriter &rewriter);
void rewrite_scalars(Rewriter &rewriter);
bool names_builtin(const TokenList &tokens, uint32_t index); // the `__asm` with Apple's internal name
void mark_waits(Rewriter &rewriter);
void keep_loop_pragmas(Rewriter &rewriter); // loops.cpp
void guard_arrays(Rewriter &rewriter);      // arrays.cpp
void rewrite_constants(Rewriter &rewriter);
void rewrite_kernels(Rewriter &rewriter);
void check_positions(Rewriter &rewriter, const Declaration &kernel,
                     const std::vector<KernelParameter> &parameters);            // positions.cpp
void hoist_threadgroup_variables(Rewriter &rewriter, const Declaration &kernel); // variables.cpp
void rewrite_spaces(Rewriter &rewriter);
void find_overloads(Rewriter &rewriter);                                                      // duplicates.cpp
void tell_objects_apart(Rewriter &rewriter, const std::vector<const Declaration *> &methods); // objects.cpp
std::string shape(const TokenList &tokens, const Declaration &declaration);                   // without address spaces
void drop_duplicates(Rewriter &rewriter);
// Returns the type of a parameter, without its name, attributes and default (duplicates.cpp).
Range type_of_parameter(const TokenList &tokens, Range part);

void collect_mentions(Rewriter &rewriter); // mentions.cpp
// The functions that a function can call, including itself, and all names that they mention.
struct Reach {
  std::vector<const FunctionMentions *> functions;
  std::set<std::string_view> names;
};
Reach reach(const Rewriter &rewriter, const Declaration &function);
// Returns whether a name in a function refers to the entity declared as `path` + `name`.
bool means(const Mentions &mentions, const FunctionMentions &place, const Mention &mention, const std::string &path);
std::vector<ConstantUse> constants_used(const Rewriter &rewriter, const Declaration &function,
                                        const std::vector<KernelParameter> &parameters);
std::vector<DeclaredConstant> declared_constants(const Rewriter &rewriter, const std::vector<ConstantUse> &uses);

} // namespace mrt
