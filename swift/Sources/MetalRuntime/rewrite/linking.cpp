#include "rewrite/linking.h"

#include "rewrite/edits.h"
#include "rewrite/internal.h"

#include <cstring>
#include <utility>

namespace mrt {
namespace {

// A declaration in a namespace, or a `using`, `typedef` or `static_assert`.
struct Piece {
  Range tokens;
  const Declaration *declaration = nullptr; // null for a `using`, `typedef` or `static_assert`
  std::string symbol;                       // of a function or variable: its scopes, its name, and parameters
  std::string name;                         // with its scopes
  bool defines = false;
  bool is_visible = false;             // in other files
  bool is_entry = false;               // a kernel
  std::vector<std::string_view> names; // mentioned by another piece, they bring this one
};

// A file of the library, split into pieces.
struct File {
  const TokenList &tokens;
  Program program;
  std::vector<Piece> pieces;
  std::map<std::string_view, std::vector<size_t>> by_name;
  std::map<std::string, size_t> definitions; // the visible ones, by symbol
  std::set<std::string> defined, declared;   // symbols
  std::vector<bool> is_used;                 // by position in pieces

  bool lacks(const std::string &symbol) const { return declared.count(symbol) && !defined.count(symbol); }
};

class Splitter {
public:
  explicit Splitter(const TokenList &tokens)
      : tokens(tokens), file{tokens, parse_program(tokens), {}, {}, {}, {}, {}, {}} {
    for (const Declaration &declaration : file.program.declarations)
      if (!scope(declaration).is_class) starts[declaration.tokens.first] = &declaration;
      else if (is_plain_function(declaration) && !declaration.body.exists()) file.declared.insert(symbol(declaration));
  }

  File split() {
    for (uint32_t index = 0; index < tokens.size();) index = step(index);
    for (size_t position = 0; position < file.pieces.size(); position++) {
      const Piece &piece = file.pieces[position];
      for (std::string_view name : piece.names) file.by_name[name].push_back(position);
      if (piece.symbol.empty()) continue;
      (piece.defines ? file.defined : file.declared).insert(piece.symbol);
      if (piece.defines && piece.is_visible) file.definitions.emplace(piece.symbol, position);
    }
    file.is_used.resize(file.pieces.size());
    return std::move(file);
  }

private:
  const Scope &scope(const Declaration &declaration) const { return file.program.scopes[declaration.scope]; }

  bool is_plain_function(const Declaration &declaration) const {
    return declaration.kind == DeclarationKind::function && declaration.templates.empty() && declaration.name != none;
  }

  bool contains(Range range, std::initializer_list<std::string_view> words) const {
    for (uint32_t index = range.first; index < range.last; index++)
      if (one_of(tokens[index].text, words)) return true;
    return false;
  }

  uint32_t step(uint32_t index) {
    const auto found = starts.find(index);
    if (found != starts.end()) return add(*found->second);
    if (tokens[index].kind == TokenKind::directive || tokens.is(index, ";")) return index + 1;
    if (tokens.is(index, "}")) {
      if (!is_hidden.empty()) is_hidden.pop_back();
      return index + 1;
    }
    const uint32_t word = tokens.is(index, "inline") ? index + 1 : index;
    uint32_t end = index;
    while (end < tokens.size() && !one_of(tokens[end].text, {"{", ";"})) end++;
    if (one_of(tokens[word].text, {"namespace", "extern"}) && tokens.is(end, "{")) {
      is_hidden.push_back(tokens.is(word, "namespace") && end == word + 1);
      return end + 1;
    }
    return add_other(index);
  }

  // An alias is found by the name that it declares: that after `using`, the last one of a `typedef`, or `(*name)`.
  uint32_t add_other(uint32_t index) {
    Piece piece;
    uint32_t end = index;
    while (end < tokens.size() && !tokens.is(end, ";")) end = uint32_t(tokens.after_group(end));
    piece.tokens = {index, std::min(end + 1, uint32_t(tokens.size()))};
    if (tokens.is(index, "using") && tokens.is(index + 2, "=")) piece.names = {tokens[index + 1].text};
    for (uint32_t at = index + 1; tokens.is(index, "typedef") && at < end; at++)
      if (tokens.is_identifier(at) && (one_of(tokens[at + 1].text, {";", ",", "["}) || tokens.is(at - 1, "*")))
        piece.names.push_back(tokens[at].text);
    if (!piece.names.empty()) piece.name = piece.names[0];
    piece.defines = !piece.names.empty();
    file.pieces.push_back(piece);
    return piece.tokens.last;
  }

