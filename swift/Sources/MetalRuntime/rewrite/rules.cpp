// Reports errors that Metal reports but clang's C++ would not: C++ keywords that MSL excludes (MSL 1.5.1), and pointers
// and references without an address space (MSL 4).
#include "rewrite/internal.h"

#include <sstream>

namespace mrt {
namespace {

struct Refusal {
  std::string_view keyword, message;
};
constexpr Refusal refusals[] = {
    {"double", "'double' is not supported in Metal"},
    {"goto", "'goto' is not supported in Metal"},
    {"virtual", "virtual functions are not supported in Metal"},
    {"new", "'new' is not supported in Metal"},
    {"try", "cannot use 'try' with exceptions disabled"},
    {"throw", "cannot use 'throw' with exceptions disabled"},
    {"catch", "cannot use 'catch' with exceptions disabled"},
    {"thread_local", "thread-local storage is not supported for the current target"},
    {"dynamic_cast", "use of dynamic_cast requires -frtti"},
    {"typeid", "use of typeid requires -frtti"},
    {"asm", "'asm' is not supported in Metal"},
    {"__asm", "'asm' is not supported in Metal"},
    {"__asm__", "'asm' is not supported in Metal"},
};

// Scalar types of clang's extensions, which table 2.1 of MSL does not have.
constexpr std::string_view foreign_types[] = {"__int128",    "__int128_t", "__uint128_t", "_Complex",
                                              "__complex__", "_Float16",   "__fp16",      "__bf16"};

// Metal's keywords that clang would take for names.
constexpr std::string_view keywords[] = {"vertex", "fragment", "ray_data", "object_data", "threadgroup_imageblock"};

// Metal's templates and namespaces that this device does not support, and why.
constexpr Refusal absent[] = {
    {"texture2d_ms", "only a render pass writes textures of several samples a pixel, and this device has none"},
    {"texture2d_ms_array", "only a render pass writes textures of several samples a pixel, and this device has none"},
    {"depth2d_ms", "only a render pass writes textures of several samples a pixel, and this device has none"},
    {"depth2d_ms_array", "only a render pass writes textures of several samples a pixel, and this device has none"},
    {"imageblock", "only a render pass has blocks of an image, and this device has none"},
    {"visible_function_table", "this device calls no functions through tables"},
    {"intersection_function_table", "this device traces no rays"},
    {"raytracing", "this device traces no rays"},
};

// Types by which a kernel encodes commands (MSL 6.16).
constexpr std::string_view command_types[] = {"command_buffer",        "render_command",         "compute_command",
                                              "render_pipeline_state", "compute_pipeline_state", "depth_stencil_state"};

// Attributes that would make code run, or be placed, outside a kernel's code.
constexpr std::string_view refused_attributes[] = {"constructor", "destructor", "init_priority", "ifunc",
                                                   "alias",       "weakref",    "section",       "cleanup"};
constexpr std::string_view refused_pragmas[] = {"clang attribute", "clang section", "weak", "redefine_extname",
                                                "comment"};

constexpr std::string_view scalar_types[] = {
    "void",     "bool",    "char",     "short",   "int",      "long",    "float",   "half",      "bfloat",
    "unsigned", "signed",  "uchar",    "ushort",  "uint",     "ulong",   "size_t",  "ptrdiff_t", "int8_t",
    "uint8_t",  "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"};

class Rules {
public:
  explicit Rules(Rewriter &rewriter) : rewriter(rewriter), tokens(rewriter.tokens) {}

