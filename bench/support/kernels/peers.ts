/** Runs other projects' kernels, from a folder with their sources, for the calls whose Orchard kernels are counted. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Access, dataTypes } from "../../../src/backend/metal/abi.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import { encode, type Size } from "../../../src/backend/metal/encode.ts";
import { MetalMemory } from "../../../src/backend/metal/memory.ts";
import { createLibrary, finishPipeline, type Pipeline } from "../../../src/backend/metal/pipeline.ts";
import { getOrMake } from "../../../src/core/collections.ts";
import { zeros } from "../../../src/ops/index.ts";
import type { FloatDType } from "../../../src/tensor/dtype.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

/** Function constants by index. */
export type Constants = Readonly<Record<number, boolean | number>>;
/** The contents of a kernel's buffers by index: tensors, or the bytes of a number or struct. */
export type Arguments = Readonly<Record<number, Tensor | Uint8Array>>;

export interface PeerLaunch {
  /** The path within the folder. */
  readonly file: string;
  readonly name: string;
  readonly constants?: Constants;
  readonly arguments: Arguments;
  /** Threads, or threadgroups if `threadgroups` is given. */
  readonly grid?: Size;
  readonly threadgroups?: Size;
  readonly threadgroup: Size;
}

/** A kernel of a peer, or several in sequence, for the operands of one of our calls. */
export interface PeerCase {
  /** The call of `cases.ts` with which the kernel is compared. */
  readonly name: string;
  readonly launches: (operands: readonly Tensor[], out: Tensor) => readonly PeerLaunch[];
  /** The shape of the result, which is compared with ours. */
  readonly shape: readonly number[];
  readonly dtype: FloatDType;
}

// ---------------------------------------------------------------- bytes of arguments

type Field = readonly [kind: "int" | "float" | "long", value: number];
const sizes = { int: 4, float: 4, long: 8 } as const;

/** Packs a C struct of these fields, each aligned to its size. */
export function packed(...fields: readonly Field[]): Uint8Array {
  let length = 0;
  const offsets = fields.map(([kind]) => {
    const offset = Math.ceil(length / sizes[kind]) * sizes[kind];
    length = offset + sizes[kind];
    return offset;
  });
  const widest = Math.max(...fields.map(([kind]) => sizes[kind]));
  const bytes = new Uint8Array(Math.ceil(length / widest) * widest);
  const view = new DataView(bytes.buffer);
  for (const [at, [kind, value]] of fields.entries()) {
    if (kind === "int") view.setInt32(offsets[at], value, true);
    else if (kind === "float") view.setFloat32(offsets[at], value, true);
    else view.setBigInt64(offsets[at], BigInt(value), true);
  }
  return bytes;
}

export const ints = (...values: readonly number[]): Field[] => values.map((value) => ["int", value]);
export const longs = (...values: readonly number[]): Field[] => values.map((value) => ["long", value]);
export const int = (value: number): Uint8Array => packed(["int", value]);
export const float = (value: number): Uint8Array => packed(["float", value]);
export const long = (value: number): Uint8Array => packed(["long", value]);

export const scratch = (shape: readonly number[], dtype: FloatDType): Tensor => zeros([...shape], { dtype });

// ---------------------------------------------------------------- launches

let headers: Record<string, string> | undefined;
const pipelines = new Map<string, Pipeline>();
const libraries = new Map<string, number>();

/** Returns every header in the folder under the names by which it can be included: its path and its file name. */
function headersOf(folder: string): Record<string, string> {
  headers ??= Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".h"))
      .flatMap((name) => {
        const text = readFileSync(join(folder, name), "utf8");
        return [name, name.slice(name.lastIndexOf("/") + 1)].map((key) => [key, text] as const);
      }),
  );
  return headers;
}

function pipelineOf(folder: string, { file, name, constants = {} }: PeerLaunch): Pipeline {
  const context = metalContext();
  const library = getOrMake(libraries, file, () =>
    createLibrary(context, file, {
      source: readFileSync(join(folder, file), "utf8"),
      headers: headersOf(folder),
      fileName: file,
      languageVersion: "3.2" as const,
      mathMode: "safe",
      mathFunctions: "precise",
    }),
  );
  return getOrMake(pipelines, `${name} ${JSON.stringify(constants)}`, () =>
    finishPipeline(context, name, library, name, Object.entries(constants).map(constantOf)),
  );
}

function constantOf([index, value]: [string, boolean | number]) {
  const type = typeof value === "boolean" ? dataTypes.bool : dataTypes.int;
  const bytes = typeof value === "boolean" ? new Uint8Array([Number(value)]) : int(value);
  return { name: "", index: Number(index), type, value: bytes };
}

/** Encodes a kernel from the folder. */
export function launchPeer(folder: string, what: PeerLaunch): void {
  const context = metalContext();
  const pipeline = pipelineOf(folder, what);
  const entries = Object.entries(what.arguments).map(([index, value]) => ({ index: Number(index), value }));
  const buffers = entries.flatMap(({ index, value }) => {
    if (value instanceof Uint8Array) return [];
    const { memory } = value.storage;
    if (!(memory instanceof MetalMemory)) throw new Error("expected an operand on the device");
    return [{ buffer: memory.handle, offset: 0, length: memory.byteLength, index, access: Access.readwrite }];
  });
  const inline = entries.flatMap(({ index, value }) => (value instanceof Uint8Array ? [{ index, bytes: value }] : []));
  encode(context, what.name, {
    pipeline: pipeline.handle,
    grid: what.grid ?? what.threadgroups!,
    threadgroup: what.threadgroup,
    gridKind: what.grid ? "threads" : "threadgroups",
    buffers,
    inline,
    threadgroupMemory: [],
    label: what.name,
  });
}

/** Whether the folder contains a file. */
export const hasFile = (folder: string, file: string): boolean => existsSync(join(folder, file));
