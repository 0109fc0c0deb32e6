/** Loads programs from files, and runs them. */
import { ptr } from "bun:ffi";
import { cpuLibrary } from "../../backend/cpu/loader.ts";
import { errorOf } from "../../backend/cpu/status.ts";
import { nativeTables } from "../../backend/cpu/tables.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import { ArgumentError, BackendError, FileFormatError } from "../../core/errors.ts";
import { aPath } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { parseJson } from "../../io/json.ts";
import { openFor } from "../../io/safetensors/open.ts";
import { defaultGenerator } from "../../random/generator.ts";
import { callKey } from "../../random/philox.ts";
import { bytesOf } from "../../tensor/dtype.ts";
import { allocateHost, LARGE, type Memory } from "../../tensor/memory.ts";
import { reachOf } from "../../tensor/reach.ts";
import { Storage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { CompileError } from "../errors.ts";
import { viewOfInput } from "../replay.ts";
import { type Layout, leavesOf, mismatch, type Tree, valueIn } from "../tree.ts";
import {
  checkInstructions,
  checkJson,
  checkLayout,
  checkLeaf,
  checkTree,
  type Fail,
  inputBytes,
  isWhole,
  slotBytes,
} from "./check.ts";
import { digestOf, kernelFingerprint, type SavedDevice } from "./device.ts";
import {
  layoutFrom,
  libraryFingerprint,
  METADATA_NAME,
  type SavedJson,
  type SavedLeaf,
  VERSION,
  withValues,
} from "./format.ts";
import { LoadedDevice } from "./load_device.ts";

/** A function from {@link loadProgram}. */
export interface LoadedProgram {
  (...values: unknown[]): unknown;
  /** Frees the program's memory. Later calls throw an error. */
  dispose(): void;
}

const loadParameters = parameters("loadProgram", { path: operand(aPath) });

/**
 * Loads a function that `save(path)` of a compiled function has written. It has the arguments and results of the saved
 * call, with its layouts and values, and needs neither the code nor the model. State starts with the saved contents,
 * and calls change it. Random numbers come from the default generator.
 *
 * @example
 * const step = compile((x: Tensor) => model.forward(x), { state: model });
 * for (let call = 0; call < 3; call++) step(x);
 * await step.save("model.program");
 * const loaded = loadProgram("model.program");
 * loaded(x); // the bits of step(x)
 *
 * @throws {FileError} @throws {FileFormatError} for a damaged file @throws {CompileError} `version` or `otherLibrary`
 * if another version of the format or of the cpu backend wrote it. Calls throw an {@link ArgumentError} for arguments
 * of another layout
 */
export function loadProgram(path: string): LoadedProgram;
export function loadProgram(...values: unknown[]): LoadedProgram {
  const { path } = loadParameters(values);
  const program = load(path);
  return Object.assign((...given: unknown[]) => program.call(given), { dispose: () => program.dispose() });
}

function load(path: string): LoadedCalls | LoadedDevice {
  const fail: Fail = (message) => {
    throw new FileFormatError("loadProgram", "damaged", path, message);
  };
  using file = openFor("loadProgram", path);
  const text = file.metadata[METADATA_NAME];
  if (text === undefined) throw new FileFormatError("loadProgram", "notAProgram", path, "it has no program");
  const json = parseJson(text, (_, message) => new FileFormatError("loadProgram", "damaged", path, message));
  const { version, backend } = (json ?? {}) as Partial<SavedJson>;
  if (version !== VERSION)
    throw new CompileError(
      "loadProgram",
      "version",
      `expected a program of version ${VERSION}, got ${version}; save it again`,
    );
  if ((backend as string) !== "cpu" && (backend as string) !== "metal") fail("it names no backend");
  const why = whyUnavailable(backend!);
  if (why !== undefined)
    throw new BackendError("loadProgram", "unavailable", `the program requires the ${backend} backend: ${why}`);
  const bytesAt = (name: string): Uint8Array => (file.has(name) ? copied(file.bytes(name)) : fail(`it has no ${name}`));
  const all = (name: string, count: unknown): Uint8Array[] => {
    if (!isWhole(count, file.names.length + 1)) return fail(`it has no ${name}.${file.names.length}`);
    return Array.from({ length: count }, (_, at) => bytesAt(`${name}.${at}`));
  };
  return backend === "cpu" ? new LoadedCalls(json, { bytesAt, all }, fail) : loadDevice(json, { bytesAt, all }, fail);
}

/** Reads tensors of a file as bytes. */
interface Bytes {
  readonly bytesAt: (name: string) => Uint8Array;
  /** Reads the tensors `name.0`, `name.1`, … */
  readonly all: (name: string, count: unknown) => Uint8Array[];
}

function loadDevice(json: unknown, { bytesAt, all }: Bytes, fail: Fail): LoadedDevice {
  const device = json as SavedDevice;
  const blocks = bytesAt("blocks");
  if (digestOf(device, blocks) !== device.digest) fail("its digest differs");
  if (kernelFingerprint(device.calls) !== device.library) throw otherLibrary("metal backend, whose kernels differ");
  return new LoadedDevice(
    device,
    { blocks, state: all("state", device.state), constants: all("constant", device.constants) },
    fail,
  );
}

class LoadedCalls {
  private readonly json: SavedJson;
  private readonly inputs: Tree<Layout>;
  private readonly result: Tree<SavedLeaf>;
  readonly words: Int32Array;
  readonly blocks: Float64Array;
  private readonly instructions: number;
  private readonly addresses: Float64Array;
  private readonly state: readonly Storage[];
  private readonly contents: readonly (Uint8Array | null)[];
  private readonly constants: {
    readonly bytes: Uint8Array;
    readonly contents: Uint8Array;
    readonly changes: boolean;
  }[] = [];
  private readonly slots: Readonly<
    Record<"input" | "result", readonly { readonly slot: number; readonly index: number }[]>
  >;
  private arena: Memory | null;
  private isDisposed = false;

  constructor(json: unknown, { bytesAt, all }: Bytes, fail: Fail) {
    if ((json as SavedJson).library !== libraryFingerprint()) throw otherLibrary("cpu backend, whose functions differ");
    const [words, blocks] = [bytesAt("words"), bytesAt("blocks")];
    if (words.length % 4 !== 0 || blocks.length % 8 !== 0) fail("its instructions are cut off");
    this.words = new Int32Array(words.buffer, 0, words.length / 4);
    this.blocks = new Float64Array(blocks.buffer, 0, blocks.length / 8);
    this.json = checkJson(json, this.blocks.length, fail);
    const inputs = checkTree(this.json.inputs, (leaf) => checkLayout(leaf, fail), fail);
    this.inputs = withValues(inputs, layoutFrom);
    const layouts = leavesOf(inputs);
    const [state, constants] = [all("state", this.json.state), all("constant", this.json.constants)];
    const lengths = (list: readonly Uint8Array[]) => list.map(({ length }) => length);
    const sizes = { inputs: layouts.map(inputBytes), state: lengths(state), constants: lengths(constants) };
    const leafOf = (leaf: unknown) => checkLeaf(leaf, layouts, this.json, sizes, fail);
    this.result = withValues(checkTree(this.json.result, leafOf, fail), (leaf) => leaf);
    const bytes = slotBytes(this.json, sizes, fail);
    const functions = Object.values(nativeTables().functions).sort((a, b) => a.ordinal - b.ordinal);
    const given = { words: this.words, blocks: this.blocks, bytes, functions };
    this.instructions = checkInstructions(given, this.json.draws, fail);
    this.contents = this.json.results.map(({ hasContents, bytes: count }, at) => {
      const contents = hasContents ? bytesAt(`result.${at}`) : null;
      return contents && contents.length > count ? fail("a result is larger than its memory") : contents;
    });
    this.state = state.map((given) => storageOf(given));
    this.addresses = new Float64Array(Math.max(bytes.length, 1));
    this.arena = this.json.arenaBytes > 0 ? allocateHost(Math.max(this.json.arenaBytes, LARGE)) : null;
    this.slots = this.bindFixed(constants);
  }

  /** Sets the addresses of memory that stays the same in each run. Returns the slots of inputs and results. */
  private bindFixed(constants: readonly Uint8Array[]) {
    const slots = { input: [] as { slot: number; index: number }[], result: [] as { slot: number; index: number }[] };
    const base = this.arena ? ptr(this.arena.hostBytes()) : 0;
    for (const [slot, each] of this.json.slots.entries()) {
      if (each.kind === "input" || each.kind === "result") slots[each.kind].push({ slot, index: each.index });
      else if (each.kind === "arena") this.addresses[slot] = base + each.offset;
      else if (each.kind === "state") this.addresses[slot] = ptr(this.state[each.index].memory.hostBytes());
      else if (each.kind === "constant") {
        const contents = constants[each.index];
        const bytes = new Uint8Array(new ArrayBuffer(Math.max(contents.length, 8)));
        bytes.set(contents);
        this.constants.push({ bytes, contents, changes: each.changes });
        this.addresses[slot] = ptr(bytes);
      }
    }
    return slots;
  }

  call(values: readonly unknown[]): unknown {
    if (this.isDisposed) throw new CompileError("loadProgram", "disposed", "the program was disposed of");
    const found: Tensor[] = [];
    const why = mismatch(this.inputs, values, found);
    if (why !== undefined) throw new ArgumentError("loadProgram", "otherArguments", why);
    for (const tensor of found) tensor.checkAlive("loadProgram");
    const { addresses, words, blocks, json } = this;
    for (const { bytes, contents, changes } of this.constants) if (changes) bytes.set(contents);
    for (const { slot, index } of this.slots.input) {
      const { first, count } = reachOf(found[index]);
      const { storage, dtype } = found[index];
      addresses[slot] = count === 0 ? 0 : ptr(storage.hostBytes()) + first * bytesOf(dtype);
    }
    const results = this.makeResults();
    this.draw();
    const stopped = new Float64Array(1);
    const { native } = cpuLibrary();
    const status = native.orchard_cpu_run_program(
      ...([words, words.length, blocks, blocks.length, addresses, json.slots.length, stopped] as const),
    );
    if (status !== 0) throw errorOf(native, status, "loadProgram");
    if (stopped[0] < this.instructions)
      throw new CompileError("loadProgram", "diverged", "the outcome of a check of values differs from the recording");
    defaultGenerator.setState(this.stateAfter());
    return valueIn(this.result, (leaf) => this.resultOf(leaf, found, results));
  }

  private makeResults(): Storage[] {
    return this.json.results.map(({ bytes }, index) => {
      const memory = allocateHost(bytes);
      const held = memory.hostBytes();
      const contents = this.contents[index];
      if (contents) held.set(contents);
      for (const { slot, index: of } of this.slots.result) if (of === index) this.addresses[slot] = ptr(held);
      return new Storage(memory);
    });
  }

  private draw(): void {
    const { seed, offset } = defaultGenerator.getState();
    for (const { ahead, places } of this.json.draws) {
      const key = callKey(seed, BigInt.asUintN(64, offset + BigInt(ahead)));
      for (const place of places) this.blocks.set(key, place);
    }
  }

  private stateAfter() {
    const { seed, offset } = defaultGenerator.getState();
    return { seed, offset: BigInt.asUintN(64, offset + BigInt(this.json.advance)) };
  }

  private resultOf(leaf: SavedLeaf, found: readonly Tensor[], results: readonly Storage[]): Tensor {
    const { dtype, shape, strides, offset } = leaf.layout;
    if (leaf.from === "input" && leaf.isSame) return found[leaf.index];
    if (leaf.from === "input") return viewOfInput(found[leaf.index], layoutFrom(leaf.layout));
    const storage = leaf.from === "result" ? results[leaf.index] : this.state[leaf.index];
    return new Tensor(storage, dtype, shape, strides, offset);
  }

  dispose(): void {
    this.isDisposed = true;
    this.arena?.release();
    this.arena = null;
  }
}

const otherLibrary = (what: string): CompileError =>
  new CompileError(
    "loadProgram",
    "otherLibrary",
    `the program was saved with another version of the ${what}; save it again`,
  );

/** Copies the bytes of a tensor of a file. */
function copied(tensor: Tensor): Uint8Array {
  using given = tensor;
  const bytes = new Uint8Array(new ArrayBuffer(Math.max(given.size, 8)), 0, given.size);
  bytes.set(given.storage.hostBytes().subarray(given.offset, given.offset + given.size));
  return bytes;
}

function storageOf(contents: Uint8Array): Storage {
  const memory = allocateHost(contents.length);
  memory.hostBuffer(); // a small array moves when its buffer is first needed
  memory.hostBytes().set(contents);
  const storage = new Storage(memory);
  storage.retain();
  return storage;
}