  void run() {
    for (uint32_t index = 0; index < tokens.size(); index++) {
      if (tokens.is_identifier(index)) check_word(index);
      if (tokens[index].kind == TokenKind::directive) check_directive(index);
      if (tokens[index].kind == TokenKind::number) check_number(index);
      if (one_of(tokens[index].text, {"__attribute__", "__attribute", "__declspec"}) && tokens.is(index + 1, "("))
        check_attributes({index + 2, tokens[index + 1].partner});
      if (opens_attribute(tokens, index) &&
          one_of(tokens[index + 2].text, {"gnu", "clang", "using", "__gnu__", "_Clang"}))
        check_attributes({index + 2, tokens[index].partner});
    }
    collect_types();
    for (uint32_t index = 0; index < tokens.size(); index++) {
      if (one_of(tokens[index].text, {"typedef", "using"})) check_alias(index);
      if (one_of(tokens[index].text, command_types)) check_command(index);
      if (tokens.is(index, "[") && index > 1 && tokens.is(index + 1, "0") && tokens.is(index + 2, "]") &&
          tokens.is_identifier(index - 1) && is_type(index - 2))
        rewriter.error(index - 1, "zero-length arrays are not permitted in Metal");
    }
    for (const Declaration &declaration : rewriter.program.declarations) {
      check_declaration(declaration);
      for (const Attribute &attribute : declaration.attributes) check_whole(attribute);
      check_index(declaration);
    }
  }

private:
  void check_word(uint32_t index) {
    std::string_view text = tokens[index].text;
    bool is_member = index > 0 && one_of(tokens[index - 1].text, {".", "->", "::"});
    const bool of_metal = index > 1 && tokens.is(index - 1, "::") && tokens.is(index - 2, "metal");
    const bool opens = index > 1 && one_of(tokens[index - 1].text, {"namespace", "::"}) && tokens.is(index + 1, ";");
    if ((of_metal || !is_member) && (tokens.is(index + 1, "<") || tokens.is(index + 1, "::") || opens))
      for (const Refusal &refusal : absent)
        if (text == refusal.keyword)
          return rewriter.error(index, "'" + std::string(text) + "' is not available: " + std::string(refusal.message));
    // as_type is parsed like static_cast: it belongs to no namespace, and its type must be given.
    if (text == "as_type" && is_member) return rewriter.error(index, "expected unqualified-id");
    if (text == "as_type" && !tokens.is(index + 1, "<")) return rewriter.error(index, "expected '<' after 'as_type'");
    if (is_member) return;
    if (text == "texture_buffer" && tokens.is(index + 1, "<")) check_texture_buffer(index + 1);
    if (one_of(text, {"asm", "__asm", "__asm__"}) && names_builtin(tokens, index)) return;
    for (const Refusal &refusal : refusals)
      if (text == refusal.keyword) return rewriter.error(index, std::string(refusal.message));
    if (one_of(text, foreign_types))
      return rewriter.error(index, "'" + std::string(text) + "' is not supported in Metal");
    if (one_of(text, keywords) && is_name(index))
      return rewriter.error(index, "expected a name (got the keyword '" + std::string(text) + "')");
    bool deletes = text == "delete" && !tokens.is(index - 1, "=") && !tokens.is(index - 1, "operator");
    if (deletes) rewriter.error(index, "'delete' is not supported in Metal");
    if (text == "long" && tokens.is(index + 1, "long")) rewriter.error(index, "'long long' is not supported in Metal");
    // The specifier of a function follows its parameters; the operator begins an expression.
    if (text == "noexcept" && tokens.is(index + 1, "(") && index > 0 &&
        one_of(tokens[index - 1].text, {"=", "(", ",", "return", "!", "?", ":", "{", ";", "||"}))
      rewriter.error(index, "the operator 'noexcept' is not supported in Metal");
    if (text == "bfloat" && rewriter.version < 310) rewriter.error(index, "unknown type name 'bfloat'");
  }

  // Whether a word stands where only a name can stand: `float4 vertex = …`, `vertex.x`, but not `vertex float4 f(…)`.
  bool is_name(uint32_t index) const {
    if (index == 0 || index + 1 >= tokens.size()) return false;
    if (opens_attribute(tokens, index + 1) || one_of(tokens[index - 1].text, {"[", "("})) return false;
    return one_of(tokens[index + 1].text,
                  {"=", ";", ",", ")", "[", ".", "(", "{", "+", "-", "*", "/", "+=", "-=", "*="});
  }

