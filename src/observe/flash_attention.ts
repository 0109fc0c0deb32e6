/**
 * `ORCHARD_DEBUG_FLASH_ATN=1`: logs each pass of attention to standard error, and counts the passes in a file.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CallCounts } from "./call_counts.ts";
import type { ObservedTensor, OperationRun, Recorder } from "./observer.ts";

export type Pass = "forward" | "backward";

const passes: Readonly<Record<string, Pass>> = { attentionForward: "forward", attentionBackward: "backward" };

/** The facts about a pass that are logged with its operands. */
interface PassReport {
  readonly milliseconds: number;
  readonly copies: number;
  readonly reason: string;
}

/** Operands with their names. */
export type NamedOperands = readonly (readonly [name: string, tensor: Pick<ObservedTensor, "dtype" | "shape">])[];

export class FlashAttentionLog implements Recorder {
  private readonly counts: CallCounts<Pass>;

  constructor(thread: number) {
    this.counts = new CallCounts(join(tmpdir(), "flashattn_kernel_calls.log"), ["forward", "backward"], thread);
  }

  /** Logs fused passes, which are operations; ignores other operations. */
  ran({ operation, backend, inputs, attributes, failure, ...report }: OperationRun): void {
    const pass = passes[operation];
    if (pass === undefined) return;
    const { inputs: names } = attributes as { readonly inputs: readonly string[] };
    const operands = names.map((name, at) => [name, inputs[at]] as const);
    if (failure !== undefined) {
      log(pass, `failed on ${backend} after ${report.milliseconds.toFixed(3)} ms: ${firstLine(failure)}`);
      return;
    }
    this.counts.increment(pass);
    // On Metal the work is only encoded at this point, not complete.
    log(pass, describe(`fused on ${backend}`, operands, report, backend === "metal" ? "ms to encode" : "ms"));
  }

  /** Logs a pass that was composed of other operations, on any backends. */
  unfused(pass: Pass, operands: NamedOperands, report: PassReport): void {
    log(pass, describe("unfused", operands, report, "ms"));
  }
}

function describe(
  path: string,
  operands: NamedOperands,
  { reason, copies, milliseconds }: PassReport,
  unit: string,
): string {
  const shapes = operands.map(([name, { shape }]) => `${name} [${shape.join(", ")}]`).join(", ");
  const [[, { dtype }]] = operands as readonly [NamedOperands[number]];
  return `path ${path} (${reason}), ${dtype}, ${shapes}; copies ${copies}, ${milliseconds.toFixed(3)} ${unit}`;
}

const firstLine = (failure: unknown): string =>
  (failure instanceof Error ? failure.message : String(failure)).split("\n", 1)[0];

const log = (pass: Pass, what: string): void => console.error(`[orchard] flashAttention ${pass}: ${what}`);
