/**
 * Reads a program in Metal Shading Language and reports each construct in it. Names that the program declares are
 * omitted, or appear as `_` or `T`.
 */
import { Attributes } from "./attributes.ts";
import { type Declaration, declarationAt, isAttribute, typeIdAt, typeNameAt, wordForm } from "./declarations.ts";
import { Definitions } from "./definitions.ts";
import { calleeAt, Expression } from "./expressions.ts";
import { argumentForm, generalForm, pragmaForm } from "./forms.ts";
import { literalForm } from "./literals.ts";
import { type Program, type Report, textAt } from "./program.ts";
import { Scopes } from "./scopes.ts";
import { behindClosing, behindTemplate, partsOf, type Token } from "./tokens.ts";
import { describeType, isBuiltInType, isNumber, isVector, kindOf, operandOf, shapeOf, type Type } from "./types.ts";
import { casts, keywords, spaces } from "./vocabulary.ts";

export class Reader {
  readonly #program: Program;
  readonly #tokens: readonly Token[];
  readonly #expression: Expression;
  readonly #definitions: Definitions;
  readonly #attributes: Attributes;
  /** Uses of names that may be declared later in the program. */
  readonly #uses: { readonly name: string; readonly construct: string; readonly token: Token }[] = [];
  /** The statement whose operators were reported. */
  #operatorAt: Token;
  #round = 0; // open brackets

  constructor(tokens: readonly Token[], report: Report) {
    const scopes = new Scopes();
    this.#program = { tokens, scopes, report, names: new Set() };
    this.#tokens = tokens;
    this.#definitions = new Definitions(this.#program);
    this.#attributes = new Attributes(this.#program);
    this.#operatorAt = tokens[0];
    this.#expression = new Expression(tokens, scopes, (left, operator, right) =>
      report(`operator ${operandOf(left)} ${operator} ${operandOf(right)}`, this.#operatorAt),
    );
  }

