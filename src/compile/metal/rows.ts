/**
 * Finds products whose rows are the input of a normalization or of its gradient in the next dispatch. One kernel does
 * both: each threadgroup computes whole rows of the product and normalizes them. If a product of the normalized rows
 * follows, the threadgroup then computes the same rows of it.
 */

import type { Tile } from "../../ops/matmul/tiles.ts";
import { normalizationParameters } from "../../ops/normalization/primitive.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import { productMemory, productStatements, type TiledCall, tiledCall } from "./bodies.ts";
import type { Chain } from "./chains.ts";
import {
  attribute,
  Buffers,
  dispatchOf,
  gridOf,
  type Planned,
  parametersOf,
  type Range,
  rangesOf,
} from "./dispatches.ts";
import { productOf } from "./products.ts";
import { chainParameters, placesIn, productParts } from "./source.ts";

const ROWS = "compiled_rows";

/** SIMD-groups of a threadgroup, each of which normalizes rows. */
const TEAMS = 4;
const LANES = 32;

/** The longest rows. Wider tiles need too much threadgroup memory. */
const MOST_COLUMNS = 128;

/** Tiles with as many rows as one or more threadgroups of a normalization process. */
const wideTiles = [
  { rows: 16, columns: MOST_COLUMNS, depth: 16, down: 2, across: 2 },
  { rows: 8, columns: MOST_COLUMNS, depth: 16, down: 1, across: 4 },
] as const satisfies readonly Omit<Tile, "fits">[];

/** A kernel of normalizations: its statements, and the types of its operands. */
interface RowKernel {
  readonly header: string;
  readonly pointers: readonly string[];
  /** The operands with rows, in the order of the loop over rows. */
  readonly rows: readonly number[];
  /** The operand with the normalized rows, or with their gradient. */
  readonly out: number;
  /** The operand with the sums of a residual; plain calls without a residual bind `out`. */
  readonly sum?: number;
  readonly memory: readonly string[];
  /** @param p the parameters @param group the threadgroup's number */
  statement(pointers: readonly string[], p: string, group: string): string;
}

const kernelName = /^(normalize|normalize_gradient)_([a-z]+)_([a-z]+)$/;

function rowKernel({ kernel }: Planned): RowKernel | undefined {
  const match = kernel?.file.startsWith("normalization/") && kernelName.exec(kernel.name);
  if (!match) return undefined;
  const [, name, type, vector] = match as unknown as [string, string, string, string];
  const reads = (of: string) => `device const ${of} *`;
  const writes = (of: string) => `device ${of} *`;
  if (name === "normalize")
    return {
      header: "normalization/normalize.h",
      rows: [0, 1],
      out: 4,
      sum: 5,
      pointers: [...[type, type, vector, vector].map(reads), ...[type, type, "float", "float"].map(writes)],
      memory: ["float row_parts[2 * SIMDGROUPS]", "float2 row_pairs[2 * SIMDGROUPS]"],
      statement: (pointers, p, group) =>
        `normalize_rows(${[...pointers, p, "row_parts", "row_pairs", group, "thread_index"].join(", ")});`,
    };
  return {
    header: "normalization/normalize_gradient.h",
    rows: [0, 1, 2],
    out: 6,
    pointers: [...[type, type, type, vector, "float", "float"].map(reads), ...[type, "float"].map(writes)],
    memory: ["float2 row_sums[2]", "float2 row_pairs[2 * SIMDGROUPS]"],
    statement(pointers, p, group) {
      const operands = `const Operands<${type}, ${vector}> all = {${pointers.slice(0, 7).join(", ")}};`;
      const rest = [pointers[7], p, "row_sums", "row_pairs", group, "thread_index"].join(", ");
      return `${operands}\n        normalize_gradient_rows(all, ${rest});`;
    },
  };
}

/** A product, and the normalization of its rows. */
export interface RowsPlan {
  readonly product: Planned;
  readonly next: Planned;
  readonly tiled: TiledCall;
  readonly kernel: RowKernel;
  /** Where the product's rows are stored; undefined for the product's own result. */
  readonly place: Range | undefined;
}

/** A product of normalized rows, and the chain that follows it. */
interface Second {
  readonly product: Planned;
  readonly tiled: TiledCall;
  readonly chain: Chain | undefined;
}

/**
 * Returns one dispatch for a product and the next dispatch; undefined if it does not normalize the product's rows.
 *
 * @param isNeeded whether another dispatch or the caller needs the product
 */
export function rowsDispatch(product: Planned, next: Planned, isNeeded: boolean): Planned | undefined {
  const tiled = tiledCall(product);
  const kernel = tiled && rowKernel(next);
  const tile = kernel && tileFor(product, tiled, next, kernel);
  if (!tile) return undefined;
  const place = isNeeded ? undefined : placeInResult(product, next, kernel);
  const plan: RowsPlan = { product, next, kernel, place, tiled: { ...tiled, tile: { ...tile, fits: () => false } } };
  const call = planDispatch(plan, undefined, [product, next]);
  return call && { ...call, rows: plan };
}

