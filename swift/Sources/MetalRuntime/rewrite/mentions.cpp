// Collects the names that each function of the program mentions, and the functions that a kernel can reach through
// them. Names are qualified, so that `A::run` is not confused with `B::run`. An ambiguous name counts as all that it
// could be.
#include "rewrite/internal.h"

namespace mrt {
namespace {

// Returns "b" for "a::b::".
std::string_view last_of(std::string_view path) {
  path.remove_suffix(2);
  const size_t start = path.rfind("::");
  return start == std::string_view::npos ? path : path.substr(start + 2);
}

bool is_last_of(const std::string &path, std::string_view name) { return !path.empty() && last_of(path) == name; }

// Returns the name before `::`, also for `a<b>::`; empty if there is none.
std::string_view qualifier_of(const TokenList &tokens, uint32_t index) {
  if (index < 2 || !tokens.is(index - 1, "::")) return {};
  uint32_t before = index - 2;
  for (int depth = 0; before > 0 && (depth || tokens.is(before, ">")); before--) {
    depth += tokens.is(before, ">") ? 1 : tokens.is(before, "<") ? -1 : 0;
    if (depth == 0) return tokens[before - 1].text;
  }
  return tokens.is_identifier(before) ? tokens[before].text : std::string_view();
}

Mention mention_at(const TokenList &tokens, uint32_t index) {
  const bool is_member = index > 0 && one_of(tokens[index - 1].text, {".", "->"});
  return {tokens[index].text, qualifier_of(tokens, index), is_member};
}

bool is_guarded(const TokenList &tokens, uint32_t index) {
  uint32_t first = index; // first token of `a::b::name`
  while (first >= 2 && tokens.is(first - 1, "::")) first -= 2;
  return first >= 2 && tokens.is(first - 2, "is_function_constant_defined");
}

void add_mention(const TokenList &tokens, uint32_t index, FunctionMentions &function) {
  if (tokens.is_identifier(index))
    (is_guarded(tokens, index) ? function.guards : function.names).insert(mention_at(tokens, index));
}

void add_function(Rewriter &rewriter, FunctionMentions function) {
  Mentions &mentions = rewriter.mentions;
  mentions.by_name[rewriter.tokens[function.name].text].push_back(mentions.functions.size());
  mentions.functions.push_back(std::move(function));
}

void collect_function(Rewriter &rewriter, const Declaration &declaration) {
  const TokenList &tokens = rewriter.tokens;
  Mentions &mentions = rewriter.mentions;
  FunctionMentions function{declaration.name, rewriter.path(declaration), {}, {}, {}};
  const std::string_view qualifier = qualifier_of(tokens, declaration.name);
  if (!qualifier.empty()) function.path += std::string(qualifier) + "::";
  if (rewriter.program.scopes[declaration.scope].is_class || !qualifier.empty())
    for (std::string_view scope : mentions.scopes)
      if (is_last_of(function.path, scope)) function.owner = scope;
  Locals locals(tokens, declaration);
  for (uint32_t index = declaration.tokens.first; index < declaration.tokens.last; index++)
    if (index != declaration.name && !locals.hide(index)) add_mention(tokens, index, function);
  add_function(rewriter, std::move(function));
}

// Collects the names that a class, or an alias of one, mentions outside methods: code that names the class may create
// objects of it. They are stored under the path of a constructor.
void collect_type(Rewriter &rewriter, const Declaration &type, const std::vector<bool> &inside) {
  FunctionMentions named{type.name, rewriter.path(type) + rewriter.text(type.name) + "::", {}, {}, {}};
  Locals members(rewriter.tokens, type);
  for (uint32_t index = type.tokens.first; index < type.tokens.last; index++)
    if (!inside[index] && !members.hide(index)) add_mention(rewriter.tokens, index, named);
  add_function(rewriter, std::move(named));
}

// Handles `using name = type;` and `typedef type name;` outside functions.
void collect_alias(Rewriter &rewriter, uint32_t index, const std::vector<bool> &inside) {
  const TokenList &tokens = rewriter.tokens;
  uint32_t last = index;
  while (last + 1 < tokens.size() && !tokens.is(last, ";")) last = uint32_t(tokens.after_group(last));
  Declaration alias;
  alias.tokens = {index, last};
  alias.name = tokens.is(index, "using") ? index + 1 : last - 1;
  if (tokens.is_identifier(alias.name)) collect_type(rewriter, alias, inside);
}

void collect_types(Rewriter &rewriter, const std::vector<bool> &inside) {
  for (const Declaration &declaration : rewriter.program.declarations)
    if (declaration.kind == DeclarationKind::type && declaration.name != none && declaration.body.exists())
      collect_type(rewriter, declaration, inside);
  for (uint32_t index = 0; index + 1 < rewriter.tokens.size(); index++)
    if (!inside[index] && one_of(rewriter.tokens[index].text, {"using", "typedef"}))
      collect_alias(rewriter, index, inside);
}

class Walk {
public:
  Walk(const Rewriter &rewriter, const Declaration &start) : mentions(rewriter.mentions) {
    for (size_t index = 0; index < mentions.functions.size(); index++)
      if (mentions.functions[index].name == start.name) {
        add(index);
        follow(mentions.functions[index], {"operator", {}, true}); // operators are called without a name
      }
    while (!open.empty()) {
      const FunctionMentions &function = mentions.functions[open.back()];
      open.pop_back();
      for (const Mention &mention : function.names) follow(function, mention);
      auto instances = mentions.instantiations.find(rewriter.tokens[function.name].text);
      if (instances != mentions.instantiations.end())
        for (const Mention &mention : instances->second) follow(function, mention);
    }
  }