  read(): void {
    for (let at = 0; at < this.#tokens.length; ) at = this.#step(at);
    for (const { name, construct, token } of this.#uses)
      if (!this.#program.scopes.declared.has(name)) this.#program.report(construct, token);
  }

  #text = (at: number): string => textAt(this.#program, at);
  #tell = (construct: string, at: number): void => this.#program.report(construct, this.#tokens[at]);

  /** Reads the construct at `at`, and returns the next position. */
  #step(at: number): number {
    const token = this.#tokens[at];
    if (isAttribute(this.#tokens, at)) return this.#attributes.before(at);
    if (this.#mayDeclare(at)) this.#declare(at);
    if (token.kind === "number") this.#program.report(`literal ${literalForm(token.text)}`, token);
    if (token.kind === "character") this.#program.report("literal 'c'", token);
    if (token.kind === "text") this.#program.report(token.text.startsWith("R") ? 'literal R"…"' : 'literal "…"', token);
    if (token.kind === "name") return this.#name(at);
    if (token.kind === "mark") return this.#mark(at);
    return at + 1;
  }

  #mark(at: number): number {
    const text = this.#text(at);
    if (text === "(") {
      this.#round++;
      this.#cStyleCast(at);
    } else if (text === ")") this.#round--;
    else if (text === "{") {
      this.#braceForm(at);
      this.#program.scopes.open(this.#definitions.struct);
      this.#definitions.struct = undefined;
    } else if (text === "}") this.#program.scopes.close();
    else if (text === ";" && this.#round === 0) {
      this.#program.scopes.forgetPending();
      this.#definitions.struct = undefined;
    } else if (text === "." || text === "->") return this.#member(at);
    else if (text === "?" && this.#text(at + 1) === ":") this.#tell("form ?:", at);
    else if (text === "[") this.#square(at);
    else if (text === "...") this.#tell("form ...", at);
    else if (text === "=" || text === "+=" || text === "-=" || text === "*=" || text === "/=") this.#value(at);
    return at + 1;
  }

  /** A lambda, or a designator in braces. */
  #square(at: number): void {
    const behind = this.#text(behindClosing(this.#tokens, at));
    const isPlace = /^[{,]$/.test(this.#text(at - 1)) && behind === "=";
    if (isPlace) this.#tell("form { [N] =", at);
    else if (/^([=(,{;]|return|&&)$/.test(this.#text(at - 1))) this.#tell("form lambda", at);
  }

  /** Reports the operators of an assigned value. */
  #value(at: number): void {
    let end = at + 1;
    while (end < this.#tokens.length && !/^[;,)}]$/.test(this.#text(end)))
      end = /^[([{]$/.test(this.#text(end)) ? behindClosing(this.#tokens, end) : end + 1;
    this.#operatorAt = this.#tokens[at];
    this.#expression.typeOf(at + 1, end);
  }

  #braceForm(at: number): void {
    const before = this.#text(at - 1);
    if (before === "return" || before === "=" || before === "(" || before === ",") this.#tell(`form ${before} {`, at);
    if (this.#text(at + 1) === "." && this.#tokens[at + 2]?.kind === "name") this.#tell("form { .member", at);
  }

  // --- Names

  #name(at: number): number {
    const token = this.#tokens[at];
    const { text } = token;
    if (text === "template") return this.#definitions.readTemplate(at);
    if (keywords.has(text)) this.#program.report(`keyword ${text}`, token);
    if (casts.has(text)) return this.#cast(at);
    if (/^(struct|class|union|enum|namespace|using|typedef|operator)$/.test(text)) return this.#definitions.read(at);
    if (text === "if" && this.#text(at + 1) === "constexpr") this.#program.report("form if constexpr", token);
    if (text === "_Pragma") {
      this.#program.report(
        pragmaForm(
          this.#text(at + 2)
            .slice(1, -1)
            .replaceAll('\\"', '"'),
        ),
        token,
      );
      return behindClosing(this.#tokens, at + 1);
    }
    if (keywords.has(text)) return at + 1;
    if (this.#program.names.has(at)) return at + 1;
    return this.#use(at);
  }

  /** A name that is read, called, or constructed. */
  #use(at: number): number {
    const token = this.#tokens[at];
    const callee = calleeAt(this.#tokens, at, this.#tokens.length);
    const isDeclared = callee.first !== "metal" && this.#program.scopes.find(callee.first) !== undefined;
    const pair = `${callee.first} ${this.#text(at + 1)}`;
    if (/^(unsigned|signed|long|short) (long|int|short|char|float|double)$/.test(pair))
      this.#program.report(`name ${pair}`, token);
    const construct = `name ${/::.*::/.test(callee.written) ? callee.name : callee.written}`;
    if (!isDeclared) {
      if (isBuiltInType(callee.first, this.#text(at + 1))) this.#program.report(construct, token);
      else this.#uses.push({ name: callee.first, construct, token });
      for (const { name, start, end } of callee.templates) {
        const words = partsOf(this.#tokens, start, end).map(([from, to]) => this.#word(name, from, to));
        this.#uses.push({ name: callee.first, construct: `template ${name}<${words.join(", ")}>`, token });
      }
    }
    const opening = this.#text(callee.end);
    if (opening === "(" || opening === "{") this.#call(at, callee.end, callee);
    // Template arguments are read too.
    const first = callee.templates[0];
    return first ? first.start : callee.end;
  }

  /** Sizes of vectors and matrices are part of the type; those of arrays and similar are not. */
  #word(name: string, from: number, to: number): string {
    const form = wordForm(this.#tokens, from, to, this.#program.scopes);
    const isSized = /^(metal::)?(vec|matrix|simdgroup_matrix|make_filled_simdgroup_matrix)$/.test(name);
    return isSized ? form : form.replace(/\b\d+\b/g, "N");
  }

  #call(at: number, opening: number, callee: ReturnType<typeof calleeAt>): void {
    const token = this.#tokens[at];
    const type = typeNameAt(this.#tokens, at, this.#program.scopes);
    const isMade = type !== undefined && type.end === opening;
    if (this.#text(opening) === "{" && !isMade) return;
    if (isMade && this.#program.names.has(opening + 2)) return; // `float (&x)[4]`
    const types = this.#argumentTypes(opening, token);
    if (isMade) {
      const base = type.type?.base ?? "";
      if (isNumber(callee.last) || isVector(base))
        this.#program.report(`convert ${kindOf(type.type)}(${types.map(kindOf).join(", ")})`, token);
      return;
    }
    if (callee.first !== "metal" && this.#isDeclaredFunction(callee.first, types)) return;
    const construct = `call ${callee.name}(${types.map(argumentForm(callee.last)).join(", ")})`;
    this.#uses.push({ name: callee.first === "metal" ? "metal" : callee.first, construct, token });
  }

  #argumentTypes(opening: number, token: Token): (Type | undefined)[] {
    this.#operatorAt = token;
    const end = behindClosing(this.#tokens, opening);
    return partsOf(this.#tokens, opening + 1, end - 1).map(([from, to]) => this.#expression.typeOf(from, to));
  }

  /** The project's overload of a function of Metal. */
  #isDeclaredFunction(name: string, types: readonly (Type | undefined)[]): boolean {
    const overloads = this.#program.scopes.functions.get(name);
    return (overloads ?? []).some(({ parameters }) =>
      parameters.every((type, index) => {
        const given = types[index];
        return !type || !given || type.base.startsWith("T") || (type.base === given.base && type.depth === given.depth);
      }),
    );
  }

  /** `as_type<float>(x)`, `static_cast<half>(x)` */
  #cast(at: number): number {
    const token = this.#tokens[at];
    const behind = behindTemplate(this.#tokens, at + 1);
    if (behind === undefined) return at + 1;
    const target = typeIdAt(this.#tokens, at + 2, behind - 1, this.#program.scopes);
    const types = this.#text(behind) === "(" ? this.#argumentTypes(behind, token) : [];
    if (target?.hasSpace) this.#program.report(`cast ${token.text}<${target.form}>`, token);
    else if (target) {
      const describe = token.text === "as_type" ? describeType : kindOf;
      this.#program.report(`convert ${token.text}<${describe(target.type)}>(${types.map(describe).join(", ")})`, token);
    }
    return at + 1;
  }

  /** `(float)x` */
  #cStyleCast(at: number): void {
    const before = this.#tokens[at - 1];
    if (before && (before.kind === "name" ? before.text !== "return" : /^[)\]>]$/.test(before.text))) return;
    const end = behindClosing(this.#tokens, at);
    const next = this.#tokens[end];
    if (!next || (next.kind === "mark" && !/^[(~]$/.test(next.text))) return;
    const target = typeIdAt(this.#tokens, at + 1, end - 1, this.#program.scopes);
    if (!target) return;
    const { type } = this.#expression.operandAt(end, this.#tokens.length);
    const token = this.#tokens[at];
    if (target.hasSpace) this.#program.report(`cast (${target.form})`, token);
    else this.#program.report(`convert (${kindOf(target.type)})${kindOf(type)}`, token);
  }

  /** Members of Metal's types: swizzles, and functions. */
  #member(at: number): number {
    const token = this.#tokens[at + 1];
    if (token?.kind !== "name") return at + 1;
    const { text } = token;
    const next = this.#text(at + 2);
    const behind = next === "<" ? behindTemplate(this.#tokens, at + 2) : undefined;
    const isCall = next === "(" || (behind !== undefined && this.#text(behind) === "(");
    const isTemplate = text === "template";
    if (isTemplate) return at + 1;
    const count = isCall
      ? partsOf(this.#tokens, (behind ?? at + 2) + 1, behindClosing(this.#tokens, behind ?? at + 2) - 1).length
      : 0;
    this.#uses.push({ name: text, construct: isCall ? `member ${text}()/${count}` : `member ${text}`, token });
    return at + 2;
  }

  // --- Declarations

  #mayDeclare(at: number): boolean {
    const before = this.#tokens[at - 1];
    if (this.#tokens[at].kind !== "name") return false;
    if (!before || this.#definitions.templateEnds.has(at - 1)) return true;
    if (before.kind === "name") return before.text === "else" || before.text === "do" || before.text === "typedef";
    return /^[;{}(,<:\])]$/.test(before.text) && before.kind === "mark";
  }

  #declare(at: number): void {
    const found = declarationAt(this.#tokens, at, this.#program.scopes);
    if (!found || this.#program.names.has(found.name)) return;
    const token = this.#tokens[found.name];
    this.#program.names.add(found.name);
    const parameters = found.isCalled ? this.#parameters(found) : undefined;
    for (const attribute of found.attributes) if (attribute[0] > found.name) this.#attributes.of(attribute, found);
    if (parameters) {
      if (token.text !== "operator") this.#program.scopes.addFunction(token.text, { result: found.type, parameters });
      this.#spaceForm("result", found);
      return;
    }
    const isPending = this.#round > 0;
    this.#spaceForm(this.#place(isPending), found);
    this.#program.scopes.declare(token.text, { kind: "variable", type: found.type }, isPending);
    if (this.#text(found.end) === "=") this.#initial(found);
    this.#further(found);
  }

  #place(isPending: boolean): string {
    if (isPending) return "parameter";
    if (this.#program.scopes.isInStruct) return "member";
    return this.#program.scopes.depth === 1 ? "program" : "variable";
  }

  /** Returns the types of a function's parameters; undefined if the parentheses contain a variable's value. */
  #parameters({ end }: Declaration): (Type | undefined)[] | undefined {
    const closing = behindClosing(this.#tokens, end);
    const parts = partsOf(this.#tokens, end + 1, closing - 1);
    if (parts.length === 0) return [];
    const types = parts.map(([from, to]) => {
      const named = declarationAt(this.#tokens, from, this.#program.scopes);
      return named ? { type: named.type } : typeIdAt(this.#tokens, from, to, this.#program.scopes);
    });
    return types.some((type) => type) ? types.map((type) => type?.type) : undefined;
  }

  /** `float a, b[4];`: further names in a declaration. */
  #further({ end, type }: Declaration): void {
    if (this.#round > 0 || !type) return;
    let at = end;
    for (let count = 0; count < 50; count++) {
      while (at < this.#tokens.length && !/^[,;{}]$/.test(this.#text(at)))
        at = /^[([]$/.test(this.#text(at)) ? behindClosing(this.#tokens, at) : at + 1;
      if (this.#text(at) === "{" && this.#text(at - 1) === "=") {
        at = behindClosing(this.#tokens, at);
        continue;
      }
      if (this.#text(at) !== ",") return;
      at++;
      let depth = 0;
      for (; this.#text(at) === "*" || this.#text(at) === "&"; at++) depth++;
      const token = this.#tokens[at];
      if (token?.kind !== "name" || keywords.has(token.text)) return;
      this.#program.names.add(at);
      const base = Math.max(0, type.depth - (this.#text(end - 1) === "]" ? 1 : 0));
      let arrays = 0;
      for (at++; this.#text(at) === "["; at = behindClosing(this.#tokens, at)) arrays++;
      const variableType = { ...type, depth: base + depth + arrays };
      this.#program.scopes.declare(token.text, { kind: "variable", type: variableType }, false);
    }
  }

  /** `half x = y;` with a `y` of another type. */
  #initial({ end, type, name }: Declaration): void {
    let last = end + 1;
    while (last < this.#tokens.length && !/^[;,]$/.test(this.#text(last)))
      last = /^[([{]$/.test(this.#text(last)) ? behindClosing(this.#tokens, last) : last + 1;
    const value = this.#expression.typeOf(end + 1, last);
    if (!type || !value || type.depth > 0 || value.depth > 0 || type.base === value.base) return;
    if (shapeOf(type.base) && shapeOf(value.base) && kindOf(type) !== kindOf(value))
      this.#program.report(`convert ${kindOf(type)} = ${kindOf(value)}`, this.#tokens[name]);
  }

  /** Declarations with an address space or a reference. */
  #spaceForm(place: string, found: Declaration): void {
    const form = generalForm(found);
    const hasSpace = form.split(" ").some((word) => spaces.has(word));
    if (hasSpace || /[&*]/.test(form) || place === "program")
      this.#program.report(
        `space ${place} ${form}${this.#text(found.end) === "=" ? " =" : ""}`,
        this.#tokens[found.name],
      );
    if (place === "result") this.#methodSpace(found);
  }

  /** `float norm() const device` */
  #methodSpace({ end }: Declaration): void {
    const words: string[] = [];
    for (let at = behindClosing(this.#tokens, end); this.#tokens[at]?.kind === "name"; at++) words.push(this.#text(at));
    if (words.some((word) => spaces.has(word)))
      this.#program.report(`space method ${words.join(" ")}`, this.#tokens[end]);
  }
}
