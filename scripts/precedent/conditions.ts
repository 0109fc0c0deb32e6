/** Evaluates the conditions of `#if` that the project's macros determine. */
import type { Directive, Macro } from "./preprocessor.ts";
import type { Token } from "./tokens.ts";

type Value = number | undefined;

/** Macros that Metal's compiler defines, and those that only others define. */
const ofMetal = new Set(["__METAL__", "__METAL_VERSION__", "__cplusplus"]);
const ofOthers = /^(__OBJC__|__CUDACC__|__CUDA_ARCH__|__HIP\w*|_MSC_VER|_WIN32|__linux__|__KERNEL_CUDA__|__SYCL\w*)$/;

/** Undefined for macros that the host may define. */
function isDefined(name: string, macros: ReadonlyMap<string, Macro>): boolean | undefined {
  if (macros.has(name) || ofMetal.has(name)) return true;
  return ofOthers.test(name) ? false : undefined;
}

/** Whether the branch is read; undefined if that depends on the compiler's macros. */
export function branchOf({ name, tokens }: Directive, macros: ReadonlyMap<string, Macro>): boolean | undefined {
  const first = tokens[0]?.text ?? "";
  const known = isDefined(first, macros);
  if (name === "ifdef") return known;
  if (name === "ifndef") return known === undefined ? isGuard(first) || undefined : !known;
  const value = new Condition(tokens, macros).whole();
  return value === undefined ? undefined : value !== 0;
}

/** Returns the name of an include guard, whose `#ifndef` has no other branch. */
const isGuard = (name: string): boolean => /(_H_?|_HPP|_METAL|_INCLUDED)_*$/i.test(name);

const priorities: Readonly<Record<string, number>> = {
  "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "+": 9, "-": 9, "*": 10,
}; // biome-ignore format: a table

const operations: Readonly<Record<string, (a: number, b: number) => number>> = {
  "||": (a, b) => Number(a !== 0 || b !== 0),
  "&&": (a, b) => Number(a !== 0 && b !== 0),
  "|": (a, b) => a | b,
  "^": (a, b) => a ^ b,
  "&": (a, b) => a & b,
  "==": (a, b) => Number(a === b),
  "!=": (a, b) => Number(a !== b),
  "<": (a, b) => Number(a < b),
  ">": (a, b) => Number(a > b),
  "<=": (a, b) => Number(a <= b),
  ">=": (a, b) => Number(a >= b),
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
};

class Condition {
  #at = 0;

  constructor(
    private readonly tokens: readonly Token[],
    private readonly macros: ReadonlyMap<string, Macro>,
  ) {}

  whole(): Value {
    return this.#binary(0);
  }

  #next = (): string => this.tokens[this.#at]?.text ?? "";

  #binary(least: number): Value {
    let left = this.#unary();
    for (;;) {
      const operator = this.#next();
      const priority = priorities[operator];
      if (priority === undefined || priority <= least) return left;
      this.#at++;
      const right = this.#binary(priority);
      if (operator === "&&" && (left === 0 || right === 0)) left = 0;
      else if (left === undefined || right === undefined) left = undefined;
      else left = operations[operator](left, right);
    }
  }

  #unary(): Value {
    const token = this.tokens[this.#at++];
    if (!token) return undefined;
    if (token.text === "!") return negated(this.#unary());
    if (token.text === "(") {
      const value = this.#binary(0);
      this.#at++;
      return value;
    }
    if (token.kind === "number") return Number.parseInt(token.text, token.text.startsWith("0x") ? 16 : 10);
    if (token.text === "defined") return this.#defined();
    if (this.#next() === "(") this.#skipCall();
    const body = this.macros.get(token.text)?.body;
    return body?.length === 1 && body[0].kind === "number" ? Number(body[0].text.replace(/[uUlL]+$/, "")) : undefined;
  }

  #defined(): Value {
    const hasBracket = this.#next() === "(";
    if (hasBracket) this.#at++;
    const known = isDefined(this.tokens[this.#at++]?.text ?? "", this.macros);
    if (hasBracket) this.#at++;
    return known === undefined ? undefined : Number(known);
  }

  /** Skips `__has_include(…)` and similar. */
  #skipCall(): void {
    let depth = 0;
    do {
      if (this.#next() === "(") depth++;
      if (this.#next() === ")") depth--;
      this.#at++;
    } while (depth > 0 && this.#at < this.tokens.length);
  }
}

const negated = (value: Value): Value => (value === undefined ? undefined : Number(value === 0));
