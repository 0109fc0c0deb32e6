/** Declarations of drawn programs: constants, functions, overloads, templates, structures. */
import type { Random } from "../../../ops/samples.ts";
import { type Callable, expression, type Scope, type Variable } from "./expressions.ts";
import { drawType, literal, nameOf, pick, scalar, type Type } from "./types.ts";

export const times = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Declarations of a program, for the kernels that follow. */
export interface Declared {
  readonly text: string[];
  readonly functions: Callable[];
  /** Names that every function can use. */
  readonly variables: Variable[];
  /** Names that only kernels can use: they have the buffers. */
  readonly inKernels: Variable[];
}

export type Declare = (declared: Declared, index: number, random: Random) => void;

/** A depth of 2 draws expressions of up to a few lines. */
export const value = (type: Type, scope: Scope, depth = 2): string => expression(type, depth, scope);

export const scopeOf = ({ functions }: Declared, variables: readonly Variable[], random: Random): Scope => ({
  random,
  functions,
  variables,
});

const constant: Declare = (declared, index, random) => {
  const type = drawType(random);
  const initial = type.length === 1 ? literal(type, random) : `${nameOf(type)}(${literal(type, random)})`;
  const qualifiers = pick(random, ["constant", "constexpr constant", "constant constexpr"]);
  declared.text.push(`${qualifiers} ${nameOf(type)} c${index} = ${initial};`);
  declared.variables.push({ text: `c${index}`, type, isConst: true });
};

const table: Declare = (declared, index, random) => {
  const type = scalar(pick(random, ["int", "uint", "float"]));
  declared.text.push(`constant ${nameOf(type)} t${index}[] = {${times(4, () => literal(type, random)).join(", ")}};`);
  declared.variables.push({ text: `t${index}[${random.integer(0, 3)}]`, type, isConst: true });
};

const functionConstant: Declare = (declared, index, random) => {
  const type = scalar(pick(random, ["bool", "int", "uint", "float", "half"]));
  declared.text.push(`constant ${nameOf(type)} k${index} [[function_constant(${index})]];`);
  const defined = `is_function_constant_defined(k${index})`;
  declared.variables.push({ text: `(${defined} ? k${index} : ${literal(type, random)})`, type, isConst: true });
};

const enumeration: Declare = (declared, index, random) => {
  const base = pick(random, ["", " : uchar", " : int", " : uint"]);
  const isClass = random.integer(0, 1) === 1;
  declared.text.push(
    `enum ${isClass ? "class " : ""}E${index}${base} { One${index} = 1, Two${index}, Five${index} = 5 };`,
  );
  const text = isClass ? `int(E${index}::Two${index})` : `int(Two${index})`;
  declared.variables.push({ text, type: scalar("int"), isConst: true });
};

const plainFunction: Declare = (declared, index, random) => {
  const [result, ...parameters] = times(random.integer(1, 3) + 1, () => drawType(random));
  const names = parameters.map((type, at) => ({ text: `p${at}`, type }));
  const scope = scopeOf(declared, [...names, ...declared.variables], random);
  const list = names.map(({ text, type }) => `${pick(random, ["", "const "])}${nameOf(type)} ${text}`);
  const kind = pick(random, ["", "static ", "inline ", "static inline "]);
  const body = `const uint i = 1; return ${value(result, scope)};`;
  declared.text.push(`${kind}${nameOf(result)} f${index}(${list.join(", ")}) { ${body} }`);
  declared.functions.push({ name: `f${index}`, result: result, parameters });
};

/** Overloads with distinct parameter types. */
const overloads: Declare = (declared, index, random) => {
  const types = [scalar("int"), scalar("float"), { scalar: "float", length: 3 }, { scalar: "half", length: 2 }];
  for (const type of types.filter(() => random.integer(0, 2) > 0)) {
    const scope = scopeOf(declared, [{ text: "x", type }], random);
    declared.text.push(`${nameOf(type)} o${index}(${nameOf(type)} x) { uint i = 2; return ${value(type, scope)}; }`);
    declared.functions.push({ name: `o${index}`, result: type, parameters: [type] });
  }
};

const template: Declare = (declared, index, random) => {
  const body = pick(random, [
    "return T(x + x);",
    "T y = x; y += x; return y;",
    "thread T &r = x; r = T(r * r); return r;",
  ]);
  const more = pick(random, ["", ", uint N = 3", ", typename U = T"]);
  declared.text.push(`template <typename T${more}> T g${index}(T x) { ${body} }`);
  for (const type of [scalar("int"), scalar("float"), { scalar: "half", length: 4 }, { scalar: "uint", length: 2 }])
    declared.functions.push({
      name: pick(random, [`g${index}`, `g${index}<${nameOf(type)}>`]),
      result: type,
      parameters: [type],
    });
};

/** A structure with a method, a constructor from its members, and an operator. */
const structure: Declare = (declared, index, random) => {
  const type = scalar(pick(random, ["float", "int", "uint", "half"]));
  const name = nameOf(type);
  const scope = scopeOf(
    declared,
    [
      { text: "a", type },
      { text: "b.x", type },
    ],
    random,
  );
  declared.text.push(
    `struct S${index} {
  ${name} a; ${name}2 b; ${name} list[3];
  ${name} get(${name} x) const { const uint i = 0; return ${name}(x + ${value(type, scope, 1)}); }
  void set(${name} x) { a = x; b = ${name}2(x); for (${name} thread &each : list) each = x; }
  static ${name} half_of(${name} x) { return ${name}(x / ${name}(2)); }
};
${name} s${index}(${name} x) {
  S${index} s; s.set(x); s.a = ${name}(s.a + s.list[1]);
  return s.get(S${index}::half_of(x));
}`,
  );
  declared.functions.push({ name: `s${index}`, result: type, parameters: [type] });
};

/** A function for pointers of each address space, and one for references. */
const spaces: Declare = (declared, index, random) => {
  const types = ["device const", "threadgroup const", "constant", "thread const"];
  const rows = types.map((space, at) => {
    const joined = pick(random, ["+", "*", "-"]);
    return `float at${index}(${space} float *p, uint k) { return p[k] ${joined} ${at + 1}.0f; }`;
  });
  const constants = `constant float near${index}[4] = {1, 2, 3, 4};`;
  const reference = `template <typename P> float first${index}(P p) { return p[0]; }`;
  declared.text.push(...rows, constants, reference);
  for (const pointer of ["x", "tile", `near${index}`]) {
    declared.inKernels.push({ text: `at${index}(${pointer}, i & 3)`, type: scalar("float"), isConst: true });
    declared.inKernels.push({ text: `first${index}(${pointer} + 1)`, type: scalar("float"), isConst: true });
  }
};

const namespaced: Declare = (declared, index, random) => {
  const type = drawType(random);
  const initial = type.length === 1 ? literal(type, random) : `${nameOf(type)}(${literal(type, random)})`;
  declared.text.push(
    `namespace n${index} {
using V = ${nameOf(type)}; typedef V W; constant W one = ${initial}; static V get() { return one; }
}`,
  );
  declared.functions.push({ name: `n${index}::get`, result: type, parameters: [] });
};

export const declarations = {
  constant,
  table,
  functionConstant,
  enumeration,
  plainFunction,
  overloads,
  template,
  structure,
  spaces,
  namespaced,
} satisfies Readonly<Record<string, Declare>>;
