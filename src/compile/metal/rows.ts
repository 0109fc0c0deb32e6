/**
 * Finds products whose rows the next dispatch normalizes, or of which it computes the gradient of a normalization. One
 * kernel does both: each threadgroup computes whole rows of the product, and then their normalization.
 */

import type { Tile } from "../../ops/matmul/tiles.ts";
import { normalizationParameters } from "../../ops/normalization/primitive.ts";
import { MAX_RANK } from "../../tensor/shape.ts";
import { productMemory, productStatements, type TiledCall, tiledCall } from "./bodies.ts";
import { attribute, Buffers, dispatchOf, gridOf, type Planned, parametersOf, rangesOf } from "./dispatches.ts";
import { productOf } from "./products.ts";

const ROWS = "compiled_rows";

/** SIMD-groups of a threadgroup, each of which normalizes rows. */
const TEAMS = 4;
const LANES = 32;

/** The longest rows. Wider tiles need too much threadgroup memory. */
const MOST_COLUMNS = 128;

/** Tiles as high as the rows of one or more threadgroups of a normalization. */
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
      ...{ header: "normalization/normalize.h", rows: [0, 1] },
      pointers: [...[type, type, vector, vector].map(reads), ...[type, type, "float", "float"].map(writes)],
      memory: ["float row_parts[2 * SIMDGROUPS]", "float2 row_pairs[2 * SIMDGROUPS]"],
      statement: (pointers, p, group) =>
        `normalize_rows(${[...pointers, p, "row_parts", "row_pairs", group, "thread_index"].join(", ")});`,
    };
  return {
    ...{ header: "normalization/normalize_gradient.h", rows: [0, 1, 2] },
    pointers: [...[type, type, type, vector, "float", "float"].map(reads), ...[type, "float"].map(writes)],
    memory: ["float2 row_sums[2]", "float2 row_pairs[2 * SIMDGROUPS]"],
    statement(pointers, p, group) {
      const operands = `const Operands<${type}, ${vector}> all = {${pointers.slice(0, 7).join(", ")}};`;
      const rest = [pointers[7], p, "row_sums", "row_pairs", group, "thread_index"].join(", ");
      return `${operands}\n        normalize_gradient_rows(all, ${rest});`;
    },
  };
}

/** Returns one dispatch for a product and the next dispatch; undefined if it does not normalize the product's rows. */
export function rowsDispatch(product: Planned, next: Planned): Planned | undefined {
  const tiled = tiledCall(product);
  const kernel = tiled && rowKernel(next);
  const tile = kernel && tileFor(product, tiled, next, kernel);
  if (!tile) return undefined;
  const call: TiledCall = { ...tiled, tile: { ...tile, fits: () => false } };
  const buffers = new Buffers();
  const added = (of: Planned) => rangesOf(of).map((range, at) => buffers.add(range, of.writes[at]!));
  const [factors, operands] = [added(product), added(next)];
  const { type, out } = tiled;
  const [a, b] = factors.slice(0, 2).map((at) => buffers.pointer(at, `device const ${type} *`)) as [string, string];
  const input = buffers.pointer(factors[2]!, `device const ${out} *`);
  const result = `const ProductResult<${out}> result = {${input}, ${buffers.pointer(factors[3]!, `device ${out} *`)}};`;
  const pointers = kernel.pointers.map((of, at) => buffers.pointer(operands[at]!, of));
  const count = buffers.ranges.length;
  const each = tile.rows / rowsOfGroup(next);
  const { m } = productOf(product);
  return dispatchOf({
    ...{ kernel: ROWS, constants: next.kernel!.constants!, buffers, gridKind: "threadgroups" },
    source: `// A product of a compiled function, and the normalization of its rows.

#include "elementwise/chain.h"
#include "matmul/tiled.h"
#include "${kernel.header}"

kernel void ${ROWS}(
    ${buffers.declarations().join(",\n    ")},
    constant Product &product ${attribute(`buffer(${count})`)},
    constant Normalization &p ${attribute(`buffer(${count + 1})`)},
    uint3 group ${attribute("threadgroup_position_in_grid")},
    uint thread_index ${attribute("thread_index_in_threadgroup")},
    uint simdgroup_index ${attribute("simdgroup_index_in_threadgroup")},
    uint lane ${attribute("thread_index_in_simdgroup")}) {
    ${[productMemory(call), ...kernel.memory].map((array) => `threadgroup ${array};`).join("\n    ")}
    {${productStatements(call, [a, b], "product", result)}
    }
    threadgroup_barrier(mem_flags::mem_device);  // wait until the rows were written
    for (uint part = 0; part < ${each}; part += 1) {
        ${kernel.statement(pointers, "p", `group.y * ${each} + part`)}
    }
}
`,
    inline: [parametersOf(product), parametersOf(next)],
    grid: [1, Math.ceil(m / tile.rows)],
    threadgroup: TEAMS * LANES,
    replaces: [product, next],
  });
}

const longsIn = (call: Planned) => {
  const bytes = parametersOf(call);
  return (at: number) => Number(new DataView(bytes.buffer).getBigInt64(at, true));
};

const { members } = normalizationParameters.metal;

/** The rows that a threadgroup normalizes. */
const rowsOfGroup = (call: Planned): number => TEAMS * longsIn(call)(members["chunk"]!.offset);

/** Returns the tile for a product whose rows the next dispatch reads; undefined if they can't be one kernel. */
function tileFor(
  product: Planned,
  tiled: TiledCall,
  next: Planned,
  kernel: RowKernel,
): (typeof wideTiles)[number] | undefined {
  const { m, n, splits, isRowMajor, hasInput } = productOf(product);
  const [, lanes] = next.kernel!.constants!;
  const written = product.operands[3]!;
  if (splits !== 1 || !isRowMajor || n > MOST_COLUMNS || lanes !== LANES) return undefined;
  if (!kernel.pointers[0]!.includes(` ${tiled.out} `) || gridOf(next).threads !== TEAMS * LANES) return undefined;
  if (!readsRows(next, kernel, rangesOf(product)[3]!.offset, { entry: written, m, n })) return undefined;
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

/** Whether a dispatch reads the rows of a product as rows, in order, and nothing else of it. */
function readsRows(next: Planned, { rows }: RowKernel, offset: number, { entry, m, n }: Rows): boolean {
  const long = longsIn(next);
  const slices = members["rows"]!;
  const at = (name: string) => slices.offset + slices.field.members![name]!.offset;
  const nest = slices.field.members!["nest"]!;
  const inNest = (name: string) => slices.offset + nest.offset + nest.field.members![name]!.offset;
  if (long(at("length")) !== n || long(inNest("count")) !== m || long(inNest("rank")) !== 1) return false;
  const ranges = rangesOf(next);
  const reading = next.operands.flatMap((operand, index) => (operand === entry ? [index] : []));
  return (
    reading.length > 0 &&
    reading.every(
      (index) =>
        rows.includes(index) &&
        ranges[index]!.offset === offset &&
        long(inNest("start") + 8 * index) === 0 &&
        long(at("along") + 8 * index) === 1 &&
        long(inNest("strides") + 8 * MAX_RANK * index) === n,
    )
  );
}
