import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError, FileFormatError, OrchardError } from "../../core/errors.ts";
import { warnOnce } from "../../core/warn.ts";
import type { GeneratorState } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { isJsonObject, type Json } from "../json.ts";
import { SafetensorsFile } from "../safetensors/file.ts";
import { checkHash, FORMAT, stepOf, VERSION } from "./format.ts";
import { type StateTree, unflattenTree } from "./tree.ts";

/** The types of what a checkpoint holds besides weights, as its writer knows them. Nothing checks them here; `loadStateDict` does. */
export interface CheckpointTypes {
  readonly optimizer?: unknown;
  readonly data?: unknown;
  readonly extra?: unknown;
}

/** Where nobody says more. */
interface AnyTypes {
  readonly optimizer: StateTree;
  readonly data: StateTree;
  readonly extra: StateTree;
}

/** A file that is no checkpoint that can be used, and what is wrong with it. */
export interface RejectedCheckpoint {
  readonly path: string;
  readonly error: OrchardError;
}

/** A checkpoint, as it was saved. What was left out there is null here. */
export interface Checkpoint<
  Types extends CheckpointTypes = { optimizer: StateTree; data: StateTree; extra: StateTree },
> {
  readonly path: string;
  readonly step: number;
  /** For `model.loadStateDict`. The memory is the file's, mapped. */
  readonly model: Record<string, Tensor>;
  readonly optimizer: Types["optimizer"] | null;
  /** For `generator.setState`. */
  readonly generator: GeneratorState | null;
  readonly data: Types["data"] | null;
  readonly extra: Types["extra"] | null;
  /** Newer ones that can't be used, with the reasons. */
  readonly rejected: readonly RejectedCheckpoint[];
}

const operation = "loadCheckpoint";

/**
 * Loads a checkpoint: of a folder, the one of the highest step that is as it was written. Each file is checked to its last bit. What is wrong with
 * one that is passed over is told on standard error, and in `rejected`. A file that is named itself must be good.
 *
 * @param path a folder of {@link saveCheckpoint}, or one of its files
 *
 * @example
 * const checkpoint = await loadCheckpoint("runs/a");
 * model.loadStateDict(checkpoint.model);
 * if (checkpoint.generator) generator.setState(checkpoint.generator);
 *
 * @throws {FileError} where the path is not there. @throws {FileFormatError} for a file that is none, or was altered.
 * @throws {CheckpointError} `notFound` where the folder has none, `noneGood` with the reason for each where none can be used.
 */
export async function loadCheckpoint<Types extends CheckpointTypes = AnyTypes>(
  path: string,
): Promise<Checkpoint<Types>> {
  if (!withFileErrors(operation, path, () => statSync(path)).isDirectory()) return read<Types>(path, []);
  const rejected: RejectedCheckpoint[] = [];
  for (const file of checkpointsIn(path)) {
    try {
      return await read<Types>(file, rejected);
    } catch (error) {
      if (!(error instanceof OrchardError)) throw error;
      rejected.push({ path: file, error });
      warnOnce(`a checkpoint is passed over: ${error.message}`);
    }
  }
  throw noneGood(path, rejected);
}

/** Paths, the highest step first. */
function checkpointsIn(folder: string): string[] {
  return withFileErrors(operation, folder, () => readdirSync(folder))
    .map((name) => ({ name, step: stepOf(name) ?? -1 }))
    .filter(({ step }) => step >= 0)
    .sort((a, b) => b.step - a.step)
    .map(({ name }) => join(folder, name));
}

function noneGood(folder: string, rejected: readonly RejectedCheckpoint[]): CheckpointError {
  if (rejected.length === 0)
    return new CheckpointError(operation, "notFound", `${folder} holds no checkpoint (checkpoint-<step>.safetensors)`);
  const reasons = rejected.map(({ error }) => `\n  ${error.message}`).join("");
  return new CheckpointError(operation, "noneGood", `no checkpoint in ${folder} can be used:${reasons}`);
}

async function read<Types extends CheckpointTypes>(
  path: string,
  rejected: readonly RejectedCheckpoint[],
): Promise<Checkpoint<Types>> {
  using file = new SafetensorsFile(path, operation);
  checkFormat(file);
  await checkHash(operation, file);
  const state = unflattenTree(parseState(file), (name) => file.tensor(name)) as unknown as CheckpointState;
  const { step, model, optimizer = null, generator = null, data = null, extra = null } = state;
  return { path, step, model, optimizer, generator, data, extra, rejected };
}

/** As it was written: the hash says so. */
type CheckpointState = Pick<Checkpoint, "step" | "model"> &
  Partial<Pick<Checkpoint, "optimizer" | "generator" | "data" | "extra">>;

function checkFormat({ path, metadata }: SafetensorsFile): void {
  const { format, version } = metadata;
  if (format !== FORMAT)
    throw new FileFormatError(
      operation,
      "notACheckpoint",
      path,
      "it is a safetensors file, and no checkpoint; openSafetensors reads it",
    );
  if (version !== VERSION)
    throw new FileFormatError(
      operation,
      "otherVersion",
      path,
      `it has version ${version} of the layout, this program reads ${VERSION}`,
    );
}

function parseState({ path, metadata }: SafetensorsFile): Json {
  const json = JSON.parse(metadata["state"] ?? "null") as Json;
  if (isJsonObject(json) && "step" in json && "model" in json) return json;
  throw new FileFormatError(operation, "notACheckpoint", path, "it lacks the state of a run");
}
