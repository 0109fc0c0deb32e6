/**
 * The file of a program: safetensors with the instructions (`words`, `blocks`), the state and the constants as bytes,
 * and JSON in the metadata.
 */
import { nativeTables } from "../../backend/cpu/tables.ts";
import type { DType } from "../../tensor/dtype.ts";
import type { SavedSlot } from "../replay.ts";
import type { Layout, Tree } from "../tree.ts";

export const METADATA_NAME = "orchard.program";

/** The version of the format. */
export const VERSION = 2;

/** A tensor of a saved result. */
export type SavedLeaf = { readonly layout: SavedLayout } & (
  | { readonly from: "result" | "state"; readonly index: number }
  | { readonly from: "input"; readonly index: number; readonly isSame: boolean }
);

export type SavedLayout = Pick<Layout, "shape" | "strides" | "offset"> & { readonly dtype: DType };

/** The JSON of a program on cpu. */
export interface SavedJson {
  readonly version: number;
  readonly backend: "cpu";
  /** The fingerprint of the cpu dylib's functions. */
  readonly library: string;
  readonly inputs: Tree<SavedLayout>;
  readonly result: Tree<SavedLeaf>;
  readonly slots: readonly SavedSlot[];
  readonly arenaBytes: number;
  readonly state: number;
  readonly constants: number;
  /** The bytes of each result, and whether the file stores its contents. */
  readonly results: readonly { readonly bytes: number; readonly hasContents?: boolean }[];
  readonly draws: readonly { readonly ahead: number; readonly places: readonly number[] }[];
  /** The number of random calls. */
  readonly advance: number;
}

/** Returns a fingerprint of the dylib's functions and enumerations, whose numbers are in programs. */
export function libraryFingerprint(): string {
  const { functions, names } = nativeTables();
  return Bun.SHA256.hash(JSON.stringify([functions, names]), "hex");
}

/** Returns a value of a tree as text; undefined if a file can't store it. */
export function textOf(value: unknown): string | undefined {
  if (value === null || value === undefined || typeof value === "boolean") return String(value);
  if (typeof value === "string") return `"${value}`;
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  return undefined;
}

const words: Readonly<Record<string, unknown>> = { null: null, undefined, true: true, false: false };

export function valueFrom(text: string): unknown {
  if (Object.hasOwn(words, text)) return words[text];
  if (text.startsWith('"')) return text.slice(1);
  return /^-?\d+n$/.test(text) ? BigInt(text.slice(0, -1)) : Number(text);
}

export const layoutFrom = ({ dtype, shape, strides, offset }: SavedLayout): Layout => ({
  dtype,
  shape,
  strides,
  offset,
  start: 0,
  count: 0,
});

/** Returns a copy of a tree with converted leaves. Other values are parsed from their text. */
export function withValues<From, To>(tree: Tree<From>, leafOf: (leaf: From) => To): Tree<To> {
  if (tree.kind === "leaf") return { kind: "leaf", leaf: leafOf(tree.leaf) };
  if (tree.kind === "value") return { kind: "value", value: valueFrom(tree.value as string) };
  const items = tree.items.map((item) => withValues(item, leafOf));
  return tree.kind === "array" ? { kind: "array", items } : { kind: "object", keys: tree.keys, items };
}
