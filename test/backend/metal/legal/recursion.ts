/**
 * Programs whose functions call each other: templates, overloads, methods and operators, many with the same name. None
 * calls itself, except in drawn cycles, which MSL forbids (1.5.1).
 */
import type { Random } from "../../../ops/samples.ts";
import { pick } from "./types.ts";

interface Kind {
  /** A declaration, which precedes all definitions. */
  readonly declare: (name: string) => string;
  /** One or more definitions, with the calls in the body of the first. */
  readonly define: (name: string, body: string) => string;
  /** A call with the argument `x`. */
  readonly call: (name: string) => string;
}

/** Each instance of a template and each overload is a separate function. */
const kinds: Readonly<Record<string, Kind>> = {
  plain: {
    declare: (name) => `float ${name}(float x);`,
    define: (name, body) => `float ${name}(float x) { ${body} }`,
    call: (name) => `${name}(x)`,
  },
  overload: {
    declare: (name) => `struct T${name} { int tag; }; float o(T${name} t, float x);`,
    define: (name, body) => `float o(T${name} t, float x) { ${body} }`,
    call: (name) => `o(T${name}{1}, x)`,
  },
  template: {
    declare: (name) => `template <typename T> T ${name}(T x);`,
    define: (name, body) => `template <typename T> T ${name}(T x) { ${body} }`,
    call: (name) => `${name}<float>(x)`,
  },
  depth: {
    declare: (name) => `template <int N> float ${name}(float x); template <> float ${name}<0>(float x);`,
    define: (name, body) =>
      `template <int N> float ${name}(float x) { x = ${name}<N - 1>(x); ${body} }
template <> float ${name}<0>(float x) { return x; }`,
    call: (name) => `${name}<3>(x)`,
  },
  nested: {
    declare: (name) => `template <int N> struct ${name};`,
    define: (name, body) =>
      `template <int N> struct ${name} { static float run(float x) { x = ${name}<N - 1>::run(x); ${body} } };
template <> struct ${name}<0> { static float run(float x) { return x; } };`,
    call: (name) => `${name}<2>::run(x)`,
  },
  pack: {
    declare: (name) => `inline float ${name}(float x) { return x; }`,
    define: (name, body) =>
      `template <typename... R> float ${name}(float x, float y, R... rest) { x += ${name}(y, rest...); ${body} }`,
    call: (name) => `${name}(x, 1.0f, 2.0f)`,
  },
  method: {
    declare: (name) => `struct ${name} { static float run(float x); };`,
    define: (name, body) => `float ${name}::run(float x) { ${body} }`,
    call: (name) => `${name}::run(x)`,
  },
  operator: {
    declare: (name) => `struct ${name} { float v; }; float operator+(${name} a, ${name} b);`,
    define: (name, body) => `float operator+(${name} a, ${name} b) { float x = a.v + b.v; ${body} }`,
    call: (name) => `(${name}{x} + ${name}{1.0f})`,
  },
};
/** These kinds must be defined before their callers; functions of other kinds are declared first. */
const definedFirst = new Set(["nested", "pack"]);
export const kindNames: readonly string[] = Object.keys(kinds);

export interface CallProgram {
  readonly source: string;
  /** The kinds of the functions in the cycle. */
  readonly cycle: readonly string[];
}

/** Draws a program, and if `length` is not 0, a cycle of that many functions in it. */
export function drawCalls(random: Random, length: number): CallProgram {
  const functions = Array.from({ length: 5 }, (_, at) => {
    const kind = pick(random, kindNames);
    return { name: `F${at}`, kind: kinds[kind], kindName: kind, callees: new Set<number>() };
  });
  // Functions of these kinds come first, so that later functions can call them.
  functions.sort((a, b) => Number(definedFirst.has(b.kindName)) - Number(definedFirst.has(a.kindName)));
  for (const [at, { callees }] of functions.entries())
    for (let count = random.integer(0, 2); count > 0 && at > 0; count--) callees.add(random.integer(0, at - 1));
  // In a cycle of several functions, at most the first one must be defined before its callers.
  const free = functions.map((_, at) => at).filter((at) => !definedFirst.has(functions[at].kindName));
  const first = random.integer(0, functions.length - 1);
  const cycle = length === 0 ? [] : [first, ...free.filter((at) => at !== first).slice(0, length - 1)];
  for (const [at, member] of cycle.entries()) functions[member].callees.add(cycle[(at + 1) % cycle.length]);
  const body = (callees: ReadonlySet<number>): string => {
    const calls = [...callees].map((callee) => `x += ${functions[callee].kind.call(functions[callee].name)};`);
    return `if (x > ${random.integer(1, 9)}.0f) { ${calls.join(" ")} } return x;`;
  };
  const lines = [
    "#include <metal_stdlib>\nusing namespace metal;",
    ...functions.map(({ name, kind }) => kind.declare(name)),
    ...functions.map(({ name, kind, callees }) => kind.define(name, body(callees))),
    `kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float x = y[i]; ${functions.map(({ name, kind }) => `x += ${kind.call(name)};`).join(" ")} y[i] = x; }`,
  ];
  return { source: lines.join("\n"), cycle: cycle.map((at) => functions[at].kindName) };
}
