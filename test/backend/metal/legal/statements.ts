/** Statements of drawn kernels, and the variables that they declare. */
import { value } from "./declarations.ts";
import type { Scope, Variable } from "./expressions.ts";
import { drawType, isInteger, nameOf, pick, scalar } from "./types.ts";

export type Statement = (
  scope: Scope,
  index: number,
) => { readonly text: string; readonly variables?: readonly Variable[] };

const variable: Statement = (scope, index) => {
  const type = drawType(scope.random);
  const variables = [{ text: `v${index}`, type }];
  return { text: `${nameOf(type)} v${index} = ${value(type, scope)};`, variables };
};

/** A variable of the body, which it may write. */
function own(scope: Scope): Variable | undefined {
  const list = scope.variables.filter(({ text, isConst }) => /^v\d+$/.test(text) && !isConst);
  return list.length === 0 ? undefined : pick(scope.random, list);
}

const assignment: Statement = (scope) => {
  const target = own(scope);
  if (!target) return { text: ";" };
  const { text, type } = target;
  if (type.length > 1 && scope.random.integer(0, 1) === 0) {
    const letter = pick(scope.random, ["x", "y", "xy", "yx"]);
    return { text: `${text}.${letter} = ${value({ ...type, length: letter.length }, scope)};` };
  }
  const operators =
    type.scalar === "bool" ? ["="] : isInteger(type) ? ["=", "+=", "-=", "*=", "^=", "|="] : ["=", "+=", "*="];
  return { text: `${text} ${pick(scope.random, operators)} ${value(type, scope)};` };
};

const branch: Statement = (scope, index) => {
  const inner = assignment(scope, index).text;
  const condition = value(scalar("bool"), scope);
  return {
    text: pick(scope.random, [
      `if (${condition}) { ${inner} }`,
      `if (${condition}) ${inner} else { ${assignment(scope, index).text} }`,
    ]),
  };
};

const loop: Statement = (scope, index) => {
  const count = scope.random.integer(1, 4);
  const inner = assignment(scope, index).text;
  const k = `k${index}`;
  return {
    text: pick(scope.random, [
      `for (uint ${k} = 0; ${k} < ${count}; ${k}++) { ${inner} }`,
      `uint ${k} = ${count}; while (${k} > 0) { --${k}; if (${value(scalar("bool"), scope, 1)}) continue; ${inner} }`,
      `uint ${k} = 0; do { ${inner} } while (++${k} < ${count});`,
      `#pragma unroll\nfor (int ${k} = ${count}; ${k} >= 0; ${k} -= 1) { if (${k} == 1) break; ${inner} }`,
    ]),
  };
};

const choice: Statement = (scope, index) => {
  const [first, second] = [assignment(scope, index).text, assignment(scope, index).text];
  const on = `${value(scalar("int"), scope, 1)} & 3`;
  return { text: `switch (${on}) { case 0: ${first} break; case 1: case 2: ${second} default: break; }` };
};

const array: Statement = (scope, index) => {
  const type = drawType(scope.random);
  const name = nameOf(type);
  return {
    text: `${name} a${index}[4] = {${name}(${value(type, scope, 1)})};
thread ${name} *q${index} = a${index} + 1; *q${index} = ${value(type, scope, 1)};`,
    variables: [
      { text: `a${index}[i & 3]`, type },
      { text: `q${index}[1]`, type },
    ],
  };
};

const shared: Statement = (scope, index) => ({
  text: `threadgroup float m${index}[32]; m${index}[t & 31] = ${value(scalar("float"), scope)};
threadgroup_barrier(mem_flags::mem_threadgroup);`,
  variables: [{ text: `m${index}[t & 31]`, type: scalar("float"), isConst: true }],
});

const collective: Statement = (scope, index) => {
  const type = scalar(pick(scope.random, ["int", "uint", "float", "half", "ushort"]));
  const name = pick(scope.random, [
    "simd_sum",
    "simd_max",
    "simd_prefix_inclusive_sum",
    "quad_sum",
    "simd_broadcast_first",
  ]);
  return {
    text: `${nameOf(type)} v${index} = ${name}(${value(type, scope)});
v${index} = simd_shuffle_xor(v${index}, ushort(1));`,
    variables: [{ text: `v${index}`, type }],
  };
};

const atomic: Statement = (scope) => {
  const name = `atomic_fetch_${pick(scope.random, ["add", "max", "or", "xor"])}_explicit`;
  return { text: `${name}(&counts[i & 7], ${value(scalar("uint"), scope)}, memory_order_relaxed);` };
};

/** Initializing a threadgroup variable has no effect, so it is assigned before it is read. */
const initialized: Statement = (scope, index) => {
  const value = pick(scope.random, ["0", "0.0f", "{0}", "1.5f", "0.0", "1e-3"]);
  return {
    text: `threadgroup float n${index} = ${value}; if (t == 0) n${index} = 1;
threadgroup_barrier(mem_flags::mem_threadgroup);`,
    variables: [{ text: `n${index}`, type: scalar("float"), isConst: true }],
  };
};

export const statements = {
  initialized,
  variable,
  assignment,
  branch,
  loop,
  choice,
  array,
  shared,
  collective,
  atomic,
} satisfies Readonly<Record<string, Statement>>;
