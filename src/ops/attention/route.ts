/** Whether a call is computed fused or unfused, on which backend, and why. */
import type { BackendName } from "../../backend/names.ts";
import { getBackend, orderFrom } from "../../backend/policy.ts";
import { whyUnavailable } from "../../backend/registry.ts";
import { ArgumentError } from "../../core/errors.ts";
import { accumulationDType, bytesOf, type DType } from "../../tensor/dtype.ts";
import { type CrossoverTable, crossoverOf, dimClasses, dtypeClassOf, headClasses } from "./crossover.ts";
import { tableInUse } from "./crossover_file.ts";
import { memoryLimitOf } from "./memory_limit.ts";
import type { AttentionPath, FlashAttentionOptions } from "./options.ts";

export interface Route {
  readonly kind: "fused" | "unfused";
  /** The backend that the caller named. */
  readonly backend: BackendName | undefined;
  /**
   * Why, in a few words, for `codepaths()`. The same for all calls of a class: a count for every length would grow
   * without end.
   */
  readonly reason: string;
}

/** What a choice depends on beside the path. */
export interface RoutedCall {
  readonly dtype: DType;
  /** [batch, heads, queries, keys] */
  readonly pairs: readonly [number, number, number, number];
  readonly dim: number;
  readonly valueDim: number;
  /** Names of options that crossovers do not hold for: see {@link unmeasuredOptions}. */
  readonly options: readonly string[];
}

/** How a choice is made. */
export interface Chooser {
  /** The backend that runs the call first. */
  readonly backend: BackendName;
  readonly table: CrossoverTable;
  /**
   * Bytes that the backend may allocate in all. Not those that are free: they vary from run to run, and a choice must
   * not.
   */
  readonly memoryLimit: () => number;
}

const AS_ASKED = "as asked";

/** Larger rows have no fused kernel. */
export const MAX_DIM = 256;

/** @throws {ArgumentError} for a fused path that there is not. */
export function routeOf(operation: string, path: AttentionPath, call: RoutedCall): Route {
  if (path === "auto") return chooseRoute(call, currentChooser());
  if (path === "unfused") return { kind: "unfused", backend: undefined, reason: AS_ASKED };
  if (isTooLarge(call))
    throw new ArgumentError(
      operation,
      "dimTooLarge",
      `expected head dimensions of at most ${MAX_DIM} for path "${path}", got ${call.dim} and ${call.valueDim}; ` +
        '{ path: "unfused" } has any',
    );
  return { kind: "fused", backend: path === "fused" ? undefined : path, reason: AS_ASKED };
}

/**
 * Options with which calls stay fused. Masks of any kind: the fused kernels skip what they hide, and unfused it takes
 * further products to keep it out, which the table does not know. The others cost more passes over all scores than were
 * measured.
 */
export const unmeasuredOptions = (options: FlashAttentionOptions): string[] => {
  const { causal, dropout, window, softcap, mask, bias, sinks, alibi, cuSeqlens } = options;
  const given = {
    causal: causal || undefined,
    dropout: dropout || undefined,
    window,
    softcap,
    mask,
    bias,
    sinks,
    alibi,
  };
  return Object.entries({ ...given, cuSeqlens }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
};

const isTooLarge = ({ dim, valueDim }: RoutedCall): boolean => Math.max(dim, valueDim) > MAX_DIM;

function currentChooser(): Chooser {
  const preferred = getBackend();
  const backend = orderFrom[preferred].find((name) => whyUnavailable(name) === undefined) ?? preferred;
  return { backend, table: tableInUse(), memoryLimit: () => memoryLimitOf(backend) };
}

/** The choice of `path: "auto"`. It depends on its arguments alone. */
export function chooseRoute(call: RoutedCall, chooser: Chooser): Route {
  if (isTooLarge(call)) return { kind: "unfused", backend: undefined, reason: `dim or valueDim over ${MAX_DIM}` };
  const crossover = crossoverOf(chooser.table, { ...classOf(call), backend: chooser.backend });
  const reason = whyFused(call, crossover, chooser);
  if (reason !== undefined) return { kind: "fused", backend: undefined, reason };
  const most = `at most ${crossover} scores a head`;
  return { kind: "unfused", backend: undefined, reason: `${most}, the measured crossover for ${named(call)}` };
}

/** Why a call is computed fused; undefined where it is unfused. */
function whyFused(call: RoutedCall, crossover: number | undefined, chooser: Chooser): string | undefined {
  const [batch, heads, queries, keys] = call.pairs;
  if (batch * heads * queries * keys === 0) return "nothing to compute";
  if (call.options.length > 0) return `no crossover is measured with ${call.options.join(", ")}`;
  if (crossover === undefined) return `no crossover is measured for ${named(call)} on ${chooser.backend}`;
  if (crossover === 0) return `faster at every length measured for ${named(call)}`;
  if (queries * keys > crossover) return `over ${crossover} scores a head, the measured crossover for ${named(call)}`;
  const ceiling = chooser.memoryLimit() * chooser.table.scoresShare;
  return scoreBytes(call) > ceiling ? "scores would be over the memory ceiling" : undefined;
}

const classOf = ({ dtype, dim, valueDim, pairs: [batch, heads] }: RoutedCall) => ({
  ...{ dtype, dim: Math.max(dim, valueDim), heads: batch * heads },
});

/** Scores are computed in the dtype of sums. */
const scoreBytes = ({ dtype, pairs }: RoutedCall): number =>
  pairs.reduce((product, size) => product * size, bytesOf(accumulationDType(dtype)));

/** A call's class in words. */
function named(call: RoutedCall): string {
  const { dtype, dim, heads } = classOf(call);
  const most = dimClasses.find((each) => dim <= each);
  const least = headClasses.findLast((each) => heads >= each);
  const type = dtypeClassOf(dtype) === "narrow" ? "float16 and bfloat16" : dtype;
  return `${type}, dim up to ${most}, batch · heads from ${least}`;
}
