/** Chooses whether a call runs fused or unfused, and on which backend. */
import type { BackendName } from "../../backend/names.ts";
import { getBackend, orderFrom } from "../../backend/policy.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import { getOrMake } from "../../core/collections.ts";
import { ArgumentError } from "../../core/errors.ts";
import { accumulationDType, bytesOf, type DType } from "../../tensor/dtype.ts";
import {
  type CrossoverTable,
  crossoverOf,
  dimClasses,
  dimClassOf,
  dtypeClasses,
  dtypeClassOf,
  headClasses,
  headClassOf,
} from "./crossover.ts";
import { tableInUse } from "./crossover_file.ts";
import { memoryLimitOf } from "./memory_limit.ts";
import type { AttentionPath, FlashAttentionOptions } from "./options.ts";

export interface Route {
  readonly kind: "fused" | "unfused";
  /** The backend that the caller named. */
  readonly backend: BackendName | undefined;
  /**
   * A short reason for `codepaths()`. All calls of a class share it: one count for each length would grow without
   * bound.
   */
  readonly reason: string;
}

/** The properties of a call, besides `path`, that determine its route. */
export interface RoutedCall {
  readonly dtype: DType;
  /** [batch, heads, queries, keys] */
  readonly pairs: readonly [number, number, number, number];
  readonly dim: number;
  readonly valueDim: number;
  /** Names of options for which no crossovers were measured: see {@link unmeasuredOptions}. */
  readonly options: readonly string[];
}

/** Everything besides the call that the choice of a path depends on. */
export interface Chooser {
  /** The backend that runs the call first. */
  readonly backend: BackendName;
  readonly table: CrossoverTable;
  /**
   * The most bytes that the backend may allocate in total. Free memory is not used, since it varies between runs and
   * the choice must not.
   */
  readonly memoryLimit: () => number;
}

const AS_ASKED = "as requested";

/** The largest head dimension with a fused kernel. */
export const MAX_DIM = 256;

/** Returns a call's route. @throws {ArgumentError} for a fused path if the head dimension is too large. */
export function routeOf(operation: string, path: AttentionPath, call: RoutedCall): Route {
  if (path === "auto") return chooseRoute(call, currentChooser());
  if (path === "unfused") return { kind: "unfused", backend: undefined, reason: AS_ASKED };
  if (isTooLarge(call))
    throw new ArgumentError(
      operation,
      "dimTooLarge",
      `expected head dimensions of at most ${MAX_DIM} for path "${path}", got ${call.dim} and ${call.valueDim}. ` +
        'Pass { path: "unfused" } for larger ones.',
    );
  return { kind: "fused", backend: path === "fused" ? undefined : path, reason: AS_ASKED };
}

/**
 * Returns the names of given options with which calls stay fused. The fused kernels skip masked tiles, while unfused
 * attention needs further products to exclude masked pairs, which the table does not measure. The other options cost
 * passes over all scores that were not measured.
 */
export const unmeasuredOptions = (options: FlashAttentionOptions): readonly string[] =>
  unmeasured.filter((name) => (mayBeOff.has(name) ? Boolean(options[name]) : options[name] !== undefined));

const unmeasured = [
  ...(["causal", "dropout", "window", "softcap", "mask", "bias", "sinks", "alibi", "cuSeqlens"] as const),
] as const satisfies readonly (keyof FlashAttentionOptions)[];
/** Options that have no effect if they are false or 0. */
const mayBeOff: ReadonlySet<string> = new Set(["causal", "dropout"]);

const isTooLarge = ({ dim, valueDim }: RoutedCall): boolean => Math.max(dim, valueDim) > MAX_DIM;

function currentChooser(): Chooser {
  const preferred = getBackend();
  const backend = orderFrom[preferred].find((name) => whyUnavailable(name) === undefined) ?? preferred;
  return { backend, table: tableInUse(), memoryLimit: () => memoryLimitOf(backend) };
}

/** Returns the route for `path: "auto"`. It depends only on its arguments. */
export function chooseRoute(call: RoutedCall, chooser: Chooser): Route {
  if (isTooLarge(call)) return { kind: "unfused", backend: undefined, reason: `dim or valueDim over ${MAX_DIM}` };
  const crossover = crossoverOf(chooser.table, { ...classOf(call), backend: chooser.backend });
  const reason = whyFused(call, crossover, chooser);
  if (reason !== undefined) return { kind: "fused", backend: undefined, reason };
  const most = `at most ${crossover} scores a head`;
  return { kind: "unfused", backend: undefined, reason: `${most}, the measured crossover for ${named(call)}` };
}

/** Returns why a call runs fused; undefined if it runs unfused. */
function whyFused(call: RoutedCall, crossover: number | undefined, chooser: Chooser): string | undefined {
  const [batch, heads, queries, keys] = call.pairs;
  if (batch * heads * queries * keys === 0) return "nothing to compute";
  if (call.options.length > 0) return `no crossover is measured with ${call.options.join(", ")}`;
  if (crossover === undefined) return `no crossover is measured for ${named(call)} on ${chooser.backend}`;
  if (crossover === 0) return `faster at every length measured for ${named(call)}`;
  if (queries * keys > crossover) return `over ${crossover} scores a head, the measured crossover for ${named(call)}`;
  const ceiling = chooser.memoryLimit() * chooser.table.scoresShare;
  return scoreBytes(call) > ceiling ? "scores would exceed the memory limit" : undefined;
}

const classOf = ({ dtype, dim, valueDim, pairs: [batch, heads] }: RoutedCall) => ({
  dtype,
  dim: Math.max(dim, valueDim),
  heads: batch * heads,
});

/** Bytes of all scores, which are computed in the accumulation dtype. */
const scoreBytes = ({ dtype, pairs }: RoutedCall): number =>
  pairs.reduce((product, size) => product * size, bytesOf(accumulationDType(dtype)));

/** Descriptions of classes: few calls have other ones than the last call. */
const described = new Map<number, string>();

/** Describes a call's class. */
function named(call: RoutedCall): string {
  const { dtype, dim, heads } = classOf(call);
  const type = dtypeClassOf(dtype);
  const [row, column] = [dimClassOf(dim), headClassOf(heads)];
  const index = (dtypeClasses.indexOf(type) * dimClasses.length + row) * headClasses.length + column;
  return getOrMake(described, index, () => {
    const dtypes = type === "narrow" ? "float16 and bfloat16" : type;
    return `${dtypes}, dim up to ${dimClasses[row]}, batch · heads from ${headClasses[column]}`;
  });
}
