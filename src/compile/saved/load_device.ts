/** Loads programs on metal, and replays them. */
import { metalContext } from "../../backend/metal/context.ts";
import { pipelineFor } from "../../backend/metal/launch.ts";
import { layouts } from "../../backend/metal/layouts.ts";
import { MetalMemory } from "../../backend/metal/memory.ts";
import { ArgumentError, BackendError, ShapeError } from "../../core/errors.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { Storage } from "../../tensor/storage.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { CompileError } from "../errors.ts";
import { gridOf } from "../metal/dispatches.ts";
import { bindingsIn, type DeviceCall, type DeviceFacts, inlineOf, type PositionCheck } from "../metal/recording.ts";
import { MetalReplay, metalSeam } from "../metal/replay.ts";
import type { Entry } from "../recording.ts";
import { type ResultLeaf, RUN_PLAINLY } from "../replay.ts";
import { type Layout, leavesOf, mismatch, type Tree } from "../tree.ts";
import { checkLayout, checkLeaf, checkTree, type Fail, inputBytes, isRecord, isWhole } from "./check.ts";
import { type SavedCall, type SavedDevice, withPipeline } from "./device.ts";
import { layoutFrom, type SavedLeaf, withValues } from "./format.ts";

/** The tensors of a file, as bytes. */
export interface DeviceBytes {
  readonly blocks: Uint8Array;
  readonly state: readonly Uint8Array[];
  readonly constants: readonly Uint8Array[];
}

export class LoadedDevice {
  private readonly inputs: Tree<Layout>;
  private readonly layouts: readonly Layout[];
  private readonly replay: MetalReplay;
  private readonly state: readonly Storage[];
  private isDisposed = false;

  constructor(json: SavedDevice, bytes: DeviceBytes, fail: Fail) {
    checkNumbers(json, bytes, fail);
    const inputs = checkTree(json.inputs, (leaf) => checkLayout(leaf, fail), fail);
    const saved = leavesOf(inputs);
    let next = 0;
    this.inputs = withValues(inputs, (leaf) => {
      const layout = layoutFrom(leaf);
      return { ...layout, start: layout.offset, offset: layout.offset + (json.firsts[next++] ?? 0) };
    });
    this.layouts = leavesOf(this.inputs);
    this.state = bytes.state.map(storageOf);
    const entries = json.entries.map((entry, id) => this.entryOf(entry, id, bytes));
    const sizes = { inputs: saved.map(inputBytes), state: bytes.state.map(({ length }) => length), constants: [] };
    const leafOf = (leaf: unknown) => checkLeaf(leaf, saved, { results: json.entries }, sizes, fail);
    const result = withValues(checkTree(json.result, leafOf, fail), (leaf) => this.leafOf(leaf, entries));
    const recording = this.recordingOf(json, entries, bytes.blocks, fail);
    const { isFused, isFast } = json;
    this.replay = new MetalReplay({ recording, result, gradients: [] }, { parameters: [], isFused, isFast });
  }

  private entryOf({ index, ...entry }: SavedDevice["entries"][number], id: number, bytes: DeviceBytes): Entry {
    const isState = entry.source === "external";
    const storage = isState ? this.state[index] : null;
    const contents = entry.source === "host" ? bytes.constants[index] : null;
    const size = isState ? storage!.memory.byteLength : entry.bytes;
    return { ...entry, id, index, storage, contents, bytes: size, version: 0, after: null };
  }

  private leafOf(leaf: SavedLeaf, entries: readonly Entry[]): ResultLeaf {
    const layout = layoutFrom(leaf.layout);
    if (leaf.from === "result") return { layout, from: "entry", entry: entries[leaf.index] };
    if (leaf.from === "input") return { layout, from: "input", index: leaf.index, isSame: leaf.isSame };
    return { layout, from: "state", storage: this.state[leaf.index] };
  }

  private recordingOf(json: SavedDevice, entries: readonly Entry[], blocks: Uint8Array, fail: Fail): DeviceFacts {
    let at = 0;
    const calls = json.calls.map((call) => {
      const block = blocks.slice(at, at + call.bytes);
      at += call.bytes;
      return callOf(call, block, entries, fail);
    });
    return {
      calls,
      entries: [...entries],
      changes: json.changes.map(({ state, versions, after }) => {
        return { storage: this.state[state], gradient: undefined, versions, after: entries[after ?? -1] };
      }),
      checks: json.checks.map(({ entry, operation, expected }): PositionCheck => {
        return { entry: entries[entry], errorAt: (position) => rangeError(operation, expected, position) };
      }),
      draws: json.draws.map(({ ahead, places }) => {
        return { generator: defaultGenerator, ahead: BigInt(ahead), places: [...places] };
      }),
      steps: [],
      parameters: [],
      after: [],
      contents: new Map(),
      liveEntries: () => [],
      advances: () => [{ generator: defaultGenerator, count: BigInt(json.advance) }],
    };
  }

