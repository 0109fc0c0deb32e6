/** Tensors of strings, which have no dtype, and maps from labels to numbers. */
import { tensor } from "../ops/creation/tensor.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Value } from "./call.ts";
import { NodeProblem } from "./errors.ts";

/** A tensor of strings, in row-major order. */
export interface OnnxStrings {
  readonly shape: readonly number[];
  readonly strings: readonly string[];
}

/** Numbers by label, such as the probability of each class. */
export type OnnxMap = ReadonlyMap<string | number, number>;

export const isStrings = (value: unknown): value is OnnxStrings =>
  typeof value === "object" && value !== null && !(value instanceof Tensor) && "strings" in value;

/** Creates a tensor of strings, by default a vector. */
export const stringsOf = (strings: readonly string[], shape: readonly number[] = [strings.length]): OnnxStrings => ({
  shape,
  strings,
});

/** Operators that move or compare elements, and which of their results are strings: all, only the first, or none. */
const moving: Readonly<Record<string, "strings" | "first" | "other">> = {
  Compress: "strings",
  Concat: "strings",
  ConcatFromSequence: "strings",
  DepthToSpace: "strings",
  Equal: "other",
  Expand: "strings",
  Flatten: "strings",
  Gather: "strings",
  GatherElements: "strings",
  GatherND: "strings",
  Pad: "strings",
  Reshape: "strings",
  ReverseSequence: "strings",
  Scatter: "strings",
  ScatterElements: "strings",
  ScatterND: "strings",
  Shape: "other",
  Size: "other",
  Slice: "strings",
  SpaceToDepth: "strings",
  Split: "strings",
  SplitToSequence: "strings",
  Squeeze: "strings",
  Tile: "strings",
  Transpose: "strings",
  Trilu: "strings",
  Unique: "first",
  Unsqueeze: "strings",
  Where: "strings",
  ArrayFeatureExtractor: "strings",
};

const holdsStrings = (value: Value): boolean => isStrings(value) || (Array.isArray(value) && value.some(holdsStrings));

/** A step with its strings replaced by indices. */
export interface Indexed {
  readonly inputs: readonly Value[];
  /** Converts the indices in the results back to strings. */
  readonly restore: (results: readonly Value[]) => readonly Value[];
}

/**
 * Replaces strings by integers in the same order, so that operators on tensors can move and compare them. The empty
 * string, with which operators pad, is 0. Returns undefined if no input has strings, or for operators that read them.
 */
export function indexed(operator: string, inputs: readonly Value[]): Indexed | undefined {
  const returned = Object.hasOwn(moving, operator) ? moving[operator] : undefined;
  if (returned === undefined || !inputs.some(holdsStrings)) return undefined;
  const found = new Set<string>([""]);
  const visit = (value: Value): void => {
    if (isStrings(value)) for (const each of value.strings) found.add(each);
    else if (Array.isArray(value)) for (const each of value) visit(each);
  };
  for (const input of inputs) visit(input);
  const all = [...found].sort(byCodePoints);
  const places = new Map(all.map((each, at) => [each, at]));
  const toIndices = (value: Value): Value => {
    if (!isStrings(value)) return Array.isArray(value) ? value.map(toIndices) : value;
    const list = BigInt64Array.from(value.strings, (each) => BigInt(places.get(each)!));
    return tensor(list, { shape: [...value.shape], dtype: "int64" });
  };
  const toStrings = (value: Value): Value => {
    if (!(value instanceof Tensor)) return Array.isArray(value) ? value.map(toStrings) : value;
    return stringsOf(
      Array.from(value.dataSync() as BigInt64Array, (at) => all[Number(at)]),
      value.shape,
    );
  };
  const isRestored = (at: number) => returned === "strings" || (returned === "first" && at === 0);
  return {
    inputs: inputs.map(toIndices),
    restore: (results) => results.map((value, at) => (isRestored(at) ? toStrings(value) : value)),
  };
}

/** Compares by code point, which is the order of UTF-8 bytes. UTF-16 order differs for characters above U+FFFF. */
const byCodePoints = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Parses a number like C's strtod. @throws {NodeProblem} */
export function numberIn(text: string): number {
  const trimmed = text.trim();
  const named = { inf: Infinity, "+inf": Infinity, infinity: Infinity, "-inf": -Infinity, nan: Number.NaN };
  const special = (named as Readonly<Record<string, number>>)[trimmed.toLowerCase()];
  const value = special ?? Number(trimmed);
  if (trimmed === "" || (special === undefined && Number.isNaN(value)))
    throw new NodeProblem(`expected a number, got ${JSON.stringify(text)}`);
  return value;
}

/** Formats a number like onnxruntime's casts: float32 with up to 8 digits, float64 with up to 17. */
export function textOf(value: number | bigint | boolean, isDouble = false): string {
  if (typeof value !== "number" || Number.isInteger(value)) return `${value}`;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "INF" : "-INF";
  return `${isDouble ? value : Number(value.toPrecision(8))}`;
}
