/** The arithmetic types of Metal that drawn programs use, and the random source. */
import type { Random } from "../../../ops/samples.ts";

export interface Type {
  readonly scalar: string;
  /** The number of components; 1 for a scalar. */
  readonly length: number;
}

export const integers = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"] as const;
export const floats = ["half", "float"] as const;
export const scalars: readonly string[] = ["bool", ...integers, ...floats, "bfloat"];

export const scalar = (name: string): Type => ({ scalar: name, length: 1 });
export const nameOf = ({ scalar: name, length }: Type): string => (length === 1 ? name : `${name}${length}`);
export const isInteger = ({ scalar: name }: Type): boolean => (integers as readonly string[]).includes(name);
export const isFloating = ({ scalar: name }: Type): boolean => (floats as readonly string[]).includes(name);
export const isUnsigned = ({ scalar: name }: Type): boolean => /^u(char|short|int|long)$/.test(name);

/** Bytes of a scalar. */
const sizes: Readonly<Record<string, number>> = {
  bool: 1,
  char: 1,
  uchar: 1,
  short: 2,
  ushort: 2,
  half: 2,
  bfloat: 2,
  int: 4,
  uint: 4,
  float: 4,
  long: 8,
  ulong: 8,
};

/** Scalars of the same size, for `as_type`; bool is excluded. */
export const ofSameSize = ({ scalar: name, length }: Type): Type[] =>
  scalars
    .filter((other) => other !== "bool" && other !== name && sizes[other] === sizes[name])
    .map((other) => ({ scalar: other, length }));

export const pick = <Choice>(random: Random, list: readonly Choice[]): Choice =>
  list[random.integer(0, list.length - 1)]!;

export function drawType(random: Random): Type {
  const name = pick(random, scalars);
  const length = random.integer(0, 2) === 0 ? random.integer(2, 4) : 1;
  return { scalar: name, length };
}

/**
 * Literals for a number from 1 to 99. A literal with a decimal point and no suffix is a `float`, because Metal has no
 * double.
 */
const literals: Readonly<Record<string, (number: number) => readonly string[]>> = {
  bool: (number) => [number % 2 === 0 ? "true" : "false"],
  float: (number) => [
    `${number}.5f`,
    `.${number}F`,
    `${number}.`,
    `${number}.25`,
    `${number}e-2f`,
    `0x1.8p${number % 9}f`,
  ],
  half: (number) => [`${number}.5h`, `${number}.0H`, `half(${number})`],
  bfloat: (number) => [`bfloat(${number}.0f)`],
  int: (number) => [`${number}`, `-${number}`, `0${number % 8}`, `0x${number}`, `0b10${number % 2}`, `1'0${number}`],
  uint: (number) => [`${number}u`, `0x${number}U`],
  long: (number) => [`${number}l`, `${number}L`, `long(${number})`],
  ulong: (number) => [`${number}ul`, `${number}UL`, `ulong(${number})`],
};

/** A literal of the type; for small integers, which have no literals, a conversion. */
export function literal({ scalar: name }: Type, random: Random): string {
  const number = random.integer(1, 99);
  return pick(random, literals[name]?.(number) ?? [`${name}(${number})`]);
}