/** Returns the function constants of a dispatch of a kernel. */
const constantsOf = ({ kernel }: Planned) => kernel?.constants ?? [];

const FITS = 3; // the index of this function constant of `kernels/normalization/rows.h`

/**
 * Returns the memory of the normalized rows, if the product's rows can be stored in it first. Each thread then reads
 * all its elements of a row before it overwrites them.
 */
function placeInResult(product: Planned, next: Planned, { out, sum }: RowKernel): Range | undefined {
  const place = rangesOf(next)[out];
  const others = [...product.operands, ...next.operands.filter((_, at) => at !== out && at !== sum)];
  const isOther = others.includes(place.entry) || place.length !== rangesOf(product)[3].length;
  return isOther || constantsOf(next)[FITS] === 0 || !next.writes[out] ? undefined : place;
}

/** Whether a product has large tiles, which load each element less often than wide tiles do. */
const isLarge = ({ tile }: TiledCall): boolean => Math.min(tile.rows, tile.columns) > 32;

/**
 * The maximum columns of a second product. Its threadgroups compute all columns of their rows, one tile after another.
 */
const MOST_SECOND = 512;

/** Returns one dispatch for normalized rows and a product of them; undefined if they can't be one kernel. */
export function secondProductDispatch(rows: Planned, call: Planned): Planned | undefined {
  const plan = rows.rows!;
  const { product, next, tiled, kernel } = plan;
  const chain = call.chain?.head ? call.chain : undefined;
  const second = chain?.head?.call ?? call;
  const found = tiledCall(second);
  if (!found || found.type !== tiled.type || isLarge(found)) return undefined;
  const facts = productOf(second);
  const { m, n } = productOf(product);
  if (facts.splits !== 1 || !facts.isFactorRowMajor || facts.m !== m || facts.k !== n || facts.n > MOST_SECOND)
    return undefined;
  const [a] = rangesOf(second);
  const normalized = rangesOf(next)[kernel.out];
  if (a.entry !== normalized.entry || a.offset !== normalized.offset) return undefined;
  // other threadgroups may write rows at the same time, so only the rows of this one may be read
  const reads = [...rangesOf(second).slice(1, facts.hasInput ? 3 : 2), ...(chain?.loads ?? [])];
  const written = rows.operands.filter((_, at) => rows.writes[at]);
  if (reads.some(({ entry }) => written.includes(entry))) return undefined;
  if (call.operands.some((entry, at) => call.writes[at] && rows.operands.includes(entry))) return undefined;
  const wide = { product: second, chain, tiled: { ...found, tile: tiled.tile } };
  return planDispatch(plan, wide, [rows, call]);
}

/** Metal allows 31 buffers, of which up to 4 are parameters. */
const MAX_BUFFERS = 26;

function planDispatch(plan: RowsPlan, second: Second | undefined, replaces: readonly Planned[]): Planned | undefined {
  const { product, next, tiled, kernel, place } = plan;
  const buffers = new Buffers();
  const placeOf = (range: Range) => (place && range.entry === product.operands[3] ? place : range);
  const added = (of: Planned) => rangesOf(of).map((range, at) => buffers.add(placeOf(range), of.writes[at]));
  const [factors, operands] = [added(product), added(next)];
  const parts = second && secondParts(second, buffers);
  if (buffers.ranges.length > MAX_BUFFERS) return undefined;
  const pointers = kernel.pointers.map((of, at) => buffers.pointer(operands[at], of));
  const structs = [["Product", "product"], ["Normalization", "p"], ...(parts?.structs ?? [])];
  const parameters = structs.map(
    ([type, name], at) => `constant ${type} &${name} ${attribute(`buffer(${buffers.ranges.length + at})`)}`,
  );
  const memory = new Set([productMemory(tiled), ...kernel.memory, ...(second ? [productMemory(second.tiled)] : [])]);
  const { rows } = tiled.tile;
  const each = rows / rowsOfGroup(next);
  return dispatchOf({
    kernel: ROWS,
    constants: constantsOf(next),
    buffers,
    gridKind: "threadgroups",
    replaces,
    source: `// A product of a compiled function, and the normalization of its rows.

#include "elementwise/chain.h"
#include "matmul/tiled.h"
#include "${kernel.header}"
${parts?.declarations ?? ""}
kernel void ${ROWS}(
    ${[...buffers.declarations(), ...parameters].join(",\n    ")},
    uint3 position ${attribute("threadgroup_position_in_grid")},
    uint thread_index ${attribute("thread_index_in_threadgroup")},
    uint simdgroup_index ${attribute("simdgroup_index_in_threadgroup")},
    uint lane ${attribute("thread_index_in_simdgroup")}) {
    ${[...memory].map((array) => `threadgroup ${array};`).join("\n    ")}
    {
        const uint3 group = position;${plainProduct(tiled, factors, "product", buffers)}
    }
    threadgroup_barrier(mem_flags::mem_device);  // wait until the rows were written
    for (uint part = 0; part < ${each}; part += 1) {
        ${kernel.statement(pointers, "p", `position.y * ${each} + part`)}
    }${parts?.statements ?? ""}
}
`,
    inline: [parametersOf(product), parametersOf(next), ...(parts?.inline ?? [])],
    grid: [1, Math.ceil(productOf(product).m / rows)],
    threadgroup: TEAMS * LANES,
  });
}

