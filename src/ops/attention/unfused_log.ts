import type { FlashAttentionLog } from "../../observe/flash_attention.ts";
import { copiesSoFar } from "../../observe/observer.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { viewOf } from "../view/view.ts";
import type { AttentionAttributes } from "./problem.ts";
import type { Attended } from "./unfused.ts";

/**
 * Logs the forward and backward of unfused attention. A backward starts when the gradient of a result is known, and
 * ends when the gradients of all operands are.
 *
 * @param compute maps operands to results
 */
export function logUnfused(
  log: FlashAttentionLog,
  { inputs: names }: AttentionAttributes,
  inputs: readonly Tensor[],
  reason: string,
  compute: (inputs: readonly Tensor[]) => Attended,
): Attended {
  const operands = names.map((name, at) => [name, inputs[at]] as const);
  const backward = new BackwardWatch(inputs.filter(({ requiresGrad }) => requiresGrad).length, (spent) =>
    log.unfused("backward", operands, { ...spent, reason }),
  );
  const spend = stopwatch();
  const { out, logSumExp } = compute(inputs.map((input) => sameView(input, () => backward.reached())));
  log.unfused("forward", operands, { ...spend(), reason });
  return {
    out: sameView(out, () => backward.began("out")),
    logSumExp: logSumExp && sameView(logSumExp, () => backward.began("logSumExp")),
  };
}

/** Returns a view of the same elements; `passed` is called when its gradient is known. */
const sameView = (x: Tensor, passed: () => void): Tensor =>
  viewOf("flashAttention", x, x.shape, x.strides, x.offset, (gradients) => {
    passed();
    return gradients;
  });

interface Spent {
  readonly milliseconds: number;
  readonly copies: number;
}

function stopwatch(): () => Spent {
  const [start, copies] = [performance.now(), copiesSoFar()];
  return () => ({ milliseconds: performance.now() - start, copies: copiesSoFar() - copies });
}

interface PassUnderWay {
  readonly results: Set<string>;
  readonly spend: () => Spent;
  reached: number;
  spent: Spent;
}

/**
 * Detects when backward passes through one graph begin and end. Not every pass computes the gradients of all operands.
 */
class BackwardWatch {
  private pass: PassUnderWay | undefined;

  constructor(
    private readonly operands: number,
    private readonly report: (spent: Spent) => void,
  ) {}

  /** Called when the gradient of a result is known, once in each pass. */
  began(result: string): void {
    if (this.pass?.results.has(result)) this.end(this.pass);
    if (this.pass === undefined) this.begin();
    this.pass?.results.add(result);
  }

  /** Called when the gradient of an operand is known. */
  reached(): void {
    if (this.pass === undefined) return;
    this.pass.spent = this.pass.spend();
    if (++this.pass.reached === this.operands) this.end(this.pass);
  }

  private begin(): void {
    const spend = stopwatch();
    const pass = { results: new Set<string>(), spend, reached: 0, spent: spend() };
    this.pass = pass;
    queueMicrotask(() => this.end(pass)); // passes are synchronous, so this one has ended by then
  }

  private end(pass: PassUnderWay): void {
    if (this.pass !== pass) return;
    this.pass = undefined;
    this.report(pass.spent);
  }
}