  uint32_t add(const Declaration &declaration) {
    Piece piece;
    piece.tokens = declaration.tokens;
    piece.declaration = &declaration;
    if (declaration.name != none) {
      piece.names = {tokens[declaration.name].text};
      piece.name = scope(declaration).path + qualified_name(declaration);
    }
    const Range before{declaration.tokens.first, declaration.name == none ? declaration.start : declaration.name};
    const bool is_local =
        contains(before, {"static", "inline", "constexpr"}) || std::count(is_hidden.begin(), is_hidden.end(), true) > 0;
    if (declaration.kind == DeclarationKind::function) {
      piece.defines = declaration.body.exists();
      if (is_plain_function(declaration)) piece.symbol = symbol(declaration), piece.is_entry = is_entry(declaration);
      piece.is_visible = !is_local && !piece.symbol.empty() && !declaration.template_arguments.exists();
      for (uint32_t index = declaration.start; index < declaration.name; index++)
        if (tokens.is(index + 1, "::")) piece.names.push_back(tokens[index].text); // the class of a method
    } else if (declaration.kind == DeclarationKind::variable) {
      piece.defines = declaration.initializer != none || !contains(before, {"extern"});
      if (declaration.templates.empty()) piece.symbol = piece.name;
      piece.is_visible = !contains(before, {"static"}) && declaration.initializer != none;
      add_names(piece, declaration.name == none ? declaration.tokens.last : declaration.name + 1);
    } else {
      piece.defines = declaration.body.exists();
      if (declaration.body.exists()) add_names(piece, declaration.body.last);
      if (contains(before, {"enum"}))
        for (uint32_t index = declaration.body.first; index < declaration.body.last; index++)
          if (tokens.is_identifier(index)) piece.names.push_back(tokens[index].text);
      if (piece.name.empty() && !piece.names.empty()) piece.name = piece.names[0];
    }
    file.pieces.push_back(piece);
    return std::max(declaration.tokens.last, declaration.tokens.first + 1);
  }

  // Adds the names behind commas and at the end, as in `int a = 1, b;` and `typedef struct { … } c;`.
  void add_names(Piece &piece, uint32_t index) const {
    for (; index < piece.tokens.last; index = uint32_t(tokens.after_group(index)))
      if (tokens.is_identifier(index) && one_of(tokens[index - 1].text, {",", "}", "*"}))
        piece.names.push_back(tokens[index].text);
  }

  // The name after the classes that are written before it.
  std::string qualified_name(const Declaration &declaration) const {
    uint32_t first = declaration.name;
    while (first > declaration.start + 1 && tokens.is(first - 1, "::") && tokens.is_identifier(first - 2)) first -= 2;
    std::string name;
    const uint32_t last =
        tokens.is(declaration.name, "operator") ? declaration.parameters.first - 1 : declaration.name + 1;
    for (; first < last; first++) name += tokens[first].text;
    return name;
  }

  bool is_entry(const Declaration &declaration) const {
    return contains({declaration.tokens.first, declaration.name}, {"kernel", "vertex", "fragment", "mesh", "object"});
  }

  // The name in messages: `a::f(float, device int *)`. It omits the type of the result, and the parameters of a kernel,
  // which the host calls by its name alone.
  std::string symbol(const Declaration &declaration) const {
    std::string text = scope(declaration).path + qualified_name(declaration), separator = "(";
    if (is_entry(declaration)) return text;
    for (Range part : split_commas(tokens, declaration.parameters)) {
      const Range type = type_of_parameter(tokens, part);
      const bool points = contains(type, {"*", "&", "["}); // else `const` is no part of the type
      for (uint32_t index = type.first; index < type.last; index++)
        if (points || !tokens.is(index, "const"))
          text += std::exchange(separator, " ") + std::string(tokens[index].text);
      separator = ", ";
    }
    return text + (separator == "(" ? "()" : ")");
  }

  const TokenList &tokens;
  File file;
  std::map<uint32_t, const Declaration *> starts; // the declarations in namespaces, by their first tokens
  std::vector<bool> is_hidden;                    // of the open namespaces: those without a name
};

class Linker {
public:
  Linker(const std::vector<TokenList> &texts, const SourceLines &lines, std::vector<Diagnostic> &diagnostics)
      : lines(lines), diagnostics(diagnostics) {
    for (const TokenList &tokens : texts) files.push_back(Splitter(tokens).split());
  }

  // A function that two files define is an error, even if both are the same text.
  void compare_definitions() {
    std::map<std::string, const File *> known;
    for (const File &file : files)
      for (const auto &[symbol, position] : file.definitions) {
        const Piece &piece = file.pieces[position];
        if (piece.declaration->kind != DeclarationKind::function) continue;
        const auto [first, is_new] = known.emplace(symbol, &file);
        if (!is_new) report_two(symbol, *first->second, file);
      }
  }

  std::string run() {
    for (const std::string &symbol : files[0].declared)
      if (files[0].lacks(symbol)) define(symbol);
    std::string text = *files[0].tokens.text;
    for (const Piece &piece : files[0].pieces) know(files[0], piece);
    for (size_t number = 1; number < files.size(); number++) text += text_of(files[number], number);
    return text;
  }

private:
  void define(const std::string &symbol) {
    File *provider = nullptr;
    if (!wanted.insert(symbol).second) return;
    for (size_t number = 1; number < files.size(); number++) {
      if (!files[number].definitions.count(symbol)) continue;
      if (provider) return report_two(symbol, *provider, files[number]);
      provider = &files[number];
    }
    if (provider) use(*provider, provider->definitions.at(symbol));
  }

