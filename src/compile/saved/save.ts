/** Writes a recorded function to a file. */
import { saveSafetensors } from "../../io/safetensors/save.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { allocateHost } from "../../tensor/memory.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { SavedDispatches } from "../metal/replay.ts";
import { type ResultLeaf, type Saved, type SavedParts, unsaved } from "../replay.ts";
import { type Layout, leavesOf, type Tree } from "../tree.ts";
import { deviceParts, digestOf, kernelFingerprint, type SavedDevice } from "./device.ts";
import {
  libraryFingerprint,
  METADATA_NAME,
  type SavedJson,
  type SavedLayout,
  type SavedLeaf,
  textOf,
  VERSION,
} from "./format.ts";

/** Saves a program. @throws {CompileError} `unsaved` @throws {FileError} */
export const saveProgram = (path: string, parts: Saved, inputs: Tree<Layout>): Promise<void> =>
  parts.backend === "cpu"
    ? saveCalls(path, parts as SavedParts, inputs)
    : saveDispatches(path, parts as SavedDispatches, inputs);

async function saveCalls(path: string, parts: SavedParts, inputs: Tree<Layout>): Promise<void> {
  const { words, blocks, arenaBytes, slots, draws, advances, results } = parts;
  if (advances.some(({ generator }) => generator !== defaultGenerator))
    throw unsaved("it uses a generator other than the default one");
  const json: SavedJson = {
    version: VERSION,
    backend: "cpu",
    library: libraryFingerprint(),
    arenaBytes,
    slots,
    inputs: mapped(inputs, plainLayout),
    result: mapped(parts.result, (leaf) => savedLeaf(leaf, parts)),
    state: parts.state.length,
    constants: parts.constants.length,
    results: results.map(({ bytes, contents }) => ({ bytes, hasContents: contents !== null })),
    draws: draws.map(({ ahead, places }) => ({ ahead: Number(ahead), places })),
    advance: Number(advances[0]?.count ?? 0n),
  };
  const tensors: Record<string, Tensor> = { words: tensorOf(words, "int32"), blocks: tensorOf(blocks, "float64") };
  for (const [at, storage] of parts.state.entries()) tensors[`state.${at}`] = tensorOf(storage.hostBytes(), "uint8");
  for (const [at, bytes] of parts.constants.entries()) tensors[`constant.${at}`] = tensorOf(bytes, "uint8");
  for (const [at, bytes] of parts.contents.entries()) if (bytes) tensors[`result.${at}`] = tensorOf(bytes, "uint8");
  await saveSafetensors(path, tensors, { metadata: { [METADATA_NAME]: JSON.stringify(json) } });
}

async function saveDispatches(path: string, parts: SavedDispatches, inputs: Tree<Layout>): Promise<void> {
  const { json, state, constants, blocks } = deviceParts(parts);
  const { entries } = parts.recording;
  const library = kernelFingerprint(json.calls);
  if (library === undefined) throw unsaved("it calls a kernel that is not built in");
  const result = mapped(parts.result, (leaf) => savedLeaf(leaf, { results: entries, state }));
  const all: SavedDevice = {
    version: VERSION,
    backend: "metal",
    library,
    inputs: mapped(inputs, plainLayout),
    firsts: leavesOf(inputs).map(({ offset, start }) => offset - start),
    result,
    ...json,
    state: state.length,
    constants: constants.length,
    digest: "",
  };
  const text = JSON.stringify({ ...all, digest: digestOf(all, blocks) });
  const tensors: Record<string, Tensor> = { blocks: tensorOf(blocks, "uint8") };
  for (const [at, storage] of state.entries()) tensors[`state.${at}`] = tensorOf(storage.hostBytes(), "uint8");
  for (const [at, bytes] of constants.entries()) tensors[`constant.${at}`] = tensorOf(bytes, "uint8");
  await saveSafetensors(path, tensors, { metadata: { [METADATA_NAME]: text } });
}

const plainLayout = ({ dtype, shape, strides, offset, start }: Layout, isInput = true): SavedLayout => ({
  dtype,
  shape: [...shape],
  strides: [...strides],
  offset: isInput ? start : offset,
});

function savedLeaf(leaf: ResultLeaf, { results, state }: Pick<SavedParts, "results" | "state">): SavedLeaf {
  const layout = plainLayout(leaf.layout, false);
  if (leaf.from === "entry") return { layout, from: "result", index: results.indexOf(leaf.entry) };
  if (leaf.from === "input") return { layout, from: "input", index: leaf.index, isSame: leaf.isSame };
  if (leaf.from === "gradient") throw unsaved("it returns a gradient");
  const index = state.indexOf(leaf.from === "state" ? leaf.storage : leaf.tensor.storage);
  if (index < 0) throw unsaved("it returns a tensor of the surrounding code that it does not use");
  return { layout, from: "state", index };
}

/** Returns a copy of a tree with converted leaves, and with its values as text. */
function mapped<From, To>(tree: Tree<From>, leafOf: (leaf: From) => To): Tree<To> {
  if (tree.kind === "leaf") return { kind: "leaf", leaf: leafOf(tree.leaf) };
  if (tree.kind === "array") return { kind: "array", items: tree.items.map((item) => mapped(item, leafOf)) };
  if (tree.kind === "object")
    return { kind: "object", keys: tree.keys, items: tree.items.map((item) => mapped(item, leafOf)) };
  const value = textOf(tree.value);
  if (value === undefined)
    throw unsaved("an argument or a result is neither a tensor, a number, a string nor a boolean");
  return { kind: "value", value };
}

/** Copies an array to a tensor, since the caller may run the function before the file is written. */
function tensorOf(
  { buffer, byteOffset, byteLength, length }: Uint8Array | Int32Array | Float64Array,
  dtype: "uint8" | "int32" | "float64",
): Tensor {
  const memory = allocateHost(byteLength);
  memory.hostBytes().set(new Uint8Array(buffer, byteOffset, byteLength));
  return new Tensor(new Storage(memory), dtype, [length]);
}
