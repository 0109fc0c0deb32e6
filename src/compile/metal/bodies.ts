/** The kernels whose code is also a function of a header, so that a generated kernel can call it. */

import { productParameters } from "../../ops/matmul/primitive.ts";
import { type Tile, threadgroupBytes, tiles } from "../../ops/matmul/tiles.ts";
import { normalizationParameters } from "../../ops/normalization/primitive.ts";
import { reductionParameters } from "../../ops/reduction/primitive.ts";
import { gridOf } from "./dispatches.ts";
import type { DeviceCall } from "./recording.ts";

/** A kernel as statements. */
export interface Body {
  /** Bodies with equal keys have the same code. */
  readonly key: string;
  readonly header: string;
  /** The function constants of the header. */
  readonly constants: readonly number[];
  /** Threadgroup memory: the declaration of an array, and its size. */
  readonly memory: string;
  readonly memoryBytes: number;
  /** Threads of a threadgroup, and the number of threadgroups. */
  readonly threads: number;
  readonly threadgroups: readonly [number, number, number];
  /** The struct of the parameters. */
  readonly parameters: string;
  /** The types of the pointers, in the order of the operands. */
  readonly pointers: readonly string[];
  /**
   * Returns the statements for a threadgroup. `thread_index`, `simdgroup_index` and `lane` are in scope.
   *
   * @param group the threadgroup's position, a `uint3`
   */
  statements(pointers: readonly string[], parameters: string, group: string): string;
}

/**
 * Returns the body of a dispatch; undefined if its kernel has none.
 *
 * @param isWithProducts whether the threadgroups have as many threads as those of products, if that is possible
 */
export function bodyOf(call: DeviceCall, isWithProducts = false): Body | undefined {
  const { threadgroups, threads } = gridOf(call);
  if (!call.kernel || !threadgroups) return undefined;
  const body = productBody(call) ?? foldBody(call, isWithProducts) ?? addChunksBody(call);
  return body && { threads, threadgroups, ...body };
}

const constant = (type: string): string => `device const ${type} *`;
const mutable = (type: string): string => `device ${type} *`;

/** A dispatch of the kernel `tiled`. */
export interface TiledCall {
  /** The types of the factors and of the result. */
  readonly type: string;
  readonly out: string;
  readonly tile: Tile;
  /** The fields of `TileLayout`. */
  readonly layout: readonly number[];
}

const tiledName = /^tiled_([a-z]+)_([a-z]+)_(\d+)x(\d+)x(\d+)$/;

export function tiledCall({ kernel }: DeviceCall): TiledCall | undefined {
  const match = kernel?.file === "matmul/tiled.metal" && tiledName.exec(kernel.name);
  if (!match) return undefined;
  const [, type, out] = match as unknown as [string, string, string];
  const [rows, columns, depth] = match.slice(3).map(Number);
  const tile = tiles.find((each) => each.rows === rows && each.columns === columns && each.depth === depth);
  return tile && { type, out, tile, layout: kernel.constants! };
}

/** Returns the template arguments of a tiled product. */
export const tileArguments = ({ type, tile }: Pick<TiledCall, "type" | "tile">): string =>
  [type, tile.rows, tile.columns, tile.depth, tile.down, tile.across].join(", ");

/**
 * Returns the statements of a tiled product.
 *
 * @param result the declaration of the variable `result`
 */
export const productStatements = (call: TiledCall, [a, b]: readonly string[], product: string, result: string) => `
        const TileLayout layout = {${call.layout.join(", ")}};
        ${result}
        tiled_product<${tileArguments(call)}>(
            ${a}, ${b}, ${product}, layout, result, ${memoryName(call)}, group, thread_index, simdgroup_index, lane);`;

const memoryName = ({ type, tile: { rows, columns } }: TiledCall): string => `tiles_${type}_${rows}x${columns}`;

/** Returns the declaration of a tiled product's threadgroup memory. */
export const productMemory = (call: TiledCall): string =>
  `float4 ${memoryName(call)}[tiled_memory<${tileArguments(call)}>()]`;

/** A body; the grid is by default that of its dispatch. */
type Found = Omit<Body, "threads" | "threadgroups"> & Partial<Body>;

function productBody(call: DeviceCall): Found | undefined {
  const tiled = tiledCall(call);
  if (!tiled) return undefined;
  const { type, out, layout } = tiled;
  return {
    key: `${call.kernel!.name} ${layout.join(" ")}`,
    header: "matmul/tiled.h",
    constants: [],
    parameters: productParameters.name,
    memory: productMemory(tiled),
    memoryBytes: threadgroupBytes(tiled.tile, type === "float" ? 4 : 2),
    pointers: [constant(type), constant(type), constant(out), mutable(out)],
    statements: (pointers, product, group) =>
      `const uint3 group = ${group};${productStatements(
        tiled,
        pointers,
        product,
        `const ProductResult<${out}> result = {${pointers[2]}, ${pointers[3]}};`,
      )}`,
  };
}

/** Size of a `FoldState`. */
const STATE_BYTES = 24;

/** The type in which elements of a type are reduced. */
const numberOf = (type: string): string => (["float", "half", "bfloat"].includes(type) ? "float" : "long");

/** The columns of a threadgroup that sums columns, with 8 threads for each. */
const SUMMED_COLUMNS = 32;

/**
 * With half as many columns and threads in a threadgroup, each sum has the same order. Such threadgroups have as many
 * threads as those of products.
 */
function foldBody(call: DeviceCall, isHalved: boolean): Found | undefined {
  const { file, name, constants = [] } = call.kernel!;
  const match = file === "reduction/fold.metal" && /^fold_([a-z]+)_([a-z]+)$/.exec(name);
  if (!match) return undefined;
  const [, type, out] = match as unknown as [string, string, string];
  const memory = `states_${numberOf(type)}`;
  const parts = isHalved && constants[1] === SUMMED_COLUMNS ? 2 : 1;
  const { threads: all, threadgroups } = gridOf(call);
  const threads = all / parts;
  const [width, height, depth] = threadgroups!;
  return {
    key: name,
    header: "reduction/fold.h",
    parameters: reductionParameters.name,
    threads,
    constants: parts === 1 ? constants : [constants[0], SUMMED_COLUMNS / parts, constants[2]],
    threadgroups: [width * parts, height, depth],
    memory: `FoldState<${numberOf(type)}> ${memory}[${threads}]`,
    memoryBytes: STATE_BYTES * threads,
    pointers: [constant(type), mutable(out)],
    statements: ([input, output], p, group) => `const Share share = share_of(${p}, thread_index, ${group}.xy);
        store_result(fold_elements(${input}, ${p}, share, ${memory}, thread_index), ${output}, ${p}, share);`,
  };
}

function addChunksBody(call: DeviceCall): Found | undefined {
  const { file, name, constants = [] } = call.kernel!;
  const match = file === "normalization/normalize_gradient.metal" && /^add_chunks_([a-z]+)$/.exec(name);
  if (!match) return undefined;
  const [, type] = match as unknown as [string, string];
  return {
    key: name,
    header: "normalization/normalize_gradient.h",
    parameters: normalizationParameters.name,
    constants: constants.slice(0, 1), // OPTIONS
    memory: "float chunk_memory[ADDED_THREADS]",
    memoryBytes: 4 * gridOf(call).threads,
    pointers: [constant("float"), mutable(type), mutable(type)],
    statements: (pointers, p, group) =>
      `add_chunks_of(${[...pointers, p, "chunk_memory", `${group}.xy`, "thread_index"].join(", ")});`,
  };
}
