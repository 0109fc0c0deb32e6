import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeValue } from "../../core/describe.ts";
import { CheckpointError, FileFormatError, OrchardError } from "../../core/errors.ts";
import { aPath } from "../../core/kinds.ts";
import { operand, parameters } from "../../core/parameters.ts";
import { warnOnce } from "../../core/warn.ts";
import type { GeneratorState } from "../../random/generator.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { isJsonObject, type Json, parseJson } from "../json.ts";
import { SafetensorsFile } from "../safetensors/file.ts";
import { checkHash, FORMAT, stepOf, VERSION } from "./format.ts";
import { MAX_STATE_DEPTH, type StateTree, unflattenTree } from "./tree.ts";

/**
 * The types of a checkpoint's contents besides weights. They are not checked on loading; `loadStateDict` checks them.
 */
export interface CheckpointTypes {
  readonly optimizer?: unknown;
  readonly data?: unknown;
  readonly extra?: unknown;
}

/** The default of {@link CheckpointTypes}. */
interface AnyTypes {
  readonly optimizer: StateTree;
  readonly data: StateTree;
  readonly extra: StateTree;
}

/** A checkpoint that cannot be used, and the reason. */
export interface RejectedCheckpoint {
  readonly path: string;
  readonly error: OrchardError;
}

/** A checkpoint as it was saved. Parts that were not saved are null. */
export interface Checkpoint<
  Types extends CheckpointTypes = { optimizer: StateTree; data: StateTree; extra: StateTree },
> {
  readonly path: string;
  readonly step: number;
  /** For `model.loadStateDict`. The tensors are memory-mapped from the file. */
  readonly model: Record<string, Tensor>;
  readonly optimizer: Types["optimizer"] | null;
  /** For `generator.setState`. */
  readonly generator: GeneratorState | null;
  readonly data: Types["data"] | null;
  readonly extra: Types["extra"] | null;
  /** Newer checkpoints that cannot be used, with the reasons. */
  readonly rejected: readonly RejectedCheckpoint[];
}

const operation = "loadCheckpoint";
const loadParameters = parameters(operation, { path: operand(aPath) });

/**
 * Loads a checkpoint; from a folder, the valid one with the highest step. Each file is verified against its hash.
 * Invalid checkpoints in a folder are skipped with a warning on standard error, and are listed in `rejected`. A path of
 * a file must be valid.
 *
 * @param path a folder of checkpoints, or a checkpoint file
 *
 * @example
 * const checkpoint = await loadCheckpoint("runs/a");
 * model.loadStateDict(checkpoint.model);
 * if (checkpoint.generator) generator.setState(checkpoint.generator);
 *
 * @throws {FileError} for a path that does not exist. @throws {FileFormatError} for a file that is not a checkpoint or
 * is damaged. @throws {CheckpointError} `notFound` if the folder has no checkpoint, `noneValid` with all reasons if
 * none is valid.
 */
export async function loadCheckpoint<Types extends CheckpointTypes = AnyTypes>(
  path: string,
): Promise<Checkpoint<Types>> {
  loadParameters([path]);
  if (!withFileErrors(operation, path, () => statSync(path)).isDirectory()) return read<Types>(path, []);
  const rejected: RejectedCheckpoint[] = [];
  for (const file of checkpointsIn(path)) {
    try {
      return await read<Types>(file, rejected);
    } catch (error) {
      if (!(error instanceof OrchardError)) throw error;
      rejected.push({ path: file, error });
      warnOnce(`skipped an invalid checkpoint: ${error.message}`);
    }
  }
  throw noValidCheckpoint(path, rejected);
}

/** The paths of the checkpoints in a folder, the highest step first. */
function checkpointsIn(folder: string): string[] {
  return withFileErrors(operation, folder, () => readdirSync(folder))
    .map((name) => ({ name, step: stepOf(name) ?? -1 }))
    .filter(({ step }) => step >= 0)
    .sort((a, b) => b.step - a.step)
    .map(({ name }) => join(folder, name));
}

function noValidCheckpoint(folder: string, rejected: readonly RejectedCheckpoint[]): CheckpointError {
  if (rejected.length === 0)
    return new CheckpointError(operation, "notFound", `${folder} has no checkpoint (checkpoint-<step>.safetensors)`);
  const reasons = rejected.map(({ error }) => `\n  ${error.message}`).join("");
  return new CheckpointError(operation, "noneValid", `no checkpoint in ${folder} is valid:${reasons}`);
}

async function read<Types extends CheckpointTypes>(
  path: string,
  rejected: readonly RejectedCheckpoint[],
): Promise<Checkpoint<Types>> {
  using file = new SafetensorsFile(path, operation);
  checkFormat(file);
  await checkHash(operation, file);
  const state = readState(file);
  const { step, model, optimizer = null, generator = null, data = null, extra = null } = state;
  return { path, step, model, optimizer, generator, data, extra, rejected };
}

/**
 * Reads the state. @throws {FileFormatError} if its contents are invalid despite a valid hash, as from another program.
 */
function readState(file: SafetensorsFile): CheckpointState {
  const fail = (problem: string) => new FileFormatError(operation, "notACheckpoint", file.path, problem);
  const invalid = (digits: string) => fail(`expected the digits of a bigint in its training state, got "${digits}"`);
  const state = unflattenTree(parseState(file), (name) => file.tensor(name), invalid) as CheckpointState;
  if (!Number.isSafeInteger(state.step) || state.step < 0)
    throw fail(`expected its step to be a whole number of at least 0, got ${describeValue(state.step)}`);
  return state;
}

/** The state of a checkpoint; the caller chooses the types of its trees. */
type CheckpointState = Pick<Checkpoint, "step" | "model"> &
  Partial<Pick<Checkpoint, "optimizer" | "generator" | "data" | "extra">>;

function checkFormat({ path, metadata }: SafetensorsFile): void {
  const { format, version } = metadata;
  if (format !== FORMAT)
    throw new FileFormatError(
      operation,
      "notACheckpoint",
      path,
      "expected a checkpoint, got another safetensors file; read it with openSafetensors",
    );
  if (version !== VERSION)
    throw new FileFormatError(
      operation,
      "otherVersion",
      path,
      `expected version ${VERSION} of the layout, got ${version}`,
    );
}

function parseState({ path, metadata }: SafetensorsFile): Json {
  const fail = (message: string) => new FileFormatError(operation, "notACheckpoint", path, message);
  const invalid = (_: unknown, message: string) => fail(`its training state is not valid JSON: ${message}`);
  const json = parseJson(metadata["state"] ?? "null", invalid, MAX_STATE_DEPTH);
  if (isJsonObject(json) && "step" in json && "model" in json) return json;
  throw fail("its metadata has no training state");
}