/** Returns the statements of a product that is stored. @param at the buffers of its operands */
function plainProduct(tiled: TiledCall, at: readonly number[], product: string, buffers: Buffers): string {
  const { type, out } = tiled;
  const factors = at.slice(0, 2).map((factor) => buffers.pointer(factor, `device const ${type} *`));
  const input = buffers.pointer(at[2], `device const ${out} *`);
  const output = buffers.pointer(at[3], `device ${out} *`);
  return productStatements(tiled, factors, product, `const ProductResult<${out}> result = {${input}, ${output}};`);
}

/** The parts of a kernel that compute a second product. */
interface SecondParts {
  readonly structs: readonly (readonly [type: string, name: string])[];
  readonly inline: readonly Uint8Array[];
  readonly declarations: string;
  readonly statements: string;
}

function secondParts({ product, tiled, chain }: Second, buffers: Buffers): SecondParts {
  const parts = chain && productParts(chain, chain.head!, placesIn(buffers, chain));
  const places = chain ? [] : rangesOf(product).map((range, at) => buffers.add(range, product.writes[at]));
  const statements = parts
    ? productStatements(tiled, parts.factors, "second", parts.result)
    : plainProduct(tiled, places, "second", buffers);
  return {
    structs: [["Product", "second"], ...(chain ? ([["Chain", "chain"]] as const) : [])],
    inline: [parametersOf(product), ...(chain ? [chainParameters(chain)] : [])],
    declarations: parts?.declarations ?? "",
    statements: `
    threadgroup_barrier(mem_flags::mem_device);  // wait until the normalized rows were written
    for (uint column = 0; column * ${tiled.tile.columns} < uint(second.n); column += 1) {
        const uint3 group = {column, position.y, 0};${statements}
    }`,
  };
}

const longsIn = (call: Planned) => {
  const bytes = parametersOf(call);
  return (at: number) => Number(new DataView(bytes.buffer).getBigInt64(at, true));
};

const { members } = normalizationParameters.metal;

/** The rows that a threadgroup normalizes. */
const rowsOfGroup = (call: Planned): number => TEAMS * longsIn(call)(members["chunk"].offset);

/** Returns the tile for a product whose rows the next dispatch reads; undefined if they can't be one kernel. */
function tileFor(
  product: Planned,
  tiled: TiledCall,
  next: Planned,
  kernel: RowKernel,
): (typeof wideTiles)[number] | undefined {
  const { m, n, splits, isRowMajor, hasInput } = productOf(product);
  const [, lanes] = constantsOf(next);
  const written = product.operands[3];
  if (splits !== 1 || !isRowMajor || n > MOST_COLUMNS || lanes !== LANES || isLarge(tiled)) return undefined;
  if (!kernel.pointers[0].includes(` ${tiled.out} `) || gridOf(next).threads !== TEAMS * LANES) return undefined;
  if (!readsRows(next, kernel, rangesOf(product)[3].offset, { entry: written, m, n })) return undefined;
  // other threadgroups read the factors after this one has written its rows
  const read = product.operands.slice(0, hasInput ? 3 : 2);
  if (next.operands.some((entry, at) => next.writes[at] && (read.includes(entry) || entry === written)))
    return undefined;
  return wideTiles.find(({ rows }) => rows % rowsOfGroup(next) === 0);
}

interface Rows {
  readonly entry: Planned["operands"][number];
  readonly m: number;
  readonly n: number;
}

/** Whether a dispatch reads a product only row by row, in order. */
function readsRows(next: Planned, { rows }: RowKernel, offset: number, { entry, m, n }: Rows): boolean {
  const long = longsIn(next);
  const { offset: start, field: slices } = members["rows"];
  const placeIn = ({ members: parts = {} }: typeof slices, name: string) => parts[name];
  const at = (name: string) => start + placeIn(slices, name).offset;
  const nest = placeIn(slices, "nest");
  const inNest = (name: string) => start + nest.offset + placeIn(nest.field, name).offset;
  if (long(at("length")) !== n || long(inNest("count")) !== m || long(inNest("rank")) !== 1) return false;
  const ranges = rangesOf(next);
  const reading = next.operands.flatMap((operand, index) => (operand === entry ? [index] : []));
  return (
    reading.length > 0 &&
    reading.every(
      (index) =>
        rows.includes(index) &&
        ranges[index].offset === offset &&
        long(inNest("start") + 8 * index) === 0 &&
        long(at("along") + 8 * index) === 1 &&
        long(inNest("strides") + 8 * MAX_RANK * index) === n,
    )
  );
}
