/**
 * Expressions of a given type, which every Metal compiler has to accept: MSL 2 (types), 3 (operators), 6 (functions).
 */
import type { Random } from "../../../ops/samples.ts";
import {
  drawType,
  isFloating,
  isInteger,
  isUnsigned,
  literal,
  nameOf,
  ofSameSize,
  pick,
  scalar,
  type Type,
} from "./types.ts";

/** The names that an expression can use. */
export interface Scope {
  readonly random: Random;
  readonly variables: readonly Variable[];
  readonly functions: readonly Callable[];
}

export interface Variable {
  readonly text: string;
  readonly type: Type;
  readonly isConst?: boolean;
}

export interface Callable {
  readonly name: string;
  readonly result: Type;
  /** The arguments of a call; by default values of these types. */
  readonly parameters: readonly Type[];
}

type Form = (type: Type, depth: number, scope: Scope) => string | undefined;

/** An expression of exactly this type: small integers are converted back, since arithmetic promotes them to `int`. */
export function expression(type: Type, depth: number, scope: Scope): string {
  if (depth <= 0) return leaf(type, scope);
  for (let attempt = 0; attempt < 12; attempt++) {
    const text = pick(scope.random, forms)(type, depth - 1, scope);
    if (text !== undefined) return text;
  }
  return leaf(type, scope);
}

function leaf(type: Type, scope: Scope): string {
  const own = scope.variables.filter((variable) => nameOf(variable.type) === nameOf(type));
  if (own.length > 0 && scope.random.integer(0, 3) > 0) return pick(scope.random, own).text;
  const text = literal(type, scope.random);
  return type.length === 1 ? text : `${nameOf(type)}(${text})`;
}

const operand = (type: Type, depth: number, scope: Scope): string => expression(type, depth, scope);
const isArithmetic = (type: Type): boolean => type.scalar !== "bool";

const conversion: Form = (type, depth, scope) => {
  const from: Type = { ...drawType(scope.random), length: type.length };
  if (type.length > 1 && (from.scalar === "bfloat") !== (type.scalar === "bfloat")) return undefined;
  const text = operand(from, depth, scope);
  return pick(scope.random, [
    `${nameOf(type)}(${text})`,
    `static_cast<${nameOf(type)}>(${text})`,
    `(${nameOf(type)})(${text})`,
  ]);
};

/** Builds a vector from scalars and shorter vectors. */
const joined: Form = (type, depth, scope) => {
  if (type.length === 1) return undefined;
  const parts: string[] = [];
  for (let left = type.length; left > 0; ) {
    const length = Math.min(left, scope.random.integer(1, Math.max(1, type.length - 1)));
    parts.push(operand({ ...type, length }, depth, scope));
    left -= length;
  }
  return `${nameOf(type)}(${parts.join(", ")})`;
};

const swizzle: Form = (type, depth, scope) => {
  const from = scope.random.integer(2, 4);
  const names = pick(scope.random, ["xyzw", "rgba"]).slice(0, from);
  const letters = Array.from({ length: type.length }, () => pick(scope.random, [...names])).join("");
  const base = operand({ ...type, length: from }, Math.min(depth, 1), scope);
  return /^\w+$/.test(base) ? `${base}.${letters}` : `(${base}).${letters}`;
};

const element: Form = (type, depth, scope) => {
  if (type.length !== 1) return undefined;
  const base = operand({ ...type, length: 4 }, Math.min(depth, 1), scope);
  return `(${base})[${pick(scope.random, ["0", "3", "i & 3"])}]`;
};

const binary: Form = (type, depth, scope) => {
  const [a, b] = [operand(type, depth, scope), operand(type, depth, scope)];
  if (isInteger(type)) {
    const operator = pick(scope.random, ["+", "-", "*", "&", "|", "^"]);
    return `${nameOf(type)}((${a}) ${operator} (${b}))`;
  }
  if (isArithmetic(type)) return `((${a}) ${pick(scope.random, ["+", "-", "*", "/"])} (${b}))`;
  return type.length === 1 ? `((${a}) ${pick(scope.random, ["&&", "||", "==", "!="])} (${b}))` : undefined;
};

const shift: Form = (type, depth, scope) => {
  if (!isInteger(type)) return undefined;
  const amount = type.length === 1 ? `${scope.random.integer(0, 7)}` : `${nameOf(type)}(${scope.random.integer(0, 7)})`;
  return `${nameOf(type)}((${operand(type, depth, scope)}) ${pick(scope.random, ["<<", ">>"])} ${amount})`;
};

const unary: Form = (type, depth, scope) => {
  const text = operand(type, depth, scope);
  if (!isArithmetic(type)) return `!(${text})`;
  if (isInteger(type)) return `${nameOf(type)}(${pick(scope.random, ["-", "~", "+"])}(${text}))`;
  return `-(${text})`;
};

