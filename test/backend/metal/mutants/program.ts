/** Types of programs with planted mistakes. */
import type { Random } from "../../../ops/samples.ts";

/** One mistake: a text of the source, its replacement, and the expected finding. */
export interface Mistake {
  readonly name: string;
  readonly find: string;
  readonly replace: string;
  readonly kinds: readonly string[];
  /** The name that the advice has to contain. */
  readonly says: RegExp;
}

/** A kernel `k` with its arguments and the mistakes that can be planted in it. */
export interface Program {
  readonly name: string;
  readonly source: string;
  readonly bindings: () => Record<string, Float32Array | Float16Array | Uint32Array | Uint8Array>;
  readonly grid: number | [number, number];
  readonly threadgroup: number | [number, number];
  readonly mistakes: readonly Mistake[];
}

const header = "#include <metal_stdlib>\nusing namespace metal;\n";
export const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";
export const position = "uint i [[thread_position_in_grid]]";
export const place = "uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]";

export const races = ["threadgroup-race", "uninitialized-read"];
export const exchange = /threadgroup_barrier\(mem_flags::mem_(?:threadgroup|device)\)|write it first/;
export const bounds = /compare the index|keep it below|check the index|left the bounds/;

export const drop = (name: string, find: string, kinds = races, says = exchange): Mistake => ({
  name: `without ${name}`,
  find,
  replace: ";",
  kinds,
  says,
});
export const change = (find: string, replace: string, kinds: readonly string[], says: RegExp): Mistake => ({
  name: `${replace} for ${find}`,
  find,
  replace,
  kinds,
  says,
});
export const outside = (find: string, replace: string, more: readonly string[] = []): Mistake =>
  change(find, replace, ["out-of-bounds", "page-fault", ...more], bounds);

export const pick = <Choice>(random: Random, list: readonly Choice[]): Choice =>
  list[random.integer(0, list.length - 1)]!;

export const floats = (count: number) => Float32Array.from({ length: count }, (_, at) => (at % 17) + 0.5);
export const places = (count: number) => Uint32Array.from({ length: count }, (_, at) => (at * 7) % count);

export const program = (name: string, body: string, rest: Omit<Program, "name" | "source">): Program => ({
  name,
  source: header + body,
  ...rest,
});