  // `1.0L`, but not the `L` of an integer.
  void check_number(uint32_t index) {
    const std::string_view text = tokens[index].text;
    const bool is_hexadecimal = text.size() > 1 && one_of(text.substr(0, 2), {"0x", "0X"});
    const bool is_real = text.find_first_of(is_hexadecimal ? ".pP" : ".eE") != text.npos;
    if (is_real && one_of(text.substr(text.size() - 1), {"l", "L"}))
      rewriter.error(index, "'long double' is not supported in Metal");
  }

  // The index of an attribute is a whole number.
  void check_whole(const Attribute &attribute) {
    if (!one_of(tokens[attribute.name].text, {"id", "function_constant", "max_total_threads_per_threadgroup"})) return;
    if (is_fraction(tokens, attribute.arguments))
      rewriter.error(attribute.name,
                     "'" + std::string(tokens[attribute.name].text) + "' attribute requires an integer constant");
  }

  // A texture buffer has no access by samplers (MSL 2.9).
  void check_texture_buffer(uint32_t opening) {
    const uint32_t end = after_angles(tokens, opening, uint32_t(tokens.size()));
    for (uint32_t index = opening; index + 2 < end; index++)
      if (tokens.is(index, "access") && tokens.is(index + 2, "sample"))
        rewriter.error(index, "a texture_buffer can't be sampled: its access is read, write or read_write");
  }