const comparison: Form = (type, depth, scope) => {
  if (isArithmetic(type)) return undefined;
  const of: Type = { ...drawType(scope.random), length: type.length };
  if (!isArithmetic(of)) return undefined;
  const operator = pick(scope.random, ["<", "<=", ">", ">=", "==", "!="]);
  return `((${operand(of, depth, scope)}) ${operator} (${operand(of, depth, scope)}))`;
};

const conditional: Form = (type, depth, scope) =>
  `((${operand(scalar("bool"), depth, scope)}) ? ${nameOf(type)}(${operand(type, depth, scope)}) : ` +
  `${nameOf(type)}(${operand(type, depth, scope)}))`;

const selection: Form = (type, depth, scope) => {
  if (!isArithmetic(type)) return undefined;
  const condition = operand({ scalar: "bool", length: type.length }, depth, scope);
  return `select(${operand(type, depth, scope)}, ${operand(type, depth, scope)}, ${condition})`;
};

const bits: Form = (type, depth, scope) => {
  const others = isArithmetic(type) ? ofSameSize(type) : [];
  return others.length === 0
    ? undefined
    : `as_type<${nameOf(type)}>(${operand(pick(scope.random, others), depth, scope)})`;
};

/** Functions of the library by the types that they accept, with the number of arguments of the result's type. */
const library: readonly { readonly of: (type: Type) => boolean; readonly names: Readonly<Record<string, number>> }[] = [
  {
    of: isFloating,
    names: {
      sin: 1,
      cos: 1,
      exp: 1,
      exp2: 1,
      fabs: 1,
      floor: 1,
      ceil: 1,
      rint: 1,
      trunc: 1,
      sqrt: 1,
      rsqrt: 1,
      tanh: 1,
      fmin: 2,
      fmax: 2,
      pow: 2,
      fmod: 2,
      step: 2,
      copysign: 2,
      atan2: 2,
      fma: 3,
      mix: 3,
      smoothstep: 3,
      clamp: 3,
      min: 2,
      max: 2,
      abs: 1,
      sign: 1,
      saturate: 1,
      fract: 1,
      round: 1,
      "precise::sin": 1,
      "metal::exp": 1,
    },
  },
  {
    of: isInteger,
    names: {
      min: 2,
      max: 2,
      clamp: 3,
      popcount: 1,
      clz: 1,
      ctz: 1,
      reverse_bits: 1,
      rotate: 2,
      addsat: 2,
      subsat: 2,
      mulhi: 2,
      hadd: 2,
      rhadd: 2,
    },
  },
];

const isForFloatOnly = (name: string, { scalar: own }: Type): boolean =>
  name.startsWith("precise::") && own !== "float";

const call: Form = (type, depth, scope) => {
  const row = library.find(({ of }) => of(type));
  const names = Object.entries(row?.names ?? {}).filter(([name]) => !isForFloatOnly(name, type));
  if (names.length === 0) return undefined;
  const [name, count] = pick(scope.random, names);
  return `${name}(${Array.from({ length: count }, () => operand(type, depth, scope)).join(", ")})`;
};

/** Functions that compute a scalar from vectors. */
const reduction: Form = (type, depth, scope) => {
  if (type.length !== 1) return undefined;
  const length = scope.random.integer(2, 4);
  const vector = (name: string) => operand({ scalar: name, length }, depth, scope);
  if (isFloating(type)) {
    const name = pick(scope.random, ["dot", "distance", "length"]);
    return `${name}(${vector(type.scalar)}${name === "length" ? "" : `, ${vector(type.scalar)}`})`;
  }
  if (!isArithmetic(type)) return `${pick(scope.random, ["any", "all"])}(${vector("bool")})`;
  return undefined;
};

const absolute: Form = (type, depth, scope) => {
  if (!isInteger(type) || !isUnsigned(type)) return undefined;
  const signed: Type = { ...type, scalar: type.scalar.slice(1) };
  return pick(scope.random, [
    `abs(${operand(type, depth, scope)})`,
    `${nameOf(type)}(abs(${operand(signed, depth, scope)}))`,
  ]);
};

const invocation: Form = (type, depth, scope) => {
  const own = scope.functions.filter(({ result }) => nameOf(result) === nameOf(type));
  if (own.length === 0) return undefined;
  const { name, parameters } = pick(scope.random, own);
  return `${name}(${parameters.map((parameter) => operand(parameter, depth, scope)).join(", ")})`;
};

const forms: readonly Form[] = [
  conversion,
  joined,
  swizzle,
  element,
  binary,
  binary,
  shift,
  unary,
  comparison,
  conditional,
  selection,
  bits,
  call,
  call,
  reduction,
  absolute,
  invocation,
  invocation,
];
