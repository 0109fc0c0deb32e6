import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ArgumentError } from "../../core/errors.ts";
import { Generator, type GeneratorState } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { remove, syncFolder, writeAtomically } from "../atomic.ts";
import { withFileErrors } from "../file_errors.ts";
import { type Layout, layOut, writeTensors } from "../safetensors/save.ts";
import { checkpointName, FORMAT, hashPosition, NO_HASH, stepOf, VERSION } from "./format.ts";
import { flattenTree } from "./tree.ts";

/** What has a state, such as a module or an optimizer. */
export interface Stateful {
  stateDict(): object;
}

/** What {@link saveCheckpoint} saves. A tree is of numbers, texts, booleans, bigints, null, tensors, lists and plain objects. */
export interface CheckpointContent {
  /** Weights by name, or the module that has them. */
  readonly model: Stateful | Readonly<Record<string, Tensor>>;
  /** A tree, or the optimizer itself. */
  readonly optimizer?: Stateful | object | undefined;
  /** How many steps were taken. */
  readonly step: number;
  /** Whose numbers go on where they were, or its state. */
  readonly generator?: Generator | GeneratorState | undefined;
  /** A tree: the position in the data, such as `train.getState()`. */
  readonly data?: unknown;
  /** A tree: anything else, such as the settings of the run. */
  readonly extra?: unknown;
}

/** Options of {@link saveCheckpoint}. */
export interface SaveCheckpointOptions {
  /** How many checkpoints stay in the folder, the new one among them: those of the highest steps. Default 3. */
  readonly keep?: number;
}

/**
 * Saves the state of a training run as one file, `checkpoint-<step>.safetensors`, in a folder, which is made where it is missing. The file takes
 * its name once it is whole and on the disk: a process that is killed at any moment, or a full disk, leaves the checkpoints before it as they
 * were. Afterwards older ones are removed. Don't take a step before the promise settles.
 *
 * @returns the file's path
 *
 * @example
 * await saveCheckpoint("runs/a", { model, optimizer, step, generator, data: train.getState(), extra: { config } });
 *
 * @throws {FileError} `diskFull`, `notPermitted` …: nothing was changed. @throws {ArgumentError} for a step that is no whole number, or a value that can't
 * be saved, with its place.
 */
export async function saveCheckpoint(
  folder: string,
  content: CheckpointContent,
  { keep = 3 }: SaveCheckpointOptions = {},
): Promise<string> {
  const operation = "saveCheckpoint";
  checkCount(operation, "step", content.step, 0);
  checkCount(operation, "keep", keep, 1);
  const layout = checkpointLayout(operation, content);
  withFileErrors(operation, folder, () => mkdirSync(folder, { recursive: true }));
  const path = join(folder, checkpointName(content.step));
  await writeHashed(operation, path, layout);
  withFileErrors(operation, folder, () => removeOld(folder, content.step, keep));
  return path;
}

function checkCount(operation: string, name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new ArgumentError(operation, "invalidCount", `${name} is a whole number of at least ${least}, ${value} came`);
}

function checkpointLayout(operation: string, { model, optimizer, generator, ...rest }: CheckpointContent): Layout {
  const parts = {
    model: stateOf(model),
    optimizer: stateOf(optimizer),
    generator: generator instanceof Generator ? generator.getState() : generator,
    ...rest,
  };
  const flat = Object.entries(parts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, flattenTree(operation, name, value)] as const);
  const state = JSON.stringify(Object.fromEntries(flat.map(([name, { json }]) => [name, json])));
  const tensors: Record<string, Tensor> = Object.assign({}, ...flat.map(([, each]) => each.tensors));
  return layOut(operation, tensors, { sha256: NO_HASH, format: FORMAT, version: VERSION, state });
}

const stateOf = (value: object | undefined): object | undefined =>
  value !== undefined && "stateDict" in value && typeof value.stateDict === "function" ? value.stateDict() : value;

/** The hash is known at the end, and then takes the place that the header has for it. */
async function writeHashed(operation: string, path: string, layout: Layout): Promise<void> {
  await writeAtomically(operation, path, async (file) => {
    const hasher = new Bun.CryptoHasher("sha256");
    file.observe((bytes) => hasher.update(bytes));
    file.write(layout.header);
    await writeTensors(file, layout);
    file.patch(Buffer.from(hasher.digest("hex")), hashPosition(layout.header, NO_HASH));
  });
}

/** The one that was just written stays, whatever its step is: later ones may be damaged. */
function removeOld(folder: string, newest: number, keep: number): void {
  const others = readdirSync(folder)
    .map((name) => ({ name, step: stepOf(name) }))
    .filter((each): each is { name: string; step: number } => each.step !== undefined && each.step !== newest)
    .sort((a, b) => b.step - a.step);
  const old = others.slice(keep - 1);
  for (const { name } of old) remove(join(folder, name));
  if (old.length > 0) syncFolder(folder);
}
