import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError } from "../../core/errors.ts";
import { aNumber, anObject, aPath } from "../../core/kinds.ts";
import { checkNames } from "../../core/options.ts";
import { type Kind, named, operand, parameters, reading } from "../../core/parameters.ts";
import { Generator, type GeneratorState } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { remove, syncFolder, writeAtomically } from "../atomic.ts";
import { withFileErrors } from "../file_errors.ts";
import { type Layout, layOut, writeTensors } from "../safetensors/save.ts";
import { checkpointName, FORMAT, hashPosition, NO_HASH, stepOf, VERSION } from "./format.ts";
import { flattenTree } from "./tree.ts";

/** An object with a state, such as a module or an optimizer. */
export interface Stateful {
  stateDict(): object;
}

/**
 * The content of a checkpoint, for {@link saveCheckpoint}. A tree consists of numbers, strings, booleans, bigints,
 * null, tensors, arrays and plain objects.
 */
export interface CheckpointContent {
  /** A module, or weights by name. */
  readonly model: Stateful | Readonly<Record<string, Tensor>>;
  /** An optimizer, or a tree. */
  readonly optimizer?: Stateful | object | undefined;
  /** The number of steps taken. */
  readonly step: number;
  /** A random number generator, or its state. */
  readonly generator?: Generator | GeneratorState | undefined;
  /** A tree: the position in the data, such as `train.getState()`. */
  readonly data?: unknown;
  /** A tree: anything else, such as the settings of the run. */
  readonly extra?: unknown;
}

/** Options of {@link saveCheckpoint}. */
export interface SaveCheckpointOptions {
  /**
   * The number of checkpoints to keep in the folder, including the new one: those with the highest steps. Default 3.
   */
  readonly keep?: number;
}

/**
 * Saves the state of a training run as one file, `checkpoint-<step>.safetensors`, in a folder, which is created if
 * needed. The write is atomic: a process killed at any moment, or a full disk, leaves the earlier checkpoints
 * unchanged. Older checkpoints are removed afterwards. Do not take a step before the promise settles.
 *
 * @returns the file's path
 *
 * @example
 * await saveCheckpoint("runs/a", { model, optimizer, step, generator, data: train.getState(), extra: { config } });
 *
 * @throws {FileError} `diskFull`, `notPermitted` …: nothing was changed. @throws {ArgumentError} for a step that is not
 * a whole number, or a value that can't be saved, with its path.
 */
export async function saveCheckpoint(
  folder: string,
  content: CheckpointContent,
  options?: SaveCheckpointOptions,
): Promise<string>;
export async function saveCheckpoint(...values: unknown[]): Promise<string> {
  const operation = "saveCheckpoint";
  const { folder, content, keep } = saveParameters(values);
  const layout = reading(operation, () => {
    checkContent(operation, content);
    return checkpointLayout(operation, content);
  });
  withFileErrors(operation, folder, () => mkdirSync(folder, { recursive: true }));
  const path = join(folder, checkpointName(content.step));
  await writeHashed(operation, path, layout);
  withFileErrors(operation, folder, () => removeOld(folder, content.step, keep));
  return path;
}

const wholeFrom = (least: number): Kind<number> => ({
  ...aNumber({
    holds: (value) => Number.isSafeInteger(value) && value >= least,
    expected: `a whole number of at least ${least}`,
  }),
  error: [ArgumentError, "invalidCount"],
});

const saveParameters = parameters("saveCheckpoint", {
  folder: operand(aPath),
  content: operand(anObject<CheckpointContent>("an object with a model and a step")),
  keep: named(wholeFrom(1), 3),
});

const parts: Readonly<Record<keyof CheckpointContent, true>> = {
  model: true,
  optimizer: true,
  step: true,
  generator: true,
  data: true,
  extra: true,
};

function checkContent(operation: string, content: CheckpointContent): void {
  checkNames(operation, content, parts);
  const { step, model } = content;
  const steps = wholeFrom(0);
  if (steps.parse(step, operation, "step") === undefined)
    throw new ArgumentError(
      operation,
      "invalidCount",
      `expected step to be ${steps.expected}, got ${describeValue(step)}`,
    );
  if (typeof model !== "object" || model === null)
    throw new ArgumentError(
      operation,
      "invalidOption",
      `expected model to be a module or an object of tensors by name, got ${describeValue(model)}`,
    );
}

function checkpointLayout(operation: string, { model, optimizer, generator, ...trees }: CheckpointContent): Layout {
  const parts = {
    model: stateOf(model),
    optimizer: stateOf(optimizer),
    generator: generator instanceof Generator ? generator.getState() : generator,
    ...trees,
  };
  const flat = Object.entries(parts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, flattenTree(operation, name, value)] as const);
  const state = JSON.stringify(Object.fromEntries(flat.map(([name, { json }]) => [name, json])));
  const tensors: Record<string, Tensor> = Object.assign({}, ...flat.map(([, each]) => each.tensors));
  return layOut(operation, tensors, { sha256: NO_HASH, format: FORMAT, version: VERSION, state });
}

const stateOf = (value: unknown): unknown => {
  const stateful = value as Partial<Stateful> | null | undefined;
  return typeof stateful?.stateDict === "function" ? stateful.stateDict() : value;
};

/** Writes the placeholder first, and replaces it with the hash at the end. */
async function writeHashed(operation: string, path: string, layout: Layout): Promise<void> {
  await writeAtomically(operation, path, async (file) => {
    const hasher = new Bun.CryptoHasher("sha256");
    file.observe((bytes) => hasher.update(bytes));
    file.write(layout.header);
    await writeTensors(file, layout);
    file.patch(Buffer.from(hasher.digest("hex")), hashPosition(layout.header, NO_HASH));
  });
}

/** Removes old checkpoints, but never the one just written, because those with higher steps may be damaged. */
function removeOld(folder: string, newest: number, keep: number): void {
  const others = readdirSync(folder)
    .map((name) => ({ name, step: stepOf(name) }))
    .filter((each): each is { name: string; step: number } => each.step !== undefined && each.step !== newest)
    .sort((a, b) => b.step - a.step);
  const old = others.slice(keep - 1);
  for (const { name } of old) remove(join(folder, name));
  if (old.length > 0) syncFolder(folder);
}
