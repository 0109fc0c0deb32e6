/**
 * Files of programs on metal: safetensors with the blocks of the recorded dispatches, the state and the constants, and
 * JSON in the metadata. Fusion runs again when a program is loaded, so a file names built-in kernels only. Kernels
 * trust the numbers in blocks; a digest detects damage.
 */
import { kernelText } from "../../backend/metal/kernel_files.ts";
import { kernelHeaders } from "../../backend/metal/launch.ts";
import { layouts } from "../../backend/metal/layouts.ts";
import { defaultGenerator } from "../../random/generator.ts";
import type { Storage } from "../../tensor/storage.ts";
import type { SavedDispatches } from "../metal/replay.ts";
import type { Entry } from "../recording.ts";
import { unsaved } from "../replay.ts";
import type { Tree } from "../tree.ts";
import type { SavedLayout, SavedLeaf } from "./format.ts";

/** A recorded dispatch: its kernel, the bytes of its block, its operands' entries, and those that it writes. */
export interface SavedCall {
  readonly name: string;
  readonly kernel: { readonly file: string; readonly name: string; readonly constants: readonly number[] };
  readonly bytes: number;
  readonly operands: readonly number[];
  readonly writes: readonly boolean[];
}

/** Memory that dispatches bind. `index` is that of the argument, the state or the constant. */
export interface SavedEntry extends Pick<Entry, "bytes" | "first" | "last" | "changes"> {
  readonly source: "input" | "external" | "computed" | "host";
  readonly index: number;
}

/** The JSON of a program on metal. */
export interface SavedDevice {
  readonly version: number;
  readonly backend: "metal";
  /** The fingerprint of the kernels. */
  readonly library: string;
  readonly inputs: Tree<SavedLayout>;
  /** For each argument, the elements before its first one when it was recorded. Kernels rely on its alignment. */
  readonly firsts: readonly number[];
  readonly result: Tree<SavedLeaf>;
  readonly calls: readonly SavedCall[];
  readonly entries: readonly SavedEntry[];
  /** The state that the program changes. `after`: the entry of its new memory; null if it is changed in place. */
  readonly changes: readonly { readonly state: number; readonly versions: number; readonly after: number | null }[];
  /** The entries of positions of invalid elements, and what an element's error expects. */
  readonly checks: readonly { readonly entry: number; readonly operation: string; readonly expected: string }[];
  readonly draws: readonly {
    readonly ahead: number;
    readonly places: readonly { readonly call: number; readonly at: number }[];
  }[];
  readonly advance: number;
  readonly state: number;
  readonly constants: number;
  readonly isFused: boolean;
  readonly isFast: boolean;
  /** The digest of the JSON, with an empty digest, and of the blocks. */
  readonly digest: string;
}

/** Returns the contents of a file, but for the trees, the version and the digest. */
export function deviceParts({ recording, advances, isFused, isFast }: SavedDispatches) {
  const { calls, entries, changes, checks, draws } = recording;
  if ([...advances, ...draws].some(({ generator }) => generator !== defaultGenerator))
    throw unsaved("it uses a generator other than the default one");
  const state: Storage[] = [];
  const stateOf = (storage: Storage): number => {
    const known = state.indexOf(storage);
    return known < 0 ? state.push(storage) - 1 : known;
  };
  const constants: Uint8Array[] = [];
  const indexOf = ({ source, index, storage, contents }: Entry): number => {
    if (source === "external") return stateOf(storage!);
    return source === "host" ? constants.push(contents!) - 1 : index;
  };
  const json = {
    calls: calls.map(({ name, kernel, block, operands, writes }): SavedCall => {
      if (!kernel) throw unsaved("it calls a kernel that is not built in");
      const { file, name: kernelName, constants: values = [] } = kernel;
      return {
        name,
        writes,
        kernel: { file, name: kernelName, constants: values },
        bytes: block.length,
        operands: operands.map(({ id }) => id),
      };
    }),
    entries: entries.map((entry): SavedEntry => {
      const { source, bytes, first, last, changes: count } = entry;
      if (source === "gradient" || source === "array") throw unsaved("it uses gradients of earlier calls");
      return { source, bytes, first, last, changes: count, index: indexOf(entry) };
    }),
    changes: changes.map(({ storage, gradient, versions, after }) => {
      if (gradient !== undefined) throw unsaved("it sets gradients");
      return { versions, state: stateOf(storage), after: after?.id ?? null };
    }),
    checks: checks.map(({ entry, errorAt }) => ({ entry: entry.id, ...expectedBy(errorAt(0)) })),
    draws: draws.map(({ ahead, places }) => ({ ahead: Number(ahead), places })),
    advance: Number(advances[0]?.count ?? 0n),
    isFused,
    isFast,
  };
  return { json, state, constants, blocks: joined(calls.map(({ block }) => withoutPipeline(block))) };
}

/** Returns the operation of an error, and the start of its message: "expected indices of 0 to 4". */
function expectedBy(error: Error | undefined): { readonly operation: string; readonly expected: string } {
  const match = /^\[([^\]]*)\] (.*?), got /s.exec(error?.message ?? "");
  return { operation: match?.[1] ?? "loadProgram", expected: match?.[2] ?? "expected other elements" };
}

const { pipeline: PIPELINE } = layouts.dispatch.offsets as { readonly pipeline: number };

function withoutPipeline(block: Uint8Array): Uint8Array {
  const copy = block.slice();
  return copy.fill(0, PIPELINE, PIPELINE + 8);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Returns a block with the handle of its pipeline. */
export function withPipeline(block: Uint8Array, handle: number): Uint8Array {
  new DataView(block.buffer, block.byteOffset).setBigUint64(PIPELINE, BigInt(handle), true);
  return block;
}

/** Returns the digest of a program's JSON and blocks. */
export const digestOf = (json: object, blocks: Uint8Array): string =>
  new Bun.CryptoHasher("sha256")
    .update(JSON.stringify({ ...json, digest: "" }))
    .update(blocks)
    .digest("hex");

const fileName = /^[a-z0-9_/]+\.metal$/;

/**
 * Returns a fingerprint of kernel files with all headers that they include; undefined if there is no such file.
 */
export function kernelFingerprint(calls: readonly SavedCall[]): string | undefined {
  const headers = kernelHeaders();
  const texts = new Map<string, string>();
  const visit = (name: string, text: string): void => {
    if (texts.has(name)) return;
    texts.set(name, text);
    for (const [, header] of text.matchAll(/#include "([^"]+)"/g)) visit(header, headers[header] ?? "");
  };
  for (const file of new Set(calls.map(({ kernel }) => kernel.file))) {
    if (!fileName.test(file)) return undefined;
    try {
      visit(file, kernelText(file));
    } catch {
      return undefined; // another version of the library has other files
    }
  }
  const sorted = [...texts].sort(([a], [b]) => (a < b ? -1 : 1));
  return Bun.SHA256.hash(JSON.stringify([sorted, layouts.dispatch, layouts.binding, layouts.inline]), "hex");
}
