/**
 * Fields of native parameters: of a kernel's parameter struct on metal, and of a call's block on cpu. A family's
 * `primitive.ts` declares its fields once; `struct` and `cpuCall` lay them out.
 */
import type { DType } from "../tensor/dtype.ts";
import { plainList } from "../tensor/frozen.ts";
import type { Enumeration } from "./enumeration.ts";

/** A field of a struct of Metal Shading Language, in C's layout. */
export interface MetalField<Value> {
  /** The type, such as `long`, for messages and the test that asks the compiler. */
  readonly type: string;
  /** The type in a template of the number of operands, if it differs. */
  readonly template?: string;
  readonly size: number;
  readonly alignment: number;
  write(view: DataView, at: number, value: Value): void;
  /** The nested fields by name, with their offsets. */
  readonly members?: Readonly<Record<string, { readonly field: MetalField<never>; readonly offset: number }>>;
}

/** A field of a block, which is an array of doubles. */
export interface CpuField<Value> {
  /** The C++ type. */
  readonly type: string;
  /** The type in a template of the number of operands, if it differs. */
  readonly template?: string;
  /** Length in doubles. */
  readonly length: number;
  /** The nested fields by name, with their offsets in doubles. */
  readonly members?: Readonly<Record<string, { readonly field: CpuField<never>; readonly offset: number }>>;
  /** Returns JavaScript for the double of a value, if a field of one double needs no function call. */
  readonly inline?: (value: string) => string;
  write(block: Float64Array, at: number, value: Value, ordinals: NativeOrdinals): void;
}

/** Returns the dylib's ordinal of each name of an enumeration type. */
export type NativeOrdinals = (type: string) => Readonly<Record<string, number>>;

/** A field for one or both backends. */
export interface Field<Value> {
  readonly metal?: MetalField<Value>;
  readonly cpu?: CpuField<Value>;
}

/** A field for both backends. */
export interface SharedField<Value> {
  readonly metal: MetalField<Value>;
  readonly cpu: CpuField<Value>;
}

/** Returns a name in snake_case: `part_sizes` for `partSizes` and `PartSizes`. */
export const snakeCase = (name: string): string =>
  name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

/** Returns a field's type in a template of the number of operands: `NestBlock<operands>` for `NestBlock<2>`. */
export const templateOf = ({ type, template }: { readonly type: string; readonly template?: string }): string =>
  template ?? type.replace(/<\d+>$/, "<operands>");

/** Returns a field's declaration in C++ and MSL: `long[3]` and `partSizes` give `long part_sizes[3];`. */
export function declaration(type: string, name: string): string {
  const [, base, dimensions] = /^(.*?)((?:\[\w+\])*)$/.exec(type)!;
  return `${base} ${snakeCase(name)}${dimensions};`;
}

/** Lays out consecutive fields of a block. Returns their offsets and total length in doubles. */
export function cpuMembers(
  fields: Readonly<Record<string, Field<never>>>,
): Required<Pick<CpuField<never>, "members" | "length">> {
  const members: Record<string, { field: CpuField<never>; offset: number }> = {};
  let length = 0;
  for (const [name, { cpu }] of Object.entries(fields)) {
    if (!cpu) throw new TypeError(`expected fields for cpu, got ${name}, which is only for metal`);
    members[name] = { field: cpu, offset: length };
    length += cpu.length;
  }
  return { members, length };
}

/** The values of fields. */
export type ValuesOf<Fields> = {
  readonly [Name in keyof Fields]: Fields[Name] extends Field<infer Value> ? Value : never;
};

const WORD = 2 ** 32;

/** A field of one double that `encode` computes from a value. */
const double = <Value>(type: string, encode: (value: Value, ordinals: NativeOrdinals) => number): CpuField<Value> => ({
  type,
  length: 1,
  write(block, at, value, ordinals) {
    block[at] = encode(value, ordinals);
  },
});

const asItIs = (value: string): string => value;

/** A field of a number, which is its double. */
const numeric = (type: string): CpuField<number> => ({ ...double(type, (value: number) => value), inline: asItIs });

/** A whole number below 2⁵³: `long`. */
export const whole: SharedField<number> = {
  metal: {
    type: "long",
    size: 8,
    alignment: 8,
    write(view, at, value) {
      view.setUint32(at, value >>> 0, true);
      view.setInt32(at + 4, Math.floor(value / WORD), true);
    },
  },
  cpu: numeric("Whole"),
};

