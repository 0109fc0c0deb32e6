/**
 * `ORCHARD_DEBUG_FLASH_ATN=1`: what each pass of attention did, on standard error, and how many there were, in a file.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CallCounts } from "./call_counts.ts";
import type { ObservedTensor, OperationRun, Recorder } from "./observer.ts";

export type Pass = "forward" | "backward";

const passes: Readonly<Record<string, Pass>> = { attentionForward: "forward", attentionBackward: "backward" };

/** What the log says of a pass beside its operands. */
interface PassReport {
  readonly milliseconds: number;
  readonly copies: number;
  readonly reason: string;
}

/** Operands by their names. */
export type NamedOperands = readonly (readonly [name: string, tensor: Pick<ObservedTensor, "dtype" | "shape">])[];

export class FlashAttentionLog implements Recorder {
  private readonly counts: CallCounts<Pass>;

  constructor(thread: number) {
    this.counts = new CallCounts(join(tmpdir(), "flashattn_kernel_calls.log"), ["forward", "backward"], thread);
  }

  /** Fused passes are operations; other operations are left out. */
  ran({ operation, backend, inputs, attributes, failure, ...report }: OperationRun): void {
    const pass = passes[operation];
    if (pass === undefined) return;
    const { inputs: names } = attributes as { readonly inputs: readonly string[] };
    const operands = names.map((name, at) => [name, inputs[at]!] as const);
    if (failure !== undefined) {
      log(pass, `failed on ${backend} after ${report.milliseconds.toFixed(3)} ms: ${firstLine(failure)}`);
      return;
    }
    this.counts.increment(pass);
    // Metal's work is only encoded by then, and goes on.
    log(pass, describe(`fused on ${backend}`, operands, report, backend === "metal" ? "ms to encode" : "ms"));
  }

  /** A pass that was made of other operations, on whichever backends. */
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
  (failure instanceof Error ? failure.message : String(failure)).split("\n", 1)[0]!;

const log = (pass: Pass, what: string): void => console.error(`[orchard] flashAttention ${pass}: ${what}`);
