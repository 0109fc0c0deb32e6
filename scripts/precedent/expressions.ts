/** Determines the types of expressions from preceding declarations. */
import { typeIdAt, typeNameAt } from "./declarations.ts";
import type { Scopes } from "./scopes.ts";
import { behindClosing, behindTemplate, partsOf, type Token } from "./tokens.ts";
import { common, isFlag, literalType, plain, promoted, shapeOf, type Type, vectorOf } from "./types.ts";
import { casts, keywords, resultOf } from "./vocabulary.ts";

/** The priorities of operators, the strongest last. */
const priorities: Readonly<Record<string, number>> = {
  "?": 2,
  "||": 3,
  "&&": 4,
  "|": 5,
  "^": 6,
  "&": 7,
  "==": 8,
  "!=": 8,
  "<": 9,
  ">": 9,
  "<=": 9,
  ">=": 9,
  "<<": 10,
  ">>": 10,
  "+": 11,
  "-": 11,
  "*": 12,
  "/": 12,
  "%": 12,
};

/** An operation with at least one vector operand. */
export type OperatorSeen = (left: Type, operator: string, right: Type) => void;

const swizzle = /^(?:[xyzw]{1,4}|[rgba]{1,4})$/;

export class Expression {
  #at = 0;
  #end = 0;

  constructor(
    private readonly tokens: readonly Token[],
    private readonly scopes: Scopes,
    private readonly seen?: OperatorSeen,
  ) {}

