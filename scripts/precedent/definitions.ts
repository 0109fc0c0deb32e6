/** Reads definitions of types, aliases, namespaces and templates. */
import { declarationAt, isAttribute, typeIdAt, typeNameAt } from "./declarations.ts";
import { type Program, textAt } from "./program.ts";
import { behindClosing, behindTemplate, partsOf } from "./tokens.ts";
import { plain, type Type } from "./types.ts";

export class Definitions {
  /** Where template parameters end: a declaration may follow. */
  readonly templateEnds = new Set<number>();
  /** The struct whose braces follow. */
  struct: string | undefined;
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  #text = (at: number): string => textAt(this.#program, at);

  /** Reads the definition of the keyword at `at`, and returns the next position. */
  read(at: number): number {
    const token = this.#program.tokens[at];
    const { text } = token;
    if (text === "using") return this.#using(at);
    if (text === "typedef") return this.#typedef(at);
    if (text === "namespace") return this.#namespace(at);
    if (text === "enum") return this.#enumeration(at);
    if (text !== "operator") return this.#structure(at);
    if (this.#program.tokens[at + 1]?.kind === "mark")
      this.#program.report(`form operator${this.#text(at + 1)}${this.#text(at + 2) === ")" ? ")" : ""}`, token);
    return at + 1;
  }

  #typedef(at: number): number {
    const found = declarationAt(this.#program.tokens, at + 1, this.#program.scopes);
    if (found) this.#declareType(found.name, found.type);
    return at + 1;
  }

  #namespace(at: number): number {
    let name = at + 1;
    for (; this.#program.tokens[name]?.kind === "name" || this.#text(name) === "::"; name++) {
      if (/^(metal|precise|fast)$/.test(this.#text(name)))
        this.#program.report("form namespace metal", this.#program.tokens[at]);
      else this.#program.scopes.declared.add(this.#text(name));
    }
    return name;
  }

  #declareType(name: number, type: Type | undefined, isPending = false): void {
    this.#program.names.add(name);
    this.#program.scopes.declare(this.#text(name), { kind: "type", type }, isPending);
  }

  #declareValue(name: number, type: Type | undefined, isPending = false): void {
    this.#program.names.add(name);
    this.#program.scopes.declare(this.#text(name), { kind: "variable", type }, isPending);
  }

  #structure(at: number): number {
    let name = at + 1;
    while (isAttribute(this.#program.tokens, name)) name = behindClosing(this.#program.tokens, name);
    if (this.#text(name) === "alignas") name = behindClosing(this.#program.tokens, name + 1);
    const token = this.#program.tokens[name];
    if (token?.kind !== "name") return at + 1;
    this.#declareType(name, plain(token.text));
    let behind = name + 1;
    if (this.#text(behind) === "<") {
      this.#program.report(`form ${this.#text(at)} X<…>`, token);
      behind = behindTemplate(this.#program.tokens, behind) ?? behind;
    }
    if (this.#text(behind) === ":") this.#program.report(`form ${this.#text(at)} X : Y`, token);
    const isDefined = this.#text(behind) === "{" || this.#text(behind) === ":";
    if (isDefined) this.struct = token.text;
    return name + 1;
  }

  #enumeration(at: number): number {
    let name = at + 1;
    if (/^(class|struct)$/.test(this.#text(name)))
      this.#program.report(`form enum ${this.#text(name++)}`, this.#program.tokens[at]);
    if (this.#program.tokens[name]?.kind === "name") {
      this.#declareType(name, plain(this.#text(name)));
      name++;
    }
    let opening = name;
    if (this.#text(opening) === ":") {
      this.#program.report("form enum X : T", this.#program.tokens[at]);
      while (opening < this.#program.tokens.length && !/^[{;]$/.test(this.#text(opening))) opening++;
    }
    if (this.#text(opening) !== "{") return name;
    for (const [from] of partsOf(this.#program.tokens, opening + 1, behindClosing(this.#program.tokens, opening) - 1)) {
      this.#declareValue(from, plain("int"));
    }
    return name;
  }

  #using(at: number): number {
    const token = this.#program.tokens[at];
    if (this.#text(at + 1) === "namespace") {
      this.#program.report("form using namespace", token);
      return at + 2;
    }
    if (this.#text(at + 2) === "=" || isAttribute(this.#program.tokens, at + 2)) {
      let end = at + 3;
      while (end < this.#program.tokens.length && this.#text(end) !== ";") end++;
      const type =
        typeIdAt(this.#program.tokens, at + 3, end, this.#program.scopes)?.type ?? unknownAlias(this.#text(at + 3));
      this.#declareType(at + 1, type);
      this.#program.report("form using X = T", token);
      return at + 3;
    }
    this.#program.report("form using X::y", token);
    return at + 1;
  }

  readTemplate(at: number): number {
    const token = this.#program.tokens[at];
    this.#program.report("keyword template", token);
    if (this.#text(at + 1) !== "<") {
      this.#program.report("form template instance", token);
      return at + 1;
    }
    const end = behindTemplate(this.#program.tokens, at + 1) ?? at + 2;
    this.templateEnds.add(end - 1);
    if (end === at + 3) this.#program.report("form template <>", token);
    for (const [from, to] of partsOf(this.#program.tokens, at + 2, end - 1)) this.#templateParameter(from, to);
    return end;
  }

  #templateParameter(from: number, to: number): void {
    const token = this.#program.tokens[from];
    const has = (text: string) => this.#program.tokens.slice(from, to).some((other) => other.text === text);
    const name = this.#program.tokens.slice(from, to).findIndex(({ text }) => text === "=");
    const place = (name < 0 ? to : from + name) - 1;
    const suffix = `${has("...") ? " ..." : ""}${has("=") ? " =" : ""}`;
    if (/^(typename|class|template)$/.test(token.text) && !has("::")) {
      this.#program.report(`form template <${token.text === "class" ? "class" : token.text}${suffix}>`, token);
      if (place > from) this.#declareType(place, plain("T"), true);
      return;
    }
    const type = typeNameAt(this.#program.tokens, from, this.#program.scopes, true);
    this.#program.report(`form template <${type ? type.form : "_"}${suffix}>`, token);
    if (place > from) this.#declareValue(place, type?.type, true);
  }
}

/** `using U = typename Unsigned<T>::type;` depends on a template parameter. */
const unknownAlias = (first: string): Type | undefined => (first === "typename" ? plain("T") : undefined);
