/** `ORCHARD_DEBUG_FLASH_ATN=1`: what each pass of attention did, on standard error, and how many there were, in a file. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AttentionAttributes } from "../ops/attention/problem.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { CallCounts } from "./call_counts.ts";
import type { OperationRun, Recorder } from "./observer.ts";

export type Pass = "forward" | "backward";

const passes: Readonly<Record<string, Pass>> = { attentionForward: "forward", attentionBackward: "backward" };

/** What is told of a pass beside its operands. */
interface Told {
  readonly milliseconds: number;
  readonly copies: number;
  readonly reason: string;
}

/** Operands by their names. */
export type Named = readonly (readonly [name: string, tensor: Tensor])[];

export class FlashAttentionLog implements Recorder {
  private readonly counts: CallCounts<Pass>;

  constructor(thread: number) {
    this.counts = new CallCounts(join(tmpdir(), "flashattn_kernel_calls.log"), ["forward", "backward"], thread);
  }

  /** Fused passes are operations; others are none of its business. */
  ran({ operation, backend, inputs, attributes, failure, ...told }: OperationRun): void {
    const pass = passes[operation];
    if (pass === undefined) return;
    const names = (attributes as AttentionAttributes).inputs;
    const operands = names.map((name, at) => [name, inputs[at]!] as const);
    if (failure !== undefined) {
      say(pass, `failed on ${backend} after ${told.milliseconds.toFixed(3)} ms: ${firstLine(failure)}`);
      return;
    }
    this.counts.raise(pass);
    // Metal's work is only encoded by then, and goes on.
    say(pass, describe(`fused on ${backend}`, operands, told, backend === "metal" ? "ms to encode" : "ms"));
  }

  /** A pass that was made of other operations, on whichever backends. */
  unfused(pass: Pass, operands: Named, told: Told): void {
    say(pass, describe("unfused", operands, told, "ms"));
  }
}

function describe(path: string, operands: Named, { reason, copies, milliseconds }: Told, unit: string): string {
  const shapes = operands.map(([name, { shape }]) => `${name} [${shape.join(", ")}]`).join(", ");
  const [[, { dtype }]] = operands as readonly [Named[number]];
  return `path ${path} (${reason}), ${dtype}, ${shapes}; copies ${copies}, ${milliseconds.toFixed(3)} ${unit}`;
}

const firstLine = (failure: unknown): string =>
  (failure instanceof Error ? failure.message : String(failure)).split("\n", 1)[0]!;

const say = (pass: Pass, what: string): void => console.error(`[orchard] flashAttention ${pass}: ${what}`);