  void check_attributes(Range group) {
    for (uint32_t index = group.first; index < group.last; index++) {
      std::string_view name = tokens[index].text;
      if (!tokens.is_identifier(index)) continue;
      if (name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__")
        name = name.substr(2, name.size() - 4);
      if (one_of(name, refused_attributes))
        rewriter.error(index, "attribute '" + std::string(name) + "' is not supported in Metal");
    }
  }

  // Preprocessing keeps pragmas and line markers; a `#` that comes from a macro cannot start another directive.
  void check_directive(uint32_t index) {
    std::istringstream words{std::string(tokens[index].text.substr(tokens[index].text.find('#') + 1))};
    std::string word, second;
    words >> word;
    if (word == "line" || word.empty() || isdigit((unsigned char)word[0])) return;
    if (word != "pragma") return rewriter.error(index, "a macro can't expand to the directive '#" + word + "'");
    words >> word >> second;
    if (one_of(word, refused_pragmas) || one_of(word + " " + second, refused_pragmas))
      rewriter.error(index, "'#pragma " + (one_of(word, refused_pragmas) ? word : word + " " + second) +
                                "' is not supported in Metal");
  }

  // Members of an argument buffer have different indices, from 0 on, and point to buffers (MSL 2.13).
  void check_index(const Declaration &declaration) {
    for (const Attribute &attribute : declaration.attributes) {
      if (!tokens.is(attribute.name, "id") || !attribute.arguments.exists()) continue;
      if (!take_ids(declaration, rewriter.text(attribute.arguments)))
        rewriter.error(attribute.name, "another member has the same 'id'");
      if (tokens.is(attribute.arguments.first, "-"))
        rewriter.error(attribute.name, "'id' attribute parameter is out of bounds: must not be negative");
      for (uint32_t index = declaration.start; index < declaration.name && declaration.name != none; index++)
        if (one_of(tokens[index].text, {"threadgroup", "thread"}))
          rewriter.error(index, "a member of an argument buffer can't point to '" + std::string(tokens[index].text) +
                                    "' memory: expected device or constant");
    }
  }

  // Takes the indices of a member: an array has one for each element. Returns whether all of them were free.
  bool take_ids(const Declaration &declaration, const std::string &text) {
    char *end = nullptr;
    const unsigned long first = strtoul(text.c_str(), &end, 0);
    if (end == text.c_str() || *end) return indices.insert({declaration.scope, text}).second;
    unsigned long count = array_count(tokens, {declaration.start, declaration.tokens.last});
    const bool is_array = declaration.name != none && tokens.is(declaration.name + 1, "[");
    if (is_array && !opens_attribute(tokens, declaration.name + 1))
      count = literal(tokens, {declaration.name + 2, tokens[declaration.name + 1].partner});
    bool free = true;
    for (unsigned long at = first; at < first + count; at++)
      free &= indices.insert({declaration.scope, std::to_string(at)}).second;
    return free;
  }

  // Collects the program's classes, to distinguish `Point *p` from a product.
  void collect_types() {
    for (const Declaration &declaration : rewriter.program.declarations)
      if (declaration.kind == DeclarationKind::type && declaration.name != none) {
        types.insert(tokens[declaration.name].text);
        if (!tokens.is(declaration.start, "enum")) classes.insert(tokens[declaration.name].text);
      }
  }

  // Only a declaration such as `command_buffer b`, since programs have variables of these names.
  void check_command(uint32_t index) {
    const bool is_member = index > 0 && one_of(tokens[index - 1].text, {".", "->"});
    if (is_member || !tokens.is_identifier(index + 1) || types.count(tokens[index].text)) return;
    rewriter.error(index, "'" + std::string(tokens[index].text) +
                              "' is not available: this device has no indirect command buffers");
  }

  bool is_type(uint32_t index) const {
    std::string_view text = tokens[index].text;
    // Removes the digit of a vector such as float4.
    while (!text.empty() && isdigit((unsigned char)text.back()) && !one_of(text, scalar_types)) text.remove_suffix(1);
    return tokens.is_identifier(index) && (one_of(text, scalar_types) || types.count(tokens[index].text));
  }

  void check_declaration(const Declaration &declaration) {
    check_templates(declaration);
    if (declaration.name == none) return;
    check_sampler(declaration);
    if (declaration.kind == DeclarationKind::type) check_type(declaration);
    if (declaration.kind == DeclarationKind::function) check_function(declaration);
    if (declaration.kind == DeclarationKind::variable) check_variable(declaration);
  }

  // Metal is C++14 up to version 3.2, and C++17 from 4 on. Metal's compiler accepts the same extensions as clang.
  void check_templates(const Declaration &declaration) {
    for (Range header : declaration.templates)
      for (uint32_t index = header.first; index < header.last && rewriter.version < 400; index++)
        if (tokens.is(index, "auto")) rewriter.error(index, "'auto' not allowed in template parameter before Metal 4");
  }

  // MSL excludes derived classes. Nevertheless, traits derive from constants, in programs and in Metal's library.
  void check_type(const Declaration &declaration) {
    if (!declaration.body.exists() || tokens.is(declaration.start, "enum")) return;
    bool derives = false;
    for (uint32_t index = declaration.name; index + 1 < declaration.body.first; index++)
      derives |= tokens.is(index, ":");
    if (derives && has_members(declaration.body))
      rewriter.report(declaration.name, Diagnostic::warning, "derived classes are not part of the Metal language");
  }

  bool has_members(Range body) const {
    const auto is_member = [&](const Declaration &declaration) {
      const bool inside = declaration.tokens.first >= body.first && declaration.tokens.last <= body.last;
      return inside && (declaration.kind == DeclarationKind::function ||
                        (declaration.kind == DeclarationKind::variable && !is_static(declaration)));
    };
    const auto &declarations = rewriter.program.declarations;
    return std::any_of(declarations.begin(), declarations.end(), is_member);
  }

  bool is_static(const Declaration &declaration) const {
    for (uint32_t index = declaration.start; index < declaration.tokens.last; index++)
      if (tokens.is(index, "static")) return true;
    return false;
  }

  void check_function(const Declaration &declaration) {
    template_names(declaration);
    if (tokens.is(declaration.name, "main") && !rewriter.program.scopes[declaration.scope].is_class &&
        declaration.attributes.empty() && !is_qualified(declaration))
      rewriter.error(declaration.name, "non-qualified function cannot be called 'main'");
    if (!tokens.is(declaration.name, "operator") ||
        one_of(tokens[declaration.name + 1].text, {"=", "+=", "-=", "*=", "/=", "[", "++", "--"}))
      check_pointers({declaration.start, declaration.name});
    for (Range part : split_commas(tokens, declaration.parameters)) check_pointers(part);
    if (declaration.body.exists()) check_body(declaration.body);
  }

  // Whether a keyword makes a function one that the host calls.
  bool is_qualified(const Declaration &declaration) const {
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      if (one_of(tokens[index].text, {"kernel", "vertex", "fragment"})) return true;
    return false;
  }

  void check_variable(const Declaration &declaration) {
    template_names(declaration);
    check_pointers({declaration.start, declaration.name});
    for (const Attribute &attribute : declaration.attributes)
      if (tokens.is(attribute.name, "function_constant") && declaration.name > declaration.start &&
          is_compound(tokens[declaration.name - 1].text))
        rewriter.error(declaration.name, "a function constant must be of a scalar or vector type");
    check_braces(declaration);
    bool of_namespace = !rewriter.program.scopes[declaration.scope].is_class, constant = false;
    if (of_namespace && is_pointer(declaration))
      rewriter.error(declaration.name, "program scope variable must reside in constant address space");
    if (!of_namespace && is_static(declaration) && !has_constant(declaration))
      rewriter.error(declaration.name, "static data member must reside in constant address space");
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      constant |= one_of(tokens[index].text, {"constant", "sampler", "threadgroup"});
    // Clang reports members in an address space, but not arrays.
    if (!of_namespace && tokens.is(declaration.name + 1, "["))
      for (uint32_t index = declaration.start; index + 1 < declaration.name; index++)
        if (one_of(tokens[index].text, {"device", "threadgroup"}) && tokens.is_identifier(index + 1) &&
            index + 2 == declaration.name)
          rewriter.error(index, "a member may not be in an address space");
    if (of_namespace && !constant && !program_input(rewriter, declaration) && declaration.parameters.first == none &&
        declaration.start < declaration.name &&
        (declaration.initializer != none || tokens.is(declaration.tokens.last - 1, ";")) &&
        is_type(declaration.name - 1))
      rewriter.error(declaration.name, "program scope variable must reside in constant address space");
  }

  // A pointer without a space for itself: `constant float *p`, but not `constant float *constant p`.
  bool is_pointer(const Declaration &declaration) const {
    uint32_t index = declaration.name;
    do {
      if (index == declaration.start) return false;
      index--;
    } while (one_of(tokens[index].text, {"const", "volatile"}));
    bool spaced = false;
    for (uint32_t first = declaration.start; first < index; first++) spaced |= is_space(tokens[first].text);
    return spaced && tokens.is(index, "*") && declaration.parameters.first == none &&
           !program_input(rewriter, declaration) &&
           (declaration.initializer != none || tokens.is(declaration.tokens.last - 1, ";"));
  }

  // `constant float2 v = {1, 2, 3};`: clang does not check lists in a program's scope.
  void check_braces(const Declaration &declaration) {
    if (declaration.initializer == none || declaration.name == declaration.start) return;
    const std::string_view type = tokens[declaration.name - 1].text;
    const bool is_vector = type.size() > 3 && one_of(type.substr(type.size() - 1), {"2", "3", "4"}) &&
                           one_of(type.substr(0, type.size() - 1), scalar_types);
    if (!is_vector || tokens.is(declaration.name + 1, "[")) return;
    const uint32_t opening = declaration.initializer + (tokens.is(declaration.initializer, "=") ? 1 : 0);
    if (!tokens.is(opening, "{")) return;
    const std::vector<Range> elements = split_commas(tokens, {opening + 1, tokens[opening].partner});
    const size_t trailing = !elements.empty() && elements.back().size() == 0;
    if (elements.size() - trailing > size_t(type.back() - '0'))
      rewriter.error(opening, "excess elements in vector initializer");
  }

  // Classes, and matrices such as float4x4.
  bool is_compound(std::string_view type) const {
    const size_t size = type.size();
    const bool is_matrix = size > 3 && type[size - 2] == 'x' && isdigit((unsigned char)type[size - 1]) &&
                           isdigit((unsigned char)type[size - 3]);
    return is_matrix || classes.count(type);
  }

  bool has_constant(const Declaration &declaration) const {
    for (uint32_t index = declaration.start; index < declaration.name; index++)
      if (one_of(tokens[index].text, {"const", "constexpr", "constant"})) return true;
    return false;
  }

  // Samplers and textures of a program's scope are constant too: `constexpr sampler s(…)`.
  void check_sampler(const Declaration &declaration) {
    if (rewriter.program.scopes[declaration.scope].is_class || has_constant(declaration) ||
        program_input(rewriter, declaration) || !tokens.is(declaration.tokens.last - 1, ";"))
      return;
    const std::string_view type = tokens[declaration.start].text;
    // `sampler s(filter::linear);` looks like a function's declaration.
    const bool is_sampler = type == "sampler" && declaration.name == declaration.start + 1 &&
                            (tokens.is(declaration.name + 1, ";") || tokens.is(declaration.name + 3, "::"));
    const bool is_texture = declaration.kind == DeclarationKind::variable &&
                            (type.substr(0, 7) == "texture" || type.substr(0, 5) == "depth") &&
                            tokens.is(declaration.start + 1, "<") && tokens.is(declaration.name - 1, ">");
    if (is_sampler || is_texture)
      rewriter.error(declaration.name, "program scope variable must reside in constant address space");
  }

  // Classes inside functions. Clang reports members in other address spaces.
  void check_local_class(uint32_t opening) {
    for (uint32_t index = opening + 1; index < tokens[opening].partner; index = uint32_t(tokens.after_group(index))) {
      if (!tokens.is(index, "threadgroup") || !one_of(tokens[index - 1].text, {"{", "}", ";", ":", "const"})) continue;
      bool points = false;
      for (uint32_t inner = index; !tokens.is(inner, ";") && inner < tokens[opening].partner;
           inner = uint32_t(tokens.after_group(inner)))
        points |= one_of(tokens[inner].text, {"*", "&", "("});
      if (!points) rewriter.error(index, "a member may not be in an address space");
    }
  }

  void template_names(const Declaration &declaration) {
    parameters.clear();
    for (Range header : declaration.templates)
      for (uint32_t index = header.first; index + 1 < header.last; index++)
        if (one_of(tokens[index].text, {"typename", "class"})) parameters.insert(tokens[index + 1].text);
  }

  // Checks the type in one declaration: an address space must precede the first `*` or `&`. Further ones may omit it,
  // which means `thread`: MLX declares `const device T *&`. Those of function types and template arguments belong to
  // another type, and are not checked.
  void check_pointers(Range range) {
    bool named = false, free = false;
    for (uint32_t index = range.first; index < range.last; index = uint32_t(tokens.after_group(index))) {
      std::string_view text = tokens[index].text;
      if (text == "=") return;
      if (text == "<" && index > range.first && tokens.is_identifier(index - 1)) {
        index = after_angles(tokens, index, range.last) - 1;
        continue;
      }
      named |= is_space(text);
      free |= text == "auto" || parameters.count(text) || text == "typename" || tokens.is(index + 1, "::");
      if (!one_of(text, {"*", "&", "&&"})) continue;
      if (!named && !free) return report(index);
    }
  }

  // Checks `typedef float *P;` and `using P = float *;`.
  void check_alias(uint32_t first) {
    bool spaced = false;
    for (uint32_t index = first; index < tokens.size() && !tokens.is(index, ";");
         index = uint32_t(tokens.after_group(index))) {
      spaced |= is_space(tokens[index].text);
      if (one_of(tokens[index].text, {"*", "&"}) && !spaced && is_type(index - 1)) return report(index);
    }
  }

  // A static variable in a function would be shared by the whole program.
  void check_static(uint32_t first) {
    for (uint32_t index = first; index < tokens.size() && !one_of(tokens[index].text, {"=", ";", "{", "["}); index++)
      if (one_of(tokens[index].text, {"constant", "("})) return;
    rewriter.error(first, "static local variable must reside in constant address space");
  }

  // Whether a name before a `:` is a label, and not an enumerator, a section of a class or an unnamed bit-field.
  bool is_label(uint32_t index) const {
    return tokens.is_identifier(index) && index > 0 && one_of(tokens[index - 1].text, {";", "{", "}"}) &&
           !one_of(tokens[index].text, {"default", "public", "private", "protected"}) && !is_type(index);
  }

  // An external variable is one of the program's scope, and these are constant (MSL 4.2).
  void check_external(Range body, uint32_t first) {
    for (uint32_t index = first; index < body.last && !tokens.is(index, ";"); index++)
      if (one_of(tokens[index].text, {"constant", "("})) return;
    rewriter.error(first, "program scope variable must reside in constant address space");
  }

  void report(uint32_t index) {
    rewriter.error(index, std::string(tokens.is(index, "*") ? "pointer" : "reference") +
                              " type must have explicit address space qualifier");
  }

  // Checks `float *p =`, a lambda's `(float *p)`, `(float *)p` and `static_cast<float *>(p)`, only if the preceding
  // name is certainly a type.
  void check_body(Range body) {
    for (uint32_t index = body.first; index + 1 < body.last; index++) {
      if (tokens.is(index, "static")) check_static(index);
      if (tokens.is(index, "extern")) check_external(body, index);
      if (tokens.is(index, ":") && is_label(index - 1))
        rewriter.error(index - 1, "labeled statements are not supported in Metal");
      if (one_of(tokens[index].text, {"struct", "class", "union"})) {
        const uint32_t opening = tokens.is(index + 1, "{") ? index + 1 : index + 2;
        if (tokens.is(opening, "{")) check_local_class(opening);
      }
      if (!one_of(tokens[index].text, {"*", "&"}) || !is_type(index - 1)) continue;
      uint32_t first = index - 1;
      while (first > body.first &&
             (one_of(tokens[first - 1].text, {"const", "volatile", "unsigned"}) || is_space(tokens[first - 1].text)))
        first--;
      bool spaced = false;
      for (uint32_t inner = first; inner < index; inner++) spaced |= is_space(tokens[inner].text);
      if (spaced) continue;
      std::string_view before = tokens[first - 1].text;
      bool declares = one_of(before, {";", "{", "}", "(", ","}) && tokens.is_identifier(index + 1) &&
                      one_of(tokens[index + 2].text, {"=", ";", ",", ")"});
      bool casts = tokens.is(index + 1, ")") && before == "(" && !tokens.is(first - 2, "sizeof");
      bool casts_by_name = tokens.is(index + 1, ">") && before == "<" && first >= 2 &&
                           one_of(tokens[first - 2].text, {"static_cast", "reinterpret_cast", "const_cast"});
      if (declares || casts || casts_by_name) report(index);
    }
  }

  Rewriter &rewriter;
  const TokenList &tokens;
  std::set<std::string_view> types, classes, parameters;
  std::set<std::pair<uint32_t, std::string>> indices; // of members: the scope of the class, and the argument
};

} // namespace

void check_language(Rewriter &rewriter) { Rules(rewriter).run(); }

} // namespace mrt