/** An unsigned 32-bit integer: `uint`. */
export const word: SharedField<number> = {
  metal: { type: "uint", size: 4, alignment: 4, write: (view, at, value) => view.setUint32(at, value, true) },
  cpu: numeric("Word"),
};

/** An unsigned 64-bit integer: `ulong`. */
export const wideWord: SharedField<bigint> = {
  metal: { type: "ulong", size: 8, alignment: 8, write: (view, at, value) => view.setBigUint64(at, value, true) },
  cpu: {
    type: "WideWord",
    length: 2,
    write(block, at, value) {
      const bits = BigInt.asUintN(64, value);
      block[at] = Number(bits & 0xffffffffn);
      block[at + 1] = Number(bits >> 32n);
    },
  },
};

/** A real number: `float` on metal, `double` on cpu. */
export const real: SharedField<number> = {
  metal: { type: "float", size: 4, alignment: 4, write: (view, at, value) => view.setFloat32(at, value, true) },
  cpu: numeric("Real"),
};

/** A boolean; on metal a `uint` of 0 or 1. */
export const flag: SharedField<boolean> = {
  metal: { type: "uint", size: 4, alignment: 4, write: (view, at, value) => view.setUint32(at, value ? 1 : 0, true) },
  cpu: { ...double("Flag", (value: boolean) => (value ? 1 : 0)), inline: (value) => `${value} ? 1 : 0` },
};

/** The field of a dtype, only in calls of the cpu dylib: Metal's kernels have the dtype in their names. */
export const dtype: Field<DType> & { readonly cpu: CpuField<DType> } = {
  cpu: double("DTypeField", (value, ordinals) => ordinals("DType")[value]),
};

/** A name of an enumeration. The dylib's ordinals come from its list. */
export const oneOf = <Name extends string>({ type, ordinal }: Enumeration<Name>): SharedField<Name> => ({
  metal: { type: "uint", size: 4, alignment: 4, write: (view, at, value) => view.setUint32(at, ordinal(value), true) },
  cpu: double(`Name<${type}>`, (value, ordinals) => ordinals(type)[value] ?? unknownName(type, value)),
});

function unknownName(type: string, name: string): never {
  throw new TypeError(`the cpu dylib has no ${type} named ${name}`);
}

/**
 * An array of `count` values of a field. On metal fewer may be given; the rest is zero. `symbol` names the count in
 * templates of the number of operands.
 */
export const array = <Value>(
  field: SharedField<Value>,
  count: number,
  symbol?: "operands",
): SharedField<readonly Value[]> => ({
  metal: {
    get type() {
      return withDimension(field.metal.type, count);
    },
    get template() {
      return withDimension(templateOf(field.metal), symbol ?? count);
    },
    size: field.metal.size * count,
    alignment: field.metal.alignment,
    write(view, at, values) {
      checkCount(values, count);
      for (let index = 0; index < values.length; index++)
        field.metal.write(view, at + index * field.metal.size, values[index]!);
    },
  },
  cpu: {
    get type() {
      return withDimension(field.cpu.type, count);
    },
    get template() {
      return withDimension(templateOf(field.cpu), symbol ?? count);
    },
    length: field.cpu.length * count,
    write(block, at, given, ordinals) {
      const values = plainList(given as readonly number[]) as readonly Value[]; // sizes and strides are frozen
      checkCount(values, count);
      if (isNumeric(field.cpu)) {
        const numbers = values as readonly number[];
        for (let index = 0; index < numbers.length; index++) block[at + index] = numbers[index];
        return;
      }
      for (let index = 0; index < values.length; index++)
        field.cpu.write(block, at + index * field.cpu.length, values[index]!, ordinals);
    },
  },
});

/** Whether the doubles of a field are its values, which arrays then copy. */
const isNumeric = ({ inline }: CpuField<never>): boolean => inline === asItIs;

/** Nests array types: 8 of `long` are `long[8]`, and 3 of `long[8]` are `long[3][8]`. */
const withDimension = (type: string, count: number | string): string => type.replace(/(?=\[|$)/, `[${count}]`);

function checkCount(values: readonly unknown[], count: number): void {
  if (values.length > count) throw new TypeError(`expected at most ${count} values, got ${values.length}`);
}