  Reach result;

private:
  void add(size_t index) {
    if (!seen.insert(index).second) return;
    result.functions.push_back(&mentions.functions[index]);
    open.push_back(index);
  }

  void follow(const FunctionMentions &place, const Mention &mention) {
    if (result.names.insert(mention.name).second) {
      auto waiting = waiting_for.find(mention.name);
      if (waiting != waiting_for.end())
        for (size_t index : waiting->second) add(index);
    }
    auto found = mentions.by_name.find(mention.name);
    if (found == mentions.by_name.end()) return;
    bool any = false;
    for (size_t index : found->second)
      if (means(mentions, place, mention, mentions.functions[index].path)) any = true, reach(index, mention);
    if (any) return;
    for (size_t index : found->second) reach(index, mention); // inherited, or named through an alias of its class
  }

  // A member is called on an object, or through a template argument. The program must name its class somewhere.
  void reach(size_t index, const Mention &mention) {
    const std::string_view owner = mentions.functions[index].owner;
    const bool of_any = mention.is_member || (!mention.qualifier.empty() && !mentions.scopes.count(mention.qualifier));
    if (of_any && !owner.empty() && !result.names.count(owner) && !mentions.outside.count(owner))
      waiting_for[owner].push_back(index);
    else add(index);
  }

  const Mentions &mentions;
  std::set<size_t> seen;
  std::vector<size_t> open;
  std::map<std::string_view, std::vector<size_t>> waiting_for; // members whose class has not been named yet
};

} // namespace

bool means(const Mentions &mentions, const FunctionMentions &place, const Mention &mention, const std::string &path) {
  if (mention.is_member) return true;
  if (!mention.qualifier.empty())
    return !mentions.scopes.count(mention.qualifier) || is_last_of(path, mention.qualifier);
  return place.path.compare(0, path.size(), path) == 0; // declared in a scope that encloses the place
}

void collect_mentions(Rewriter &rewriter) {
  const TokenList &tokens = rewriter.tokens;
  Mentions &mentions = rewriter.mentions;
  std::vector<bool> inside(tokens.size());
  const auto mark = [&](Range range) { std::fill(inside.begin() + range.first, inside.begin() + range.last, true); };
  for (const Scope &scope : rewriter.program.scopes)
    if (!scope.path.empty()) mentions.scopes.insert(last_of(scope.path));
  for (const Declaration &declaration : rewriter.program.declarations) {
    if (declaration.name == none) continue;
    if (declaration.kind == DeclarationKind::function) {
      collect_function(rewriter, declaration);
      mark(declaration.tokens);
    } else if (declaration.kind == DeclarationKind::type) {
      inside[declaration.name] = true;
    } else if (declaration.kind == DeclarationKind::instantiation) {
      auto &names = mentions.instantiations[tokens[declaration.name].text];
      for (uint32_t index = declaration.name + 1; index < declaration.tokens.last; index++)
        if (tokens.is_identifier(index)) names.insert(mention_at(tokens, index));
      mark(declaration.tokens);
    }
  }
  collect_types(rewriter, inside);
  for (uint32_t index = 0; index < tokens.size(); index++)
    if (!inside[index] && tokens.is_identifier(index)) mentions.outside.insert(tokens[index].text);
}

Reach reach(const Rewriter &rewriter, const Declaration &function) { return Walk(rewriter, function).result; }

} // namespace mrt