  /** Returns the type of the expression from `start` to `end`; undefined if unknown. */
  typeOf(start: number, end: number): Type | undefined {
    [this.#at, this.#end] = [start, end];
    const type = this.#binary(1);
    return this.#at === end ? type : undefined;
  }

  /** Returns the type of the operand at `start`, without operators after it, and its end. */
  operandAt(start: number, end: number): { readonly type: Type | undefined; readonly end: number } {
    [this.#at, this.#end] = [start, end];
    const type = this.#unary();
    return { type, end: this.#at };
  }

  #inside(start: number, end: number): Type | undefined {
    const kept = [this.#at, this.#end] as const;
    const type = this.typeOf(start, end);
    [this.#at, this.#end] = kept;
    return type;
  }

  #text = (offset = 0): string => (this.#at + offset < this.#end ? this.tokens[this.#at + offset].text : "");

  #operator(): string {
    const text = this.#text();
    return text === ">" && this.#text(1) === ">" && this.tokens[this.#at + 1].isGlued ? ">>" : text;
  }

  #binary(least: number): Type | undefined {
    let left = this.#unary();
    for (;;) {
      const operator = this.#operator();
      const priority = priorities[operator];
      if (priority === undefined || priority <= least) return left;
      this.#at += operator === ">>" ? 2 : 1;
      if (operator === "?") {
        const middle = this.#binary(1);
        if (this.#text() !== ":") return undefined;
        this.#at++;
        const last = this.#binary(1);
        return same(middle, last) ? middle : common(middle, last);
      }
      const right = this.#binary(priority);
      if (left && right) this.#report(left, operator, right);
      left = combined(left, operator, right);
    }
  }

  #report(left: Type, operator: string, right: Type): void {
    const shapes = [left, right].map((type) => (type.depth === 0 ? shapeOf(type.base) : undefined));
    if (shapes.every((shape) => shape) && shapes.some((shape) => shape!.count > 1)) this.seen?.(left, operator, right);
  }

  #unary(): Type | undefined {
    const text = this.#text();
    if (text === "-" || text === "+" || text === "~" || text === "++" || text === "--") {
      this.#at++;
      const type = this.#unary();
      return type && text !== "++" && text !== "--" ? { ...type, base: promoted(type.base) } : type;
    }
    if (text === "!") {
      this.#at++;
      const type = this.#unary();
      const shape = type?.depth === 0 ? shapeOf(type.base) : undefined;
      return plain(shape ? vectorOf("bool", shape.count) : "bool");
    }
    if (text === "*" || text === "&") {
      this.#at++;
      const type = this.#unary();
      if (!type) return undefined;
      const depth = type.depth + (text === "*" ? -1 : 1);
      return depth < 0 ? undefined : { ...type, depth };
    }
    return this.#postfix(this.#primary());
  }

  #primary(): Type | undefined {
    const token = this.tokens[this.#at];
    if (!token || this.#at >= this.#end) return undefined;
    if (token.kind === "number") {
      this.#at++;
      return literalType(token.text);
    }
    if (token.text === "(") return this.#bracket();
    if (token.kind !== "name") {
      if (token.text === "{" || token.text === "[") this.#at = behindClosing(this.tokens, this.#at, this.#end);
      else this.#at++;
      return undefined;
    }
    if (token.text === "true" || token.text === "false") {
      this.#at++;
      return plain("bool");
    }
    if (casts.has(token.text)) return this.#cast();
    if (token.text === "sizeof" || token.text === "alignof") {
      this.#at = behindClosing(this.tokens, this.#at + 1, this.#end);
      return plain("ulong");
    }
    if (keywords.has(token.text) && token.text !== "this") {
      this.#at++;
      return undefined;
    }
    return this.#named();
  }

  /** `(x)`, or `(float)x`. */
  #bracket(): Type | undefined {
    const end = behindClosing(this.tokens, this.#at, this.#end);
    const cast = typeIdAt(this.tokens, this.#at + 1, end - 1, this.scopes);
    const start = this.#at + 1;
    this.#at = end;
    if (!cast) return this.#inside(start, end - 1);
    this.#unary();
    return cast.type;
  }

  /** `static_cast<float>(x)` */
  #cast(): Type | undefined {
    const behind = behindTemplate(this.tokens, this.#at + 1, this.#end);
    if (behind === undefined) {
      this.#at++;
      return undefined;
    }
    const type = typeIdAt(this.tokens, this.#at + 2, behind - 1, this.scopes)?.type;
    this.#at = behindClosing(this.tokens, behind, this.#end);
    return type;
  }

  /** A variable, a call, or a constructed value. */
  #named(): Type | undefined {
    const start = this.#at;
    const type = typeNameAt(this.tokens, start, this.scopes);
    if (type && /^[({]$/.test(this.tokens[type.end]?.text ?? "")) {
      this.#at = behindClosing(this.tokens, type.end, this.#end);
      return type.type;
    }
    const callee = calleeAt(this.tokens, start, this.#end);
    this.#at = callee.end;
    if (this.#text() !== "(") {
      if (isFlag(callee.name)) return plain(callee.name);
      const entry = callee.isChain ? undefined : this.scopes.find(callee.name);
      return entry?.kind === "variable" ? entry.type : constantType(callee.name);
    }
    const opening = this.#at;
    this.#at = behindClosing(this.tokens, opening, this.#end);
    const overloads = callee.isDeclared(this.scopes) ? this.scopes.functions.get(callee.last) : undefined;
    if (overloads) return commonResult(overloads);
    return resultOf(
      callee.name,
      partsOf(this.tokens, opening + 1, this.#at - 1).map(([from, to]) => this.#inside(from, to)),
    );
  }

  #postfix(before: Type | undefined): Type | undefined {
    let type = before;
    for (;;) {
      const text = this.#text();
      if (text === "." || text === "->") {
        const name = this.#text(1);
        this.#at += 2;
        if (this.#text() === "<") this.#at = behindTemplate(this.tokens, this.#at, this.#end) ?? this.#at;
        const isCall = this.#text() === "(";
        if (isCall) this.#at = behindClosing(this.tokens, this.#at, this.#end);
        type = isCall ? undefined : this.#member(type, name);
      } else if (text === "[") {
        this.#at = behindClosing(this.tokens, this.#at, this.#end);
        type = element(type);
      } else if (text === "(") {
        this.#at = behindClosing(this.tokens, this.#at, this.#end);
        type = undefined;
      } else if (text === "++" || text === "--") this.#at++;
      else return type;
    }
  }

  #member(type: Type | undefined, name: string): Type | undefined {
    if (!type) return undefined;
    const shape = shapeOf(type.base);
    if (shape && shape.count > 1 && swizzle.test(name)) return plain(vectorOf(shape.element, name.length));
    const found = this.scopes.members.get(type.base)?.get(name);
    return found && type.space && !found.space ? { ...found, space: type.space } : found;
  }
}

const same = (a: Type | undefined, b: Type | undefined): boolean =>
  a !== undefined && b !== undefined && a.base === b.base && a.depth === b.depth;

/** Overloads with one result; a result that depends on a template is unknown. */
function commonResult(overloads: readonly { readonly result: Type | undefined }[]): Type | undefined {
  const first = overloads[0]?.result;
  const isOne = overloads.every(({ result }) => same(result, first));
  return isOne && first && !/^T[234]?$/.test(first.base) ? first : undefined;
}

function element(type: Type | undefined): Type | undefined {
  if (!type) return undefined;
  if (type.depth > 0) return { ...type, depth: type.depth - 1 };
  const shape = shapeOf(type.base);
  return shape && shape.count > 1 ? plain(shape.element) : undefined;
}

function combined(left: Type | undefined, operator: string, right: Type | undefined): Type | undefined {
  if (/^(&&|\|\|)$/.test(operator)) return plain("bool");
  if (/^([=!<>]=|<|>)$/.test(operator)) {
    const shape = shapeOf(common(left, right)?.base ?? "");
    return plain(shape ? vectorOf("bool", shape.count) : "bool");
  }
  if (/^(<<|>>)$/.test(operator)) return left && { ...left, base: promoted(left.base) };
  return common(left, right);
}

/** Metal's named constants. */
function constantType(name: string): Type | undefined {
  if (/^(INFINITY|NAN|HUGE_VALF|MAXFLOAT|FLT_\w+|M_\w+_F)$/.test(name)) return plain("float");
  if (/^(HALF_\w+|M_\w+_H)$/.test(name)) return plain("half");
  if (/^U(INT|CHAR|SHRT)_MAX$/.test(name)) return plain("uint");
  if (/^(INT|CHAR|SHRT)_(MAX|MIN)$/.test(name)) return plain("int");
  return name === "ULONG_MAX" ? plain("ulong") : undefined;
}

/** A called or read name: `simd_sum`, `metal::precise::exp`, `Step<name>::of`. */
export interface Callee {
  /** Without `metal::` and template arguments: `precise::exp`, `numeric_limits<>::max`. */
  readonly name: string;
  /** The expression as written, without template arguments. */
  readonly written: string;
  readonly first: string;
  readonly last: string;
  readonly isChain: boolean;
  readonly templates: readonly { readonly name: string; readonly start: number; readonly end: number }[];
  readonly end: number;
  isDeclared(scopes: Scopes): boolean;
}

export function calleeAt(tokens: readonly Token[], start: number, limit: number): Callee {
  let at = tokens[start]?.text === "::" ? start + 1 : start;
  let written = "";
  const first = tokens[at]?.text ?? "";
  let last = first;
  const templates: { name: string; start: number; end: number }[] = [];
  for (;;) {
    last = tokens[at]?.text ?? "";
    written += last;
    at++;
    if (tokens[at]?.text === "<" && at < limit) {
      const behind = behindTemplate(tokens, at, limit);
      const follower = tokens[behind ?? limit];
      if (
        behind !== undefined &&
        (follower?.kind === "name" || /^([(){},;>*&]|::|&&|\.\.\.)$/.test(follower?.text ?? ";"))
      ) {
        templates.push({ name: written, start: at + 1, end: behind - 1 });
        at = behind;
        if (tokens[at]?.text === "::") written += "<>";
      }
    }
    if (tokens[at]?.text !== "::" || at + 1 >= limit || tokens[at + 1]?.kind !== "name") break;
    written += "::";
    at++;
    if (tokens[at].text === "template") at++;
  }
  const name = written.replace(/^metal::/, "");
  const isDeclared = (scopes: Scopes) => first !== "metal" && scopes.declared.has(first);
  return { name, written, first, last, isChain: written.includes("::"), templates, end: at, isDeclared };
}