  // Marks a piece and, recursively, those that define a name in it.
  void use(File &file, size_t position) {
    const Piece &piece = file.pieces[position];
    if (file.is_used[position] || piece.is_entry) return;
    file.is_used[position] = true;
    for (uint32_t index = piece.tokens.first; index < piece.tokens.last; index++) {
      const auto found = file.by_name.find(file.tokens[index].text);
      if (found == file.by_name.end()) continue;
      for (size_t other : found->second) use(file, other);
    }
    if (!piece.symbol.empty() && file.lacks(piece.symbol) && !files[0].definitions.count(piece.symbol))
      define(piece.symbol);
  }

  // Returns the text of a file's pieces that are used and not yet included. If a piece has the name of another
  // definition, it gets a new name.
  std::string text_of(File &file, size_t number) {
    if (std::find(file.is_used.begin(), file.is_used.end(), true) == file.is_used.end()) return {};
    Edits edits;
    std::set<std::string_view> renamed;
    std::vector<const Piece *> kept;
    for (size_t position = 0; position < file.pieces.size(); position++) {
      const Piece &piece = file.pieces[position];
      const bool opens = file.tokens.is(piece.tokens.first, "using") && piece.names.empty(); // using namespace a;
      const bool is_used = file.is_used[position] || opens || is_operator(file, piece);
      if (!is_used || texts.count(key(file, piece))) {
        edits.erase(piece.tokens.first, piece.tokens.last);
        continue;
      }
      if (piece.defines && !piece.names.empty() && defined.count(meaning(piece))) renamed.insert(piece.names[0]);
      kept.push_back(&piece);
    }
    for (const Piece *piece : kept) {
      for (uint32_t index = piece->tokens.first; index < piece->tokens.last; index++)
        if (renamed.count(file.tokens[index].text))
          edits.replace(index, std::string(file.tokens[index].text) + "_of_file_" + std::to_string(number));
      know(file, *piece);
    }
    return "\n" + print(file.tokens, edits, "", "").text;
  }

  static bool is_operator(const File &file, const Piece &piece) {
    return piece.declaration && piece.declaration->kind == DeclarationKind::function && !piece.is_entry &&
           piece.declaration->name != none && file.tokens.is(piece.declaration->name, "operator");
  }

  void know(const File &file, const Piece &piece) {
    texts.insert(key(file, piece));
    if (piece.defines) defined.insert(meaning(piece));
  }

  // Returns equal texts for equal pieces, such as those of a header that both files include.
  static std::string key(const File &file, const Piece &piece) {
    std::string text = piece.declaration ? file.program.scopes[piece.declaration->scope].path : "";
    for (uint32_t index = piece.tokens.first; index < piece.tokens.last; index++)
      text += " " + std::string(file.tokens[index].text);
    return text;
  }

  // Returns equal texts for pieces that cannot be in one text together. Templates may be overloaded and specialized.
  static std::string meaning(const Piece &piece) {
    const bool is_template = piece.declaration && !piece.declaration->templates.empty();
    return is_template ? "" : piece.symbol.empty() ? piece.name : piece.symbol;
  }

  void report_two(const std::string &symbol, const File &first, const File &second) {
    const Piece &piece = second.pieces[second.definitions.at(symbol)];
    const TokenList &other = first.tokens;
    const Token &token = other[first.pieces[first.definitions.at(symbol)].declaration->name];
    diagnostics.push_back(diagnostic_at(second.tokens, piece.declaration->name, lines, Diagnostic::error,
                                        "'" + symbol + "' is also defined at " + other.files[token.file] + ":" +
                                            std::to_string(token.source_line) +
                                            ", in another file of this library; make it static or inline, or define "
                                            "it in one file"));
  }

  const SourceLines &lines;
  std::vector<Diagnostic> &diagnostics;
  std::vector<File> files;
  std::set<std::string> wanted;         // symbols
  std::set<std::string> texts, defined; // keys and meanings of the pieces that are in the text
};

bool starts_line(const std::string &source, size_t position) { return position == 0 || source[position - 1] == '\n'; }

} // namespace

LibraryFiles split_files(const std::string &source) {
  LibraryFiles files;
  size_t start = 0;
  for (size_t at = 0; (at = source.find("#pragma orchard l", at)) != std::string::npos; at++) {
    const bool compares = !source.compare(at, strlen(library_mark), library_mark);
    if (!starts_line(source, at) || (!compares && source.compare(at, strlen(link_mark), link_mark))) continue;
    files.compares_definitions |= compares;
    files.texts.push_back(source.substr(start, at - start));
    start = std::min(source.find('\n', at), source.size() - 1) + 1;
  }
  files.texts.push_back(source.substr(start));
  return files;
}

bool needs_definitions(const TokenList &tokens) {
  const File file = Splitter(tokens).split();
  return std::any_of(file.declared.begin(), file.declared.end(),
                     [&](const std::string &symbol) { return file.lacks(symbol); });
}

std::string link_files(const std::vector<TokenList> &files, bool compares_definitions, const SourceLines &lines,
                       std::vector<Diagnostic> &diagnostics) {
  Linker linker(files, lines, diagnostics);
  if (compares_definitions) linker.compare_definitions();
  return linker.run();
}

} // namespace mrt