  call(values: readonly unknown[]): unknown {
    if (this.isDisposed) throw new CompileError("loadProgram", "disposed", "the program was disposed of");
    const found: Tensor[] = [];
    const other = mismatch(this.inputs, values, found);
    for (const tensor of found) tensor.checkAlive("loadProgram");
    const why = other ?? metalSeam.whyUnfit(found, this.layouts);
    if (why !== undefined) throw new ArgumentError("loadProgram", "otherArguments", why);
    if (!this.replay.bind()) throw new BackendError("loadProgram", "unavailable", "the device was closed");
    const result = this.replay.run(found);
    if (result !== RUN_PLAINLY) return result;
    throw new CompileError("loadProgram", "unrun", `the program can't run: ${this.replay.whyPlain}`);
  }

  dispose(): void {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.replay.dispose();
    for (const storage of this.state) storage.release();
  }
}

/** Returns a recorded dispatch, with the pipeline of its kernel. @throws {BackendError} */
function callOf({ name, kernel, operands, writes }: SavedCall, block: Uint8Array, all: readonly Entry[], fail: Fail) {
  if (block.length < layouts.dispatch.size) fail("a dispatch is cut off");
  const { handle, info } = pipelineFor(metalContext(), kernel);
  const bindings = bindingsIn(block);
  if (bindings.length !== operands.length) fail("a dispatch has another number of operands");
  const call: DeviceCall = {
    name,
    kernel,
    writes,
    bindings,
    place: new Error(),
    block: withPipeline(block, handle),
    operands: operands.map((id) => all[id]),
    inline: inlineOf(block),
  };
  const { threads } = gridOf(call);
  if (threads > info.maxTotalThreads)
    throw new BackendError(
      "loadProgram",
      "limitExceeded",
      `${name} needs ${threads} threads per threadgroup, and this device supports ${info.maxTotalThreads}; save the ` +
        "program on this machine",
    );
  return call;
}

function rangeError(operation: string, expected: string, position: number): Error | undefined {
  if (position === 0xffffffff) return undefined;
  return new ShapeError(operation, "indexOutOfRange", `${expected}, got another value at element ${position}`);
}

function storageOf(contents: Uint8Array): Storage {
  const memory = new MetalMemory(metalContext(), contents.length, { storage: "shared" });
  new Uint8Array(memory.contents()).set(contents);
  memory.moveToHint();
  const storage = new Storage(memory);
  storage.retain();
  return storage;
}

/** Checks every index in the JSON. */
function checkNumbers(json: SavedDevice, { blocks, state, constants }: DeviceBytes, fail: Fail): void {
  const { calls, entries, changes, checks, draws, firsts } = json;
  const isList = (value: unknown) => Array.isArray(value) && value.every(isRecord);
  if (![calls, entries, changes, checks, draws].every(isList)) fail("a list of the program is not a list of objects");
  if (!Array.isArray(firsts) || !firsts.every((first) => isWhole(first))) fail("firsts is not a list of numbers");
  const isEntry = (id: unknown) => isWhole(id, entries.length);
  const counts = { input: leavesOf(json.inputs).length, external: state.length, host: constants.length, computed: 1 };
  for (const { source, index, bytes, first, last } of entries)
    if (!isWhole(index, counts[source] ?? 0) || ![bytes, first, last].every((value) => isWhole(value, 2 ** 48)))
      fail("an entry has no memory");
  let total = 0;
  for (const { bytes, operands, writes, kernel } of calls) {
    if (!isWhole(bytes, 2 ** 32) || !isRecord(kernel)) fail("a dispatch has no block or no kernel");
    total += bytes;
    if (!operands.every(isEntry) || writes.length !== operands.length) fail("a dispatch has no operands");
  }
  if (total !== blocks.length) fail("its dispatches are cut off");
  for (const change of changes)
    if (!isWhole(change.state, state.length) || !(change.after === null || isEntry(change.after)))
      fail("a change has no state");
  for (const { entry } of checks) if (!isEntry(entry)) fail("a check has no entry");
  for (const { places } of draws)
    for (const { call, at } of places)
      if (!isWhole(call, calls.length) || !isWhole(at, calls[call].bytes - 7)) fail("a random number has no place");
}
