/** Determines types from tokens: built-in types, template parameters, and the project's structs. */

export interface Type {
  /** `float`, `uint2`, `T` for a template parameter, `T4` for a vector of it, or the name of a struct. */
  readonly base: string;
  /** `device`, `constant` or `threadgroup`; otherwise `thread`. */
  readonly space: string;
  /** The number of pointer and array levels. */
  readonly depth: number;
}

export const plain = (base: string): Type => ({ base, space: "", depth: 0 });

const scalarNames = ["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"];
const floatNames = ["half", "bfloat", "float"];
const scalars = new Set([...scalarNames, ...floatNames]);

/** Other spellings of the same types. */
const spellings: Readonly<Record<string, string>> = {
  int8_t: "char",
  uint8_t: "uchar",
  int16_t: "short",
  uint16_t: "ushort",
  int32_t: "int",
  uint32_t: "uint",
  int64_t: "long",
  uint64_t: "ulong",
  size_t: "ulong",
  ptrdiff_t: "long",
  "unsigned char": "uchar",
  "signed char": "char",
  "unsigned short": "ushort",
  "unsigned int": "uint",
  unsigned: "uint",
  signed: "int",
  "unsigned long": "ulong",
};

export const canonical = (name: string): string => spellings[name] ?? matrixOf(name) ?? name;

/** `simdgroup_half8x8` and `atomic<uint>` are alternative names of a type. */
const matrixOf = (name: string): string | undefined => {
  const element = /^simdgroup_(half|bfloat|float)8x8$/.exec(name)?.[1];
  if (element) return `simdgroup_matrix<${element}, 8, 8>`;
  const value = /^atomic<(bool|int|uint|float|ulong)>$/.exec(name)?.[1];
  return value && `atomic_${value}`;
};

/** Orders, scopes and flags count by name, since a function accepts only some of them. */
export const isFlag = (name: string): boolean => /^(memory_order_|thread_scope_|mem_flags::)/.test(name);

const vectorName = /^(bool|u?char|u?short|u?int|u?long|half|bfloat|float|T)([234])$/;
const builtIn = new RegExp(
  `^(?:(?:packed_)?(?:${[...scalars].join("|")})(?:[234](?:x[234])?)?|void|u?int(?:8|16|32|64)_t|size_t|ptrdiff_t|` +
    "unsigned|signed|atomic_(?:bool|int|uint|float|ulong|flag)|simdgroup_(?:half|bfloat|float)8x8|simd_vote|" +
    "quad_vote|sampler|(?:texture|depth)(?:1d|2d|3d|cube|_buffer)\\w*|memory_order|thread_scope)$",
);
const template = /^(vec|matrix|array|atomic|simdgroup_matrix|imageblock|texture_buffer)$/;

/** The name of one of Metal's types; the name of a template may also mean something else, unless `<` follows. */
export const isBuiltInType = (name: string, follower = ""): boolean =>
  builtIn.test(name) || (follower === "<" && template.test(name));
/** Types that are called to convert, and to construct vectors. */
export const isNumber = (name: string): boolean => scalars.has(canonical(name));
export const isVector = (base: string): boolean => vectorName.test(base);

/** Returns the element type and the number of elements of a vector or scalar. */
export function shapeOf(base: string): { readonly element: string; readonly count: number } | undefined {
  const vector = vectorName.exec(base);
  if (vector) return { element: vector[1], count: Number(vector[2]) };
  return scalars.has(base) || base === "T" ? { element: base, count: 1 } : undefined;
}

export const vectorOf = (element: string, count: number): string => (count === 1 ? element : `${element}${count}`);

/** Returns the type of an operation, by C++'s conversions of scalars and Metal's rule for vectors. */
export function common(a: Type | undefined, b: Type | undefined): Type | undefined {
  if (!a || !b) return undefined;
  if (a.depth > 0 || b.depth > 0) return a.depth > 0 ? a : b;
  const [left, right] = [shapeOf(a.base), shapeOf(b.base)];
  if (!left || !right) return undefined;
  if (left.count > 1 || right.count > 1) return left.count >= right.count ? a : b;
  const element = commonScalar(left.element, right.element);
  return element === undefined ? undefined : plain(element);
}

function commonScalar(a: string, b: string): string | undefined {
  if (a === b) return a === "T" ? a : promoted(a);
  if (a === "T" || b === "T") return undefined;
  if (floatNames.includes(a) || floatNames.includes(b)) {
    if (a === "float" || b === "float") return "float";
    return floatNames.includes(a) && floatNames.includes(b) ? undefined : floatNames.includes(a) ? a : b;
  }
  const larger = [promoted(a), promoted(b)].sort((x, y) => scalarNames.indexOf(y) - scalarNames.indexOf(x));
  return larger[0];
}

/** Small integers are computed in `int`. */
export const promoted = (scalar: string): string =>
  scalarNames.includes(scalar) && scalarNames.indexOf(scalar) < scalarNames.indexOf("int") ? "int" : scalar;

/** Integers of up to 32 bits count as one type, and those of 64 bits as another. */
const kinds: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["char", "uchar", "short", "ushort", "int", "uint"].map((name) => [name, "integer"])),
  long: "integer64",
  ulong: "integer64",
};

/** `float4`, `integer2`, `integer64`: the distinctions of conversions and operators. */
export function kindOf(type: Type | undefined): string {
  const shape = type?.depth === 0 ? shapeOf(type.base) : undefined;
  if (!shape) return describeType(type);
  return vectorOf(kinds[shape.element] ?? shape.element, shape.count);
}

/** Returns the kind of a type, as `kindOf` does, without the sizes of vectors. */
export function operandOf(type: Type): string {
  const shape = shapeOf(type.base);
  if (!shape || shape.count === 1) return kindOf(type);
  return `${kinds[shape.element] ?? shape.element} vector`;
}

/** `device float *`; the project's names appear as `_`. */
export function describeType(type: Type | undefined): string {
  if (!type) return "_";
  const base =
    isFlag(type.base) || isBuiltInType(type.base) || /^T[234]?$/.test(type.base) || type.base.includes("<")
      ? type.base
      : "_";
  if (type.depth === 0) return base;
  return `${type.space || "thread"} ${base} ${"*".repeat(type.depth)}`;
}

/** Returns the type of a literal number. */
export function literalType(text: string): Type | undefined {
  const isFloat = /^0[xX]/.test(text) ? /[pP]/.test(text) : /[.eE]/.test(text) || /[fFhH]$/.test(text);
  if (isFloat) return plain(/[hH]$/.test(text) ? "half" : /bf$/i.test(text) ? "bfloat" : "float");
  const suffix = /[uUlL]*$/.exec(text)![0].toLowerCase();
  if (suffix.includes("l")) return plain(suffix.includes("u") ? "ulong" : "long");
  const digits = text.slice(0, text.length - suffix.length).replaceAll("'", "");
  const isLarge = /^0[xXbB]?[\da-fA-F]+$|^\d+$/.test(digits) && BigInt(safeDigits(digits)) > 0xffffffffn;
  if (isLarge) return plain(suffix ? "ulong" : "long");
  return plain(suffix ? "uint" : "int");
}

/** An octal number is rare, and never large. */
const safeDigits = (digits: string): string => (/^0\d+$/.test(digits) ? "0" : digits);
